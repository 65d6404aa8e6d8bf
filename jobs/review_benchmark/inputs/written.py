"""A review as a truth file has it: what `read_review` reads back to the same value."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jobs.review_benchmark.review import Review, TruthPaper


def review_json(review: Review) -> dict[str, Any]:
    """The object of a `cochrane_{id}.json`; what is not given is left out or null."""
    effect = {
        "conclusion_direction": review.direction,
        "conclusion_certainty": review.certainty,
    }
    return {
        "cochrane_id": review.id,
        "title": review.title,
        "research_question": review.question,
        "pico": None if review.pico is None else asdict(review.pico),
        "inclusion_criteria": list(review.inclusion),
        "exclusion_criteria": list(review.exclusion),
        "date_range": None if review.date_range is None else list(review.date_range),
        "authors_conclusion": review.conclusion or None,
        **{name: word for name, word in effect.items() if word is not None},
        "source_url": review.source_url or None,
        "notes": review.notes or None,
        "included_studies": [study_fields(paper) for paper in review.studies],
        **review.further,
    }


def study_fields(paper: TruthPaper) -> dict[str, Any]:
    """The fields of one entry of `included_studies`; what is not given is left out."""
    known = {
        "cochrane_ref_id": paper.ref_id,
        "pmid": paper.pmid,
        "doi": paper.doi,
        "title": paper.title,
        "authors": list(paper.authors),
        "year": paper.year,
        "notes": paper.notes,
    }
    return {name: value for name, value in known.items() if value} | {**paper.further}
