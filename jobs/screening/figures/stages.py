"""The funnel of stages, and whether p_include means what it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jobs.metrics import reliability
from jobs.metrics.calibration import Bin
from jobs.screening.decisions import EXCLUDE
from jobs.screening.figures.shown import SIDE_BY_SIDE, Model, Shown
from jobs.screening.measuring.view import View
from runner.figure import Axis, Bars, Figure, Histogram, Line, Panel, Points, Rule


def funnel(shown: Shown) -> Figure | None:
    """How many records reach each stage, and how many included papers it loses."""
    staged = [
        model for model in shown.models if len(model.column.view.decisions.stages) > 1
    ]
    if not staged:
        return None
    stages = staged[0].column.view.decisions.stages
    return Figure(
        name="funnel",
        title="Stages",
        caption="Left: records that reach each stage. Right: included papers whose "
        f"decision is an exclusion at that stage.{shown.rest}",
        columns=2,
        panels=(
            Panel(
                x=Axis(names=stages),
                y=Axis(label="records", lo=0),
                marks=tuple(_reaching(model, stages) for model in staged),
            ),
            Panel(
                x=Axis(names=stages),
                y=Axis(label="included papers lost", lo=0),
                marks=tuple(_lost(model, stages) for model in staged),
            ),
        ),
    )


def _reaching(model: Model, stages: tuple[str, ...]) -> Bars:
    ended = model.column.view.decisions.ended
    return Bars(
        values=tuple(int((ended >= at).sum()) for at in range(len(stages))),
        label=model.name,
        series=model.series,
    )


def _lost(model: Model, stages: tuple[str, ...]) -> Bars:
    view = model.column.view
    lost = (view.records.label == 1) & (view.decisions.outcome == EXCLUDE)
    counts = np.bincount(view.decisions.stage[lost], minlength=len(stages))
    return Bars(values=tuple(counts.tolist()), label=model.name, series=model.series)


def calibration(shown: Shown) -> Figure | None:
    """Stated probabilities against what was observed, counts below."""
    found = [model for model in shown.models if not model.column.view.imputed.all()]
    if not found:
        return None
    columns = SIDE_BY_SIDE[len(found)]
    rows = [found[i : i + columns] for i in range(0, len(found), columns)]
    return Figure(
        name="reliability",
        title="Whether p_include means what it says",
        caption="Records by their p_include in ten bins: the share that reviews "
        "include, with Wilson's 95% interval, which takes records as independent. "
        "Below, how many. Observed shares go by this set's ratio of negatives."
        f"{shown.rest}",
        columns=columns,
        panels=tuple(
            panel(model, _bins(model.column.view))
            for row in rows
            for panel in (_observed, _counts)
            for model in row
        ),
    )


def _bins(view: View) -> Sequence[Bin]:
    rows = ~view.imputed
    return reliability(view.records.label[rows], view.decisions.p[rows])


def _observed(model: Model, bins: Sequence[Bin]) -> Panel:
    there = [own for own in bins if own.count]
    x = tuple(own.mean_p for own in there)
    y = tuple(own.rate for own in there)
    return Panel(
        title=model.name,
        x=Axis(lo=0, hi=1),
        y=Axis(label="share included", lo=0, hi=1),
        marks=(
            Rule(way="diagonal", label="as stated"),
            Line(x=x, y=y, series=model.series),
            Points(
                x=x,
                y=y,
                lo=tuple(own.interval.lo for own in there),
                hi=tuple(own.interval.hi for own in there),
                series=model.series,
            ),
        ),
    )


def _counts(model: Model, bins: Sequence[Bin]) -> Panel:
    return Panel(
        x=Axis(label="p_include", lo=0, hi=1),
        y=Axis(label="records", lo=0),
        height=0.5,
        marks=(
            Histogram(
                edges=(*(own.lo for own in bins), bins[-1].hi),
                counts=tuple(own.count for own in bins),
                series=model.series,
            ),
        ),
    )
