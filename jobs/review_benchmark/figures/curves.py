"""What another threshold, or a shorter list of candidates, would give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from jobs.review_benchmark.figures.shown import Model, Shown
from jobs.review_benchmark.measuring.curve import mean_curve
from runner.scorecard import Axis, Figure, LineSeries, Numbers, Panel, ReferenceLine

Point = TypeVar("Point")

MOST_POINTS = 400
"""Of a curve in a picture; more cannot be told apart."""


def by_threshold(shown: Shown) -> Figure | None:
    """Mean recall and precision at each score that occurs."""
    panels = tuple(
        _threshold(model, shown) for model in shown.models if model.column.overall
    )
    if not panels:
        return None
    dashed = " Dashed: the threshold of this scoring." if _rule(shown) else ""
    return Figure(
        name="threshold",
        title="Recall and precision against the threshold",
        caption="Means over reviews, from the stored scores, if papers were included "
        "from each threshold on; at a step the value on its left is that of the "
        f"score itself. A review that includes nothing has no precision.{dashed}"
        f"{shown.rest}",
        columns=min(2, len(panels)),
        panels=panels,
    )


def _rule(shown: Shown) -> tuple[ReferenceLine, ...]:
    """The threshold; an import's agents decided by one of their own."""
    if shown.results.sheet.imported:
        return ()
    return (
        ReferenceLine(way="vertical", at=shown.results.dataset.settings.least_score),
    )


def _threshold(model: Model, shown: Shown) -> Panel:
    # thresholds fall: each value holds down to the next score, that one left out
    own = thinned(model.column.overall)
    x = tuple(step.threshold for step in own)
    return Panel(
        title=model.name,
        x=Axis(label="threshold"),
        y=Axis(label="mean over reviews", lo=0, hi=1),
        marks=(
            *_rule(shown),
            LineSeries(
                x=x,
                y=tuple(each.recall for each in own),
                label="recall",
                series=0,
                steps=True,
            ),
            LineSeries(
                x=x,
                y=tuple(each.precision for each in own),
                label="precision",
                series=1,
                steps=True,
            ),
        ),
    )


def by_rank(shown: Shown) -> Figure | None:
    """How much of the truth the first candidates hold."""
    there = [model for model in shown.models if model.column.curves]
    if not there:
        return None
    return Figure(
        name="retrieval",
        title="Recall against the candidates kept",
        caption="Mean over reviews of the share of included studies among the first "
        "candidates, in the order in which they are scored: what a smaller "
        f"max_candidates would lose. A review whose list is shorter stays.{shown.rest}",
        panels=(
            Panel(
                x=Axis(label="candidates kept", lo=0),
                y=Axis(label="recall of the search", lo=0, hi=1),
                marks=tuple(map(_rank, there)),
            ),
        ),
    )


def _rank(model: Model) -> LineSeries:
    points = thinned(((0, 0.0), *mean_curve(model.column.curves)))
    x: Numbers = tuple(kept for kept, _ in points)
    return LineSeries(
        x=x,
        y=tuple(recall for _, recall in points),
        label=model.name,
        series=model.series,
        steps=True,
    )


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """About `MOST_POINTS` of a curve's points at most; the last one is among them."""
    stride = math.ceil(len(points) / MOST_POINTS)
    return (*points[:-1:stride], points[-1]) if stride > 1 else points
