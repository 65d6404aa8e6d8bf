"""A truth paper as its file has it, with the fields that siftlog does not know."""

from __future__ import annotations

from typing import Any

from jobs.review_benchmark.review import TruthPaper


def study_fields(paper: TruthPaper) -> dict[str, Any]:
    """The fields of one entry of `included_studies`; what is not given is left out."""
    known = {
        "pmid": paper.pmid,
        "doi": paper.doi,
        "title": paper.title,
        "authors": list(paper.authors),
        "year": paper.year,
        "cochrane_ref_id": paper.ref_id,
        "notes": paper.notes,
    }
    return {name: value for name, value in known.items() if value} | dict(paper.further)
