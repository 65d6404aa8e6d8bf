"""The files of an extraction: truth, its evidence, and the excluded studies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from jobs.review_benchmark.extracting.checking.references import Checked, Kept
from jobs.review_benchmark.extracting.extract import Extract
from jobs.review_benchmark.extracting.result.extraction import Extraction
from jobs.review_benchmark.inputs.written import review_json
from jobs.review_benchmark.json_file import json_file
from runner.scorecard import Artifact, Table

EXCLUDED: Final = (
    "review_pmid",
    "pmid",
    "status",
    "reason",
    "study_id",
    "title",
    "year",
)
"""Columns as the screening job reads them; a review's id is that of Cochrane."""


def files(own: Extraction, extract: Extract, name: str) -> Iterator[Artifact]:
    """What is written of an extraction; truth only where it is accepted.

    Args:
        own: what a model made of the review.
        extract: what it was made from.
        name: the review's id, as a file name has it.
    """
    status = own.status(accept=extract.settings.accept)
    if own.review is not None and status == "accepted":
        yield json_file(f"cochrane_{name}.json", review_json(own.review))
    yield json_file(f"extraction_{name}.json", _evidence(own, extract, status))


def excluded_table(own: Extraction, name: str, folder: str = "") -> Table:
    """The excluded studies that have a PMID, by which screening knows a paper.

    Args:
        own: what a model made of the review.
        name: the review's id, as a file name has it.
        folder: where it goes, with the stroke at its end.
    """
    return Table(
        name=f"{folder}excluded_{name}",
        columns=EXCLUDED,
        rows=tuple(
            (
                own.recorded.meta.id,
                each.paper.pmid,
                "excluded",
                each.reason,
                each.paper.ref_id,
                each.paper.title,
                each.paper.year,
            )
            for each in own.excluded.kept
            if each.paper.pmid
        ),
    )


def _evidence(own: Extraction, extract: Extract, status: str) -> dict[str, Any]:
    return {
        "status": status,
        "source": {
            "file": extract.document.name,
            "pages": len(extract.document.starts),
            "characters": len(extract.document.text),
        },
        "model": own.model,
        "studies": {
            "references": len(own.included.kept),
            "studies": own.studies,
            "in_abstract": own.stated,
            "repeated": own.included.repeated,
            "dropped": len(own.included.dropped),
        },
        "sections_placed_by_model": list(own.placed),
        "flags": [asdict(flag) for flag in own.flags],
        "evidence": [asdict(each) for each in own.recorded.evidence],
        "included": [_kept(each) for each in own.included.kept],
        "dropped": list(_dropped(own.included)),
        "excluded": [_kept(each) for each in own.excluded.kept],
        "excluded_dropped": list(_dropped(own.excluded)),
    }


def _kept(own: Kept) -> dict[str, Any]:
    paper = own.paper
    return {
        "cochrane_ref_id": paper.ref_id,
        "title": paper.title,
        "pmid": paper.pmid,
        "doi": paper.doi,
        "page": own.page,
        "ratio": own.ratio,
        "quote": own.quote,
    }


def _dropped(found: Checked) -> Iterator[Mapping[str, Any]]:
    for each in found.dropped:
        reference = asdict(each.reference)
        name = reference.pop("ref_id")
        yield {"code": each.flag.code, "cochrane_ref_id": name, **reference}
