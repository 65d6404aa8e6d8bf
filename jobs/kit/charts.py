"""Declares the figures of a job: a chart has a title, a caption and panels of data.

A job selects the models once (`Plot.of`) and lists its charts in the order of the
report. The panels of a chart are a function of the plot, which may yield none: then
there is no figure. The kit gives each model its style, fills in the caption, says which
models are left out, and arranges the panels:

    >>> from runner.scorecard import Axis, Panel
    >>> def accuracy(plot):
    ...     yield Panel(
    ...         x=Axis(names=("drug", "variant")),
    ...         y=Axis(label="accuracy", lo=0, hi=1),
    ...         marks=tuple(model.bars(model.data) for model in plot.models),
    ...     )
    >>> charts = [
    ...     Chart(
    ...         name="accuracy",
    ...         title="Accuracy by pipeline",
    ...         caption="Right answers. Bars: {intervals}.",
    ...         panels=accuracy,
    ...     )
    ... ]
    >>> answers = {"atlas": [0.9, None], "birch": [0.7, 0.5]}
    >>> note = bootstrap_note(0.95, "paper", "12 papers", 1000)
    >>> (figure,) = ChartFigures(charts, lambda: Plot.of(answers, answers, note))
    >>> figure.caption
    'Right answers. Bars: 95% percentile bootstrap by paper (12 papers, B 1,000).'
    >>> [(bars.label, bars.values) for bars in figure.panels[0].marks]
    [('atlas', (0.9, None)), ('birch', (0.7, 0.5))]

The marks are those of `runner.scorecard`; `jobs.kit.report` draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from jobs.kit.metrics.calibration import Bin
from jobs.kit.metrics.columns import Floats
from jobs.kit.metrics.intervals import Interval
from jobs.kit.text_format import n_text
from runner.job_faults import sentence_of
from runner.scorecard import (
    Axis,
    Bars,
    Category,
    FailedFigure,
    Figure,
    Histogram,
    LineSeries,
    Mark,
    Metric,
    Number,
    Numbers,
    Panel,
    Points,
    ReferenceLine,
    Series,
    Stack,
)

Results = TypeVar("Results")
"""Data of all models."""

Data = TypeVar("Data")
"""Data of one model."""

Selected = TypeVar("Selected")
"""Selects the data of a chart from those of one model."""

Row = TypeVar("Row")

MOST_MODELS = 6
"""In one figure; more lines or panels cannot be told apart. The tables hold all."""

PAGE_POINTS = 80
"""Points below one another that a page has room for."""

MOST_POINTS = 400
"""Most points of a curve in a picture; more cannot be distinguished."""

SIDE_BY_SIDE: Mapping[int, int] = {1: 1, 2: 2, 4: 2}
"""Panels in a row, by how many there are; otherwise three are in a row."""

MOST_SIDE_BY_SIDE = 3


class IntervalEstimate(Protocol):
    """A value with an interval, such as the difference of two models."""

    @property
    def value(self) -> float | None:
        """None where it is undefined."""

    @property
    def interval(self) -> Interval | None:
        """None where there is none."""


Value: TypeAlias = Metric | IntervalEstimate | Number
"""Value of a bar or a point; None is undefined."""


def value_columns(values: Iterable[Value]) -> tuple[Numbers, Numbers, Numbers]:
    """Returns values, lower and upper interval ends, as marks take them."""
    rows = [_value_row(value) for value in values]
    return (
        tuple(value for value, _, _ in rows),
        tuple(lo for _, lo, _ in rows),
        tuple(hi for _, _, hi in rows),
    )


def _value_row(value: Value) -> tuple[Number, Number, Number]:
    if value is None or isinstance(value, int | float):
        return value, None, None
    interval = value if isinstance(value, Metric) else value.interval
    if interval is None:
        return value.value, None, None
    return value.value, interval.lo, interval.hi


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedModel(Generic[Data]):
    """One of the models that a figure plots."""

    name: str
    series: int  #: its style, the same in every figure
    data: Data

    def bars(self, values: Iterable[Value], label: str | None = None) -> Bars:
        """Returns a bar for each value; the default label is the model's name."""
        value, lo, hi = value_columns(values)
        name = self.name if label is None else label
        return Bars(values=value, lo=lo, hi=hi, label=name, series=self.series)

    def points(self, values: Iterable[Value], rows: Iterable[float]) -> Points:
        """Returns a point for each value, on rows that lie below one another."""
        x, lo, hi = value_columns(values)
        return Points(
            x=x, y=tuple(rows), lo=lo, hi=hi, label=self.name, series=self.series
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot(Generic[Results, Data]):
    """Selects the models plotted in the figures of a scoring; all charts read it."""

    results: Results
    models: tuple[PlottedModel[Data], ...]
    intervals: str = ""  #: how intervals were computed, for captions
    rest: str = ""  #: ends each caption: what the figures leave out

    @classmethod
    def of(
        cls,
        results: Results,
        models: Mapping[str, Data | None],
        intervals: str = "",
        *,
        omitted: str = "",
    ) -> Plot[Results, Data]:
        """Selects the first `MOST_MODELS` models.

        Args:
            results: of all models.
            models: the data of each model, in the order of the scorecard. A model with
                None is in no figure, and the others have the style that they have
                beside it.
            intervals: how intervals were computed, such as `bootstrap_note` says.
            omitted: sentences about what no figure shows, each after a blank.
        """
        first, note = first_rows(
            [
                PlottedModel(name=name, series=series, data=data)
                for series, (name, data) in enumerate(models.items())
                if data is not None
            ],
            MOST_MODELS,
            " The first {n} of {all} models; the tables hold all.",
        )
        return cls(
            results=results,
            models=tuple(first),
            intervals=intervals,
            rest=omitted + note,
        )

    def select(
        self, getter: Callable[[Data], Selected | None]
    ) -> list[PlottedModel[Selected]]:
        """Returns the models for which *getter* has data, with these data."""
        return [
            PlottedModel(name=model.name, series=model.series, data=data)
            for model in self.models
            if (data := getter(model.data))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The panels of a chart whose layout or caption depends on the data."""

    panels: Sequence[Panel]
    columns: int | None = None  #: in place of the chart's
    facts: Mapping[str, object] = field(default_factory=dict)
    """Values of the fields in title and caption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(Generic[Results, Data]):
    """Declares one figure."""

    name: str  #: of its files, as `Figure` takes it
    title: str
    caption: str
    """Content and how to read it. `{intervals}` stands for the note on intervals,
    any other name in braces for a fact of the `Drawing`."""
    panels: Callable[[Plot[Results, Data]], Iterable[Panel] | Drawing]
    columns: int | None = None
    """Panels in a row; None: as `SIDE_BY_SIDE` has it."""

    def figure(self, plot: Plot[Results, Data]) -> Figure | None:
        """Builds the figure; None without a panel."""
        output = self.panels(plot)
        drawing = (
            output if isinstance(output, Drawing) else Drawing(panels=tuple(output))
        )
        if not drawing.panels:
            return None
        return Figure(
            name=self.name,
            title=self.title.format(**drawing.facts),
            caption=self.caption.format(intervals=plot.intervals, **drawing.facts)
            + plot.rest,
            columns=drawing.columns
            or self.columns
            or SIDE_BY_SIDE.get(len(drawing.panels), MOST_SIDE_BY_SIDE),
            panels=tuple(drawing.panels),
        )


@dataclass(frozen=True, slots=True)
class ChartFigures(Generic[Results, Data]):
    """The figures that the results have data for, in the order of the charts.

    A figure must never cost the numbers: one whose code raises becomes a
    `FailedFigure`, and the others follow it. Each pass builds the figures anew and
    yields the same.
    """

    charts: Sequence[Chart[Results, Data]]
    plot: Callable[[], Plot[Results, Data]]

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        try:
            plot = self.plot()
        except Exception as error:  # noqa: BLE001 - numbers outlive their pictures
            yield _failed("figures", self.plot, error)
            return
        for chart in self.charts:
            try:
                figure = chart.figure(plot)
            except Exception as error:  # noqa: BLE001 - see above
                yield _failed(chart.name, chart.panels, error)
            else:
                if figure is not None:
                    yield figure


def _failed(name: str, code: Callable[..., object], error: Exception) -> FailedFigure:
    return FailedFigure(name=name, fault=sentence_of(error, code.__module__))


def first_rows(rows: Sequence[Row], most: int, note: str) -> tuple[Sequence[Row], str]:
    """Returns the first *most* rows, and a note for the caption if more were left out.

    Args:
        rows: in the order of the figure.
        most: rows that it has room for.
        note: a sentence after a blank; `{n}` is how many are plotted, of `{all}`.
    """
    first = rows[:most]
    is_cut = len(first) < len(rows)
    return first, note.format(n=len(first), all=len(rows)) if is_cut else ""


def most_rows(models: int, most: int) -> int:
    """Returns how many rows with a point of each model a page has room for."""
    return max(1, min(most, PAGE_POINTS // max(models, 2)))


def bootstrap_note(level: float, by: str, clusters: str, b: int) -> str:
    """Returns how bootstrap intervals were computed, for captions."""
    return f"{100 * level:g}% percentile bootstrap by {by} ({clusters}, B {b:,})"


def thinned_line(
    x: Floats | Sequence[Number],
    y: Floats | Sequence[Number],
    *,
    label: str = "",
    series: Series = None,
    faint: bool = False,
    marked: bool = False,
    steps: bool = False,
) -> LineSeries:
    """Returns a line through at most `MOST_POINTS` points; NaN is undefined."""
    n = len(x)
    some = np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(np.intp)
    return LineSeries(
        x=_numbers(np.asarray(x, dtype=float)[some]),
        y=_numbers(np.asarray(y, dtype=float)[some]),
        label=label,
        series=series,
        faint=faint,
        marked=marked,
        steps=steps,
    )


def _numbers(column: Floats) -> Numbers:
    return tuple(None if np.isnan(x) else x for x in column.tolist())


def stack(parts: Mapping[str, Iterable[Number]]) -> tuple[Stack, ...]:
    """Returns the parts of stacked bars by their labels, from the bottom up."""
    return tuple(
        Stack(values=tuple(values), label=label, series=Category(index))
        for index, (label, values) in enumerate(parts.items())
    )


def model_rows(
    index: int, models: int, rows: int, *, breadth: float = 0.7
) -> tuple[float, ...]:
    """Returns the places of a model on named rows, where no other model hides it.

    Args:
        index: of the model, from 0.
        models: how many share each row.
        rows: how many there are.
        breadth: of a row, what all models together take.
    """
    offset = (index - (models - 1) / 2) * breadth / models
    return tuple(row + offset for row in range(rows))


def share_chart(
    name: str, title: str, row: str, axis: str, caption: str
) -> Chart[None, Metric]:
    """Return the figure of one share: a row with a point for each model.

    Args:
        name: of the file.
        title: above the figure.
        row: what the share is called, above its n.
        axis: what the share is of.
        caption: below the figure.
    """

    def panel(plot: Plot[None, Metric]) -> Iterator[Panel]:
        yield rows_panel(
            [f"{row}\n{n_text(model.data for model in plot.models)}"],
            ((model, [model.data]) for model in plot.models),
            Axis(label=axis, lo=0, hi=1),
        )

    return Chart(name=name, title=title, caption=caption, panels=panel)


def rows_panel(
    names: Sequence[str],
    rows: Iterable[tuple[PlottedModel[Data], Iterable[Value]]],
    x: Axis,
    *marks: Mark,
    title: str = "",
    row_notes: Sequence[str] = (),
) -> Panel:
    """Returns a row for each name, and on it a point for each model.

    Args:
        names: of the rows, from the top down.
        rows: the models, each with its value in every row.
        x: the axis of the values.
        marks: drawn behind the points.
        title: of the panel.
        row_notes: a text at the right end of each row.
    """
    by_model = list(rows)
    points = (
        model.points(values, model_rows(index, len(by_model), len(names)))
        for index, (model, values) in enumerate(by_model)
    )
    return Panel(
        title=title,
        x=x,
        y=Axis(names=tuple(names)),
        marks=(*marks, *points),
        row_notes=tuple(row_notes),
    )


def loss_panel(title: str, unit: str, left: Mapping[str, int]) -> Panel:
    """Returns a bar for each step: what is *left* after it, and what it lost."""
    counts = tuple(left.values())
    lost = (0, *(before - after for before, after in pairwise(counts)))
    return Panel(
        title=title,
        x=Axis(label=unit, lo=0),
        y=Axis(names=tuple(left)),
        row_notes=tuple(f"{n:,}" for n in counts),
        marks=stack({"left": counts, "lost at this step": lost}),
    )


def reliability(
    models: Sequence[PlottedModel[tuple[Bin, ...]]],
    *,
    share: str,
    probability: str,
    unit: str,
) -> Drawing:
    """Draws binned probabilities of each model against observed shares, counts below.

    Args:
        models: the bins of each.
        share: label of the observed share.
        probability: label of the stated probability.
        unit: what the bins count.
    """
    columns = SIDE_BY_SIDE.get(len(models), MOST_SIDE_BY_SIDE)
    panels: list[Panel] = []
    for begin in range(0, len(models), columns):
        row = models[begin : begin + columns]
        panels += [_observed(model, share) for model in row]
        panels += [_bin_counts(model, probability, unit) for model in row]
    return Drawing(panels=panels, columns=columns)


def _observed(model: PlottedModel[tuple[Bin, ...]], share: str) -> Panel:
    filled = [bin_ for bin_ in model.data if bin_.count]
    x = tuple(bin_.mean_p for bin_ in filled)
    y = tuple(bin_.rate for bin_ in filled)
    return Panel(
        title=model.name,
        x=Axis(lo=0, hi=1),
        y=Axis(label=share, lo=0, hi=1),
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


def _bin_counts(
    model: PlottedModel[tuple[Bin, ...]], probability: str, unit: str
) -> Panel:
    return Panel(
        x=Axis(label=probability, lo=0, hi=1),
        y=Axis(label=unit, lo=0),
        height=0.5,
        marks=(
            Histogram(
                edges=(*(bin_.lo for bin_ in model.data), model.data[-1].hi),
                counts=tuple(bin_.count for bin_ in model.data),
                series=model.series,
            ),
        ),
    )
