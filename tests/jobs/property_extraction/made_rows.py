"""Rows made up by a test, scored without a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.predicted import (
    Outcome,
    Predicted,
    Sheet,
    State,
)
from jobs.property_extraction.measuring.results import Column, Results, measured
from jobs.property_extraction.row import Prediction, TruthRow
from jobs.property_extraction.rubric import Kind, Property, Rubric
from jobs.property_extraction.settings import Settings

Fields = tuple[str, ...]
"""Paper, name, value and, where it matters, the unit."""

KINDS: Mapping[str, Kind] = {
    "Tc": Kind.SI,
    "Hc": Kind.SI,
    "type": Kind.CATEGORICAL,
    "formula": Kind.PYMATGEN,
}
"""Of the names that tests use; any other is compared exactly."""


def truth_rows(rows: Iterable[Fields]) -> tuple[TruthRow, ...]:
    return tuple(
        TruthRow(
            refno=refno,
            name=name,
            value=value,
            unit="".join(unit),
            source_row=number,
        )
        for number, (refno, name, value, *unit) in enumerate(rows, start=2)
    )


def predicted_rows(rows: Iterable[Fields]) -> tuple[Prediction, ...]:
    return tuple(
        Prediction(refno=refno, name=name, value=value, unit="".join(unit), row=number)
        for number, (refno, name, value, *unit) in enumerate(rows, start=2)
    )


def scored(
    truth: Iterable[Fields],
    predictions: Mapping[str, Sequence[Iterable[Fields]]],
    *,
    aliases: Mapping[str, str] | None = None,
    failed: Iterable[str] = (),
    **settings: Any,
) -> Results:
    """All that scoring measures.

    Args:
        truth: curated rows.
        predictions: of each model the rows of each replicate.
        aliases: accepted ones.
        failed: papers whose extraction failed.
        settings: other than the usual ones; no draws unless they say so.
    """
    dataset = Dataset(
        settings=Settings(**{"boot_b": 0, "pymatgen": "leave_out", **settings}),
        truth=truth_rows(truth),
        rubric=Rubric(
            properties={
                name: Property(name=name, kind=own) for name, own in KINDS.items()
            }
        ),
        aliases=AliasSet(
            entries=tuple(
                AliasEntry(
                    pred_name=name, gt_name=target, status="accepted", source="human"
                )
                for name, target in (aliases or {}).items()
            )
        ),
    )
    lost = dict.fromkeys(failed, Outcome(state=State.FAILED, reason="truncated"))
    predicted = [
        Predicted(
            model=model,
            replicate=number,
            predictions=predicted_rows(rows),
            outcomes=lost,
        )
        for model, replicates in predictions.items()
        for number, rows in enumerate(replicates, start=1)
    ]
    sheet = Sheet(
        models=tuple(predictions),
        replicates=max(map(len, predictions.values())),
        imported=True,
        predicted=tuple(predicted),
    )
    return measured(dataset, sheet)


def column(
    truth: Iterable[Fields], predictions: Iterable[Fields], **settings: Any
) -> Column:
    """The results of one model's one replicate."""
    return scored(truth, {"m": [predictions]}, **settings).columns["m"]


def values(own: Column, *paths: str) -> tuple[float | None, ...]:
    return tuple(own.metric(path).value for path in paths)
