"""A comparison as tables for print, in Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.comparison.difference import Compared
from jobs.comparison.front import Front
from jobs.comparison.matching import Drawing, Match, Side
from jobs.metrics import Interval
from runner.typeset import Ends, PrintCell, PrintColumn, PrintTable

BETTER = {True: "lower", False: "higher"}
"""Which values are better, by whether lower ones are."""


def sheets(
    made: Sequence[Match], front: Front | None, drawing: Drawing
) -> Iterator[PrintTable]:
    """A table for each match, and one of quality against cost where that is known."""
    for match in made:
        yield _differences(match, drawing)
    if front is not None and front.is_known:
        yield _costs(front, drawing)


def _differences(match: Match, drawing: Drawing) -> PrintTable:
    interval = _interval(drawing)
    return PrintTable(
        title=f"{_side(match.b)} (B) against {_side(match.a)} (A)",
        columns=(
            PrintColumn(name="Metric"),
            PrintColumn(name="Better"),
            PrintColumn(name="A", kind="number"),
            PrintColumn(name="B", kind="number"),
            PrintColumn(name="B - A", kind="change"),
            PrintColumn(name=interval, kind="changes"),
            PrintColumn(name="p (Holm)", kind="number"),
            PrintColumn(name="n", kind="number"),
            PrintColumn(name="Verdict on B"),
            PrintColumn(name="Key", kind="key"),
        ),
        rows=tuple(_row(match.a, each) for each in match.compared if each.overlap.n),
        note=f"Common items only. Intervals at {drawing.level:.10g}, B={drawing.b}, "
        f"seed={drawing.seed}, both sides drawn alike; p corrected by Holm's method.",
    )


def _row(side: Side, each: Compared) -> tuple[PrintCell, ...]:
    gap = each.gap
    return (
        side.names.get(each.path, each.path),
        BETTER[each.lower_is_better],
        gap.a,
        gap.b,
        gap.value,
        _ends(gap.interval),
        each.p_holm,
        each.overlap.n,
        each.verdict,
        each.path,
    )


def _costs(front: Front, drawing: Drawing) -> PrintTable:
    return PrintTable(
        title=f"{front.path}, cost and latency on {front.n} common items",
        columns=(
            PrintColumn(name="Side"),
            PrintColumn(name="value", kind="number", group="Quality"),
            PrintColumn(name=_interval(drawing), kind="interval", group="Quality"),
            PrintColumn(name=f"USD per {front.unit}", kind="number"),
            PrintColumn(name="Median s", kind="number"),
        ),
        rows=tuple(
            (
                _side(place.side),
                place.quality.value,
                _ends(place.quality.interval),
                place.expense.usd,
                place.expense.seconds,
            )
            for place in front.places
        ),
    )


def _interval(drawing: Drawing) -> str:
    return f"{100 * drawing.level:.4g}% interval"


def _ends(interval: Interval) -> Ends | None:
    return None if interval.lo is None else (interval.lo, interval.hi)


def _side(side: Side) -> str:
    return " ".join(side.key)
