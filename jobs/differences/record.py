"""A difference for programs: everything, with fractions beside the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from jobs.differences.causes import Cause
from jobs.differences.difference import Changed, Difference, Stage, VerdictChange
from jobs.differences.rendering import wanted


def as_json(made: Difference, paths: Sequence[str] = ()) -> dict[str, Any]:
    """Everything; `exact` are fractions, whose sums have no rounding."""
    return {
        "run": made.run,
        "job": made.job,
        "before": {"scoring": made.before, "digest": made.digests[0]},
        "after": {"scoring": made.after, "digest": made.digests[1]},
        "headline": made.headline,
        "causes": [_stage_json(stage) for stage in made.stages],
        "metrics": [_changed_json(each) for each in wanted(made, paths)],
        "unchanged": len(made.unchanged),
        "notes": list(made.notes),
    }


def _stage_json(stage: Stage) -> dict[str, Any]:
    return {
        "causes": [_cause_json(cause) for cause in stage.causes],
        "metrics": stage.metrics,
        "verdicts": {
            model: [_verdict_json(each) for each in changes]
            for model, changes in stage.verdicts.items()
        },
        "booked": {
            model: {
                "metric": booking.metric,
                "change": booking.change,
                "rows": [
                    dict(zip(booking.table.columns, row, strict=True))
                    for row in booking.table.rows
                ],
            }
            for model, booking in stage.bookings.items()
        },
    }


def _cause_json(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind,
        "name": cause.name,
        "before": cause.before,
        "after": cause.after,
    }


def _verdict_json(each: VerdictChange) -> dict[str, Any]:
    return {
        "task": each.task,
        "key": each.key,
        **{
            name: side
            and {
                "value": side.value,
                "expected": side.expected,
                "correct": side.correct,
                "rule": side.rule,
            }
            for name, side in (("before", each.before), ("after", each.after))
        },
    }


def _changed_json(each: Changed) -> dict[str, Any]:
    return {
        "model": each.model,
        "path": each.path,
        "before": each.before,
        "after": each.after,
        **_exact("change", each.change),
        "parts": [
            {
                "causes": [cause.label for cause in part.causes],
                "before": part.before,
                "after": part.after,
                **_exact("change", part.change),
                "items": [
                    {
                        "item": item.item,
                        "cluster": item.cluster,
                        "before": item.before,
                        "after": item.after,
                        **_exact("share", item.share),
                    }
                    for item in part.items
                ],
                "rounding": None if part.rounding is None else str(part.rounding),
            }
            for part in each.parts
        ],
    }


def _exact(name: str, value: Fraction | None) -> dict[str, Any]:
    """A fraction as the nearest number, and as it is."""
    if value is None:
        return {name: None, "exact": None}
    return {name: float(value), "exact": str(value)}
