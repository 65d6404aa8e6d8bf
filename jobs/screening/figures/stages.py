"""The funnel of stages, and whether p_include means what it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jobs.figures import (
    SIDE_BY_SIDE,
    ReliabilitySeries,
    ReliabilityWords,
    reliability_panels,
)
from jobs.metrics import reliability
from jobs.metrics.calibration import Bin
from jobs.screening.decisions import EXCLUDE
from jobs.screening.figures.shown import Model, Shown
from jobs.screening.measuring.view import View
from runner.scorecard import Axis, Bars, Figure, Panel


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
    return Figure(
        name="reliability",
        title="Whether p_include means what it says",
        caption="Records by their p_include in ten bins: the share that reviews "
        "include, with Wilson's 95% interval, which takes records as independent. "
        "Below, how many. Observed shares go by this set's ratio of negatives."
        f"{shown.rest}",
        columns=SIDE_BY_SIDE[len(found)],
        panels=reliability_panels(
            [
                ReliabilitySeries(
                    name=model.name,
                    series=model.series,
                    bins=_bins(model.column.view),
                )
                for model in found
            ],
            ReliabilityWords(
                share="share included", probability="p_include", counted="records"
            ),
        ),
    )


def _bins(view: View) -> Sequence[Bin]:
    rows = ~view.imputed
    return reliability(view.records.label[rows], view.decisions.p[rows])
