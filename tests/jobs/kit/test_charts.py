"""Charts become figures: models, captions, layout, and failures that cost no number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.charts import (
    MOST_MODELS,
    MOST_POINTS,
    MOST_SIDE_BY_SIDE,
    SIDE_BY_SIDE,
    Chart,
    ChartFigures,
    Drawing,
    Plot,
    loss_panel,
    model_rows,
    reliability,
    thinned_line,
    value_columns,
)
from jobs.kit.comparison.difference import Gap
from jobs.kit.metrics import calibration
from jobs.kit.metrics.intervals import Interval
from runner.scorecard import (
    Axis,
    FailedFigure,
    Figure,
    Histogram,
    Metric,
    Panel,
    Points,
    Stack,
)


def plot(models: int, **options: str) -> Plot[None, int]:
    return Plot.of(None, {f"m{n}": n for n in range(models)}, **options)  # type: ignore[arg-type]


def by_model(plot: Plot[None, int]) -> Iterator[Panel]:
    for model in plot.models:
        yield Panel(
            title=model.name,
            x=Axis(names=("n",)),
            y=Axis(),
            marks=(model.bars([model.data]),),
        )


BY_MODEL = Chart(name="good", title="Good", caption="Values.", panels=by_model)


def figure_of(chart: Chart[None, int], plot: Plot[None, int]) -> Figure:
    figure = chart.figure(plot)
    assert figure is not None
    return figure


@pytest.mark.parametrize("models", [1, 2, 3, 4, 6, 8])
def test_a_panel_for_each_of_the_first_models_and_the_others_counted(
    models: int,
) -> None:
    figure = figure_of(BY_MODEL, plot(models))
    plotted = min(models, MOST_MODELS)
    assert [panel.title for panel in figure.panels] == [f"m{n}" for n in range(plotted)]
    assert [panel.marks[0].series for panel in figure.panels] == [*range(plotted)]  # type: ignore[union-attr]
    assert figure.columns == SIDE_BY_SIDE.get(plotted, MOST_SIDE_BY_SIDE)
    rest = " The first 6 of 8 models; the tables hold all." if models == 8 else ""
    assert figure.caption == f"Values.{rest}"


def test_a_caption_has_the_intervals_the_facts_and_what_is_omitted() -> None:
    def drawing(plot: Plot[None, int]) -> Drawing:
        facts = {"share": 0.5, "term": "{intervals}"}
        return Drawing(panels=[*by_model(plot)], columns=1, facts=facts)

    chart = Chart(
        name="facts",
        title="Above {share:g}",
        caption="{term} above {share:.2f}. Bars: {intervals}.",
        panels=drawing,
        columns=2,
    )
    figure = figure_of(chart, plot(3, intervals="95% of {x}", omitted=" No tables."))
    assert figure.title == "Above 0.5"
    # a value is text, even where it looks like a field
    assert figure.caption == "{intervals} above 0.50. Bars: 95% of {x}. No tables."
    assert figure.columns == 1


def test_only_models_with_data_are_selected_and_they_keep_their_style() -> None:
    models = plot(3).select(lambda n: f"data of {n}" if n else None)
    assert [(m.name, m.series, m.data) for m in models] == [
        ("m1", 1, "data of 1"),
        ("m2", 2, "data of 2"),
    ]


def broken(_: Plot[None, int]) -> Iterator[Panel]:
    raise ValueError("max() arg is an empty sequence")


def empty(_: Plot[None, int]) -> list[Panel]:
    return []


def chart_of(name: str, panels: object) -> Chart[None, int]:
    return Chart(name=name, title="T", caption="C.", panels=panels)  # type: ignore[arg-type]


def test_a_figure_that_raises_is_a_value_and_the_others_follow() -> None:
    charts = [chart_of("broken", broken), chart_of("empty", empty), BY_MODEL]
    figures = ChartFigures(charts, lambda: plot(1))
    failed, good = figures
    assert isinstance(failed, FailedFigure)
    assert failed.name == "broken"
    assert failed.fault.startswith("ValueError at tests/jobs/kit/test_charts.py")
    assert isinstance(good, Figure)
    assert tuple(figures) == (failed, good)


def test_data_that_no_figure_can_be_built_from_are_one_failure() -> None:
    def unselected() -> Plot[None, int]:
        raise KeyError("m1")

    (failed,) = ChartFigures([BY_MODEL, BY_MODEL], unselected)
    assert isinstance(failed, FailedFigure)
    assert failed.name == "figures"


def test_marks_take_values_and_intervals_from_metrics_differences_and_numbers() -> None:
    metric = Metric(path="recall", value=0.5, n=4, lo=0.1, hi=0.9)
    gap = Gap(a=1.0, b=3.0, value=2.0, interval=Interval(lo=1.5, hi=None))
    assert value_columns([metric, gap, 3, None]) == (
        (0.5, 2.0, 3, None),
        (0.1, 1.5, None, None),
        (0.9, None, None, None),
    )
    (model,) = plot(1).models
    points = model.points([metric, None], (0.25, 1.25))
    assert points == Points(
        x=(0.5, None),
        y=(0.25, 1.25),
        lo=(0.1, None),
        hi=(0.9, None),
        label="m0",
        series=0,
    )
    assert model.bars([1], label="").label == ""


@given(models=st.integers(1, 8), rows=st.integers(1, 6))
def test_no_model_hides_another_and_none_leaves_its_row(models: int, rows: int) -> None:
    places = [model_rows(index, models, rows) for index in range(models)]
    for row, of_row in enumerate(zip(*places, strict=True)):
        assert list(of_row) == sorted(set(of_row))
        assert sum(of_row) / models == pytest.approx(row)
        assert all(abs(place - row) < 0.35 for place in of_row)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).map(sorted))
def test_what_is_left_and_what_was_lost_add_up_to_the_step_before(
    counts: list[int],
) -> None:
    left: Mapping[str, int] = {
        f"step {index}": n for index, n in enumerate(reversed(counts))
    }
    panel = loss_panel("m", "rows", left)
    remaining, lost = (mark.values for mark in panel.marks if isinstance(mark, Stack))
    sums = [(a or 0) + (b or 0) for a, b in zip(remaining, lost, strict=True)]
    assert sums == [counts[-1], *(n or 0 for n in remaining[:-1])]


def test_a_long_line_is_thinned_and_keeps_its_ends() -> None:
    x = np.arange(3 * MOST_POINTS, dtype=float)
    y = np.where(x == x[-1], np.nan, x)
    line = thinned_line(x, y, label="long")
    assert len(line.x) == len(line.y) == MOST_POINTS
    assert (line.x[0], line.x[-1], line.y[0], line.y[-1]) == (0.0, x[-1], 0.0, None)
    assert thinned_line(x[:5], x[:5]).x == tuple(x[:5])


def test_counts_lie_below_the_reliability_of_their_model() -> None:
    bins = calibration.reliability(np.array([0, 1, 1]), np.array([0.1, 0.8, 0.9]))
    models = Plot.of(None, {f"m{n}": bins for n in range(4)}).select(lambda data: data)
    drawing = reliability(models, share="share", probability="p", unit="rows")
    titles = [panel.title for panel in drawing.panels]
    assert titles == ["m0", "m1", "", "", "m2", "m3", "", ""]
    assert drawing.columns == 2
    (histogram,) = drawing.panels[2].marks
    assert isinstance(histogram, Histogram)
    assert sum(histogram.counts) == 3
    assert not reliability([], share="", probability="", unit="").panels
