"""Rows that tests make up as plain tuples, scored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from jobs.property_extraction.predictions import (
    PaperOutcome,
    PaperState,
    ReplicatePredictions,
)
from jobs.property_extraction.results import ScoredModel
from jobs.property_extraction.rows import Prediction, TruthRow
from tests.jobs.property_extraction.scored_rows import scored_columns

Fields: TypeAlias = tuple[str, ...]
"""Paper, name, value and, where it matters, the unit."""


def truth_rows(rows: Iterable[Fields]) -> tuple[TruthRow, ...]:
    return tuple(
        TruthRow(
            refno=refno, name=name, value=value, unit="".join(unit), source_row=number
        )
        for number, (refno, name, value, *unit) in enumerate(rows, start=2)
    )


def predicted_rows(rows: Iterable[Fields]) -> tuple[Prediction, ...]:
    return tuple(
        Prediction(refno=refno, name=name, value=value, unit="".join(unit), row=number)
        for number, (refno, name, value, *unit) in enumerate(rows, start=2)
    )


def column(
    truth: Iterable[Fields],
    *replicates: Iterable[Fields],
    failed: Iterable[str] = (),
    **settings: Any,
) -> ScoredModel:
    """The results of one model.

    Args:
        truth: curated rows.
        replicates: the rows of each.
        failed: papers whose extraction failed.
        settings: other than the usual ones; no draws unless they say so.
    """
    lost = dict.fromkeys(
        failed, PaperOutcome(state=PaperState.FAILED, reason="truncated")
    )
    columns = (
        ReplicatePredictions(
            model="m",
            replicate=number,
            predictions=predicted_rows(rows),
            outcomes=lost,
        )
        for number, rows in enumerate(replicates, start=1)
    )
    given = {"boot_b": 0} | settings
    return scored_columns(*columns, rows=truth_rows(truth), **given).columns["m"]


def values(own: ScoredModel, *paths: str) -> tuple[float | None, ...]:
    return tuple(own.metric(path).value for path in paths)
