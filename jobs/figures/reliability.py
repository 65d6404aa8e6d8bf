"""The reliability diagram: stated probabilities against what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.figures.models import SIDE_BY_SIDE
from jobs.metrics.calibration import Bin
from runner.scorecard import Axis, Histogram, LineSeries, Panel, Points, ReferenceLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A model's probabilities in bins."""

    name: str
    series: int  #: its look, the same in every figure
    bins: Sequence[Bin]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What the axes are called."""

    share: str
    probability: str
    counted: str


def panels(models: Sequence[Stated], words: Words) -> tuple[Panel, ...]:
    """Two panels a model, for `SIDE_BY_SIDE` columns: the shares, counts below."""
    columns = SIDE_BY_SIDE[len(models)]
    rows = [models[i : i + columns] for i in range(0, len(models), columns)]
    return tuple(
        panel(model, words)
        for row in rows
        for panel in (_observed, _counts)
        for model in row
    )


def _observed(model: Stated, words: Words) -> Panel:
    filled = [each for each in model.bins if each.count]
    x = tuple(each.mean_p for each in filled)
    y = tuple(each.rate for each in filled)
    return Panel(
        title=model.name,
        x=Axis(lo=0, hi=1),
        y=Axis(label=words.share, lo=0, hi=1),
        marks=(
            ReferenceLine(way="diagonal", label="as stated"),
            LineSeries(x=x, y=y, series=model.series),
            Points(
                x=x,
                y=y,
                lo=tuple(each.interval.lo for each in filled),
                hi=tuple(each.interval.hi for each in filled),
                series=model.series,
            ),
        ),
    )


def _counts(model: Stated, words: Words) -> Panel:
    return Panel(
        x=Axis(label=words.probability, lo=0, hi=1),
        y=Axis(label=words.counted, lo=0),
        height=0.5,
        marks=(
            Histogram(
                edges=(*(each.lo for each in model.bins), model.bins[-1].hi),
                counts=tuple(each.count for each in model.bins),
                series=model.series,
            ),
        ),
    )
