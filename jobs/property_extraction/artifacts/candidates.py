"""The files about names that may mean another: candidates, review, draft."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from jobs.property_extraction.artifacts.naming import Folders
from jobs.property_extraction.measuring.mismatches import Mismatches
from jobs.property_extraction.measuring.results import Results
from jobs.property_extraction.mismatch.candidates import Candidate, Example, review
from jobs.property_extraction.settings import Settings
from runner.scorecard import Artifact, Cell, Table

REVIEW = ("pred_name", "gt_name", "count", "avg_sim")
CANDIDATES = (
    "rank",
    *REVIEW,
    "contained",
    "value_hits",
    "canonical",
    "clash",
    "examples",
)

# dataclasses.asdict copies every text, which takes longer than all else here
_FIELDS = tuple(field.name for field in fields(Example))


def candidate_tables(results: Results, folders: Folders) -> Iterator[Table]:
    """The candidates of each model, and the first of them for review."""
    for model, column in results.columns.items():
        found = column.mismatches
        yield Table(
            name=folders.of(model, "alias_candidates"),
            columns=CANDIDATES,
            rows=tuple(map(_cells, found.candidates)),
            caption="Wrong names with the missed ones that they may mean, by spelling "
            "or by value. Where values spoke, a score on the same papers is in-sample.",
        )
        yield Table(
            name=folders.of(model, "alias_candidates_review"),
            columns=REVIEW,
            rows=tuple(
                (each.pred_name, each.gt_name, each.count, each.avg_sim)
                for each in _reviewed(found, results.dataset.settings)
            ),
            caption="Of them those by spelling alone, for verification.",
        )


def _reviewed(found: Mismatches, settings: Settings) -> Sequence[Candidate]:
    """The first pairs by count; or all by name, and those of a name by count."""
    if settings.review_rows == "top":
        return found.review
    return sorted(
        review(found.near, settings.k, None),
        key=lambda each: (each.pred_name, -each.count),
    )


def draft_maps(results: Results, folders: Folders) -> Iterator[Artifact]:
    """The first target of each name; it acts only where it is named and accepted."""
    for model, column in results.columns.items():
        text = json.dumps(dict(column.mismatches.draft), ensure_ascii=False, indent=2)
        yield Artifact(
            name=folders.of(model, "property_aliases.json"), text=f"{text}\n"
        )


def _cells(each: Candidate) -> tuple[Cell, ...]:
    return (
        each.rank,
        each.pred_name,
        each.gt_name,
        each.count,
        each.avg_sim,
        each.contained,
        each.value_hits,
        each.canonical,
        each.clash,
        _told(each.examples) if each.examples else None,
    )


def _told(examples: Iterable[Example]) -> str:
    told = [{name: getattr(own, name) for name in _FIELDS} for own in examples]
    return json.dumps(told, ensure_ascii=False)
