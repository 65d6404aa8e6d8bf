"""Builds the figures that several jobs share, one by one, for a few models each.

A figure must never cost the numbers: one whose code raises becomes a `FailedFigure`,
and the others follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from jobs.kit.metrics.calibration import Bin
from runner.job_faults import sentence_of
from runner.scorecard import (
    Axis,
    FailedFigure,
    Figure,
    Histogram,
    LineSeries,
    Panel,
    Points,
    ReferenceLine,
)

FigureData = TypeVar("FigureData")
"""What a job draws figures from."""


def build_figures(
    prepare: Callable[[], FigureData],
    draws: Iterable[Callable[[FigureData], Figure | Iterable[Figure] | None]],
) -> Iterator[Figure | FailedFigure]:
    """Yields figures in the order of the report.

    Args:
        prepare: makes what all figures are drawn from.
        draws: each makes one figure, several, or None where the input has nothing for
            it.
    """
    try:
        figure_data = prepare()
    except Exception as error:  # noqa: BLE001 - numbers outlive their pictures
        yield _failed("figures", prepare, error)
        return
    for draw in draws:
        try:
            output = draw(figure_data)
            figures = (output,) if isinstance(output, Figure) else tuple(output or ())
        except Exception as error:  # noqa: BLE001 - see above
            yield _failed(draw.__name__, draw, error)
        else:
            yield from figures


def _failed(name: str, code: Callable[..., object], error: Exception) -> FailedFigure:
    return FailedFigure(name=name, fault=sentence_of(error, code.__module__))


Measured = TypeVar("Measured")
"""What a job has measured of a model."""

MOST_MODELS = 4
"""In one figure; more lines or panels cannot be told apart. The tables hold all."""

SIDE_BY_SIDE: Mapping[int, int] = {1: 1, 2: 2, 3: 3, 4: 2}
"""Panels beside one another, by how many models have one each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSeries(Generic[Measured]):
    """One of the models that are shown."""

    name: str
    series: int  #: its look, the same in every figure
    column: Measured


def first_models(columns: Mapping[str, Measured]) -> tuple[ModelSeries[Measured], ...]:
    """The models that figures have room for, in their order."""
    first = list(columns.items())[:MOST_MODELS]
    return tuple(
        ModelSeries(name=name, series=series, column=column)
        for series, (name, column) in enumerate(first)
    )


def left_out_note(plotted_n: int, every: int) -> str:
    """The end of a caption; empty where all models are shown."""
    if plotted_n == every:
        return ""
    return f" The first {plotted_n} of {every} models; the tables hold all."


Results = TypeVar("Results")
"""What a job has measured of all models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedModels(Generic[Results, Measured]):
    """The models of the figures, and what a caption says of all of them."""

    results: Results
    models: tuple[ModelSeries[Measured], ...]
    rest: str  #: the end of a caption; empty where all is shown
    interval_note: str  #: how intervals were made, for a caption


def plotted_models(
    results: Results,
    columns: Mapping[str, Measured],
    *,
    interval_note: str = "",
    omission_note: str = "",
) -> PlottedModels[Results, Measured]:
    """The models that figures have room for; *omission_note*: what no figure shows."""
    models = first_models(columns)
    return PlottedModels(
        results=results,
        models=models,
        rest=omission_note + left_out_note(len(models), len(columns)),
        interval_note=interval_note,
    )


def bootstrap_note(level: float, by: str, clusters: str, b: int) -> str:
    """How intervals were made, for a caption."""
    return f"{100 * level:g}% percentile bootstrap by {by} ({clusters}, B {b:,})"


MOST_POINTS = 400
"""Of a curve in a picture; more cannot be told apart."""


def thinned_points(n: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """At most `MOST_POINTS` places of *n*, the first and the last among them."""
    return np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(np.intp)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilitySeries:
    """A model's probabilities in bins."""

    name: str
    series: int  #: its look, the same in every figure
    bins: Sequence[Bin]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityWords:
    """What the axes are called."""

    share: str
    probability: str
    counted: str


def reliability_panels(
    models: Sequence[ReliabilitySeries], words: ReliabilityWords
) -> tuple[Panel, ...]:
    """Two panels a model, for `SIDE_BY_SIDE` columns: the shares, counts below."""
    columns = SIDE_BY_SIDE[len(models)]
    rows = [models[i : i + columns] for i in range(0, len(models), columns)]
    return tuple(
        panel(model, words)
        for row in rows
        for panel in (_observed, _counts)
        for model in row
    )


def _observed(model: ReliabilitySeries, words: ReliabilityWords) -> Panel:
    filled = [bin_ for bin_ in model.bins if bin_.count]
    x = tuple(bin_.mean_p for bin_ in filled)
    y = tuple(bin_.rate for bin_ in filled)
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
                lo=tuple(bin_.interval.lo for bin_ in filled),
                hi=tuple(bin_.interval.hi for bin_ in filled),
                series=model.series,
            ),
        ),
    )


def _counts(model: ReliabilitySeries, words: ReliabilityWords) -> Panel:
    return Panel(
        x=Axis(label=words.probability, lo=0, hi=1),
        y=Axis(label=words.counted, lo=0),
        height=0.5,
        marks=(
            Histogram(
                edges=(*(bin_.lo for bin_ in model.bins), model.bins[-1].hi),
                counts=tuple(bin_.count for bin_ in model.bins),
                series=model.series,
            ),
        ),
    )
