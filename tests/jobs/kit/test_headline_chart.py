"""The headline chart of any scorecard: who is plotted, on which scale, in which row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from jobs.kit.headline_chart import MOST_MODELS, headline_figure
from runner.score.render import headlines
from runner.scorecard import Figure, Metric, Points, ReferenceLine, Scorecard


def metric(path: str, value: float | None, **fields: Any) -> Metric:
    defaults = {"n": 10, "direction": "higher", "is_headline": True}
    return Metric(path=path, value=value, **(defaults | fields))


def card(models: Mapping[str, Sequence[Metric]], **settings: float) -> Scorecard:
    return Scorecard(
        models={model: tuple(metrics) for model, metrics in models.items()},
        summary="",
        settings=settings,
    )


def drawn(card: Scorecard) -> Figure | None:
    return headline_figure(card, headlines(card))


def figure_of(card: Scorecard) -> Figure:
    figure = drawn(card)
    assert figure is not None
    return figure


def points(figure: Figure, panel: int = 0) -> list[Points]:
    return [mark for mark in figure.panels[panel].marks if isinstance(mark, Points)]


def test_a_panel_for_each_metric_and_a_row_for_each_model_in_order() -> None:
    recall = metric("recall", 0.5, lo=0.25, hi=0.75, n=12, n_defined=8, name="Recall")
    models = {
        "b": [recall, metric("loss", 3.5, direction="lower")],
        "a": [metric("loss", 2.0, direction="lower"), metric("detail", 1.0)],
        "c": [metric("recall", None), metric("loss", 2.5, direction="lower")],
    }
    figure = figure_of(card(models, level=0.9))
    first, second, _ = figure.panels
    assert first.title == "Recall"
    assert first.x.label == "n = 8 to 10; higher is better"
    assert (first.x.lo, first.x.hi) == (0, 1)
    assert second.x.label == "n = 10; lower is better"
    assert (second.x.lo, second.x.hi) == (0, None)
    assert first.y.names == ("b", "a", "c")
    assert first.row_notes == ("0.500 [0.250, 0.750]", "-", "n/a")
    assert [(p.series, p.x, p.y, p.lo) for p in points(figure)] == [
        (0, (0.5,), (0,), (0.25,)),
    ]
    assert [(p.series, p.x, p.y) for p in points(figure, 1)] == [
        (0, (3.5,), (0,)),
        (1, (2.0,), (1,)),
        (2, (2.5,), (2,)),
    ]
    assert figure.caption == (
        "Headline metrics by model with 90% intervals; n counts the items."
    )


def test_the_metrics_of_a_single_model_are_rows_where_they_share_a_scale() -> None:
    metrics = [metric("recall", 0.5), metric("k", 4.0), metric("precision", 0.25)]
    rates, other = figure_of(card({"m": metrics})).panels
    assert rates.y.names == ("recall\nn = 10", "precision\nn = 10")
    assert other.y.names == ("k\nn = 10",)
    assert rates.row_notes == ("0.500", "0.250")


def test_values_below_zero_have_a_line_at_zero() -> None:
    figure = figure_of(card({"m": [metric("kappa", 0.1, lo=-0.2, hi=0.4)]}))
    (panel,) = figure.panels
    assert ReferenceLine(way="vertical", at=0) in panel.marks
    assert panel.x.lo is None


def test_what_only_describes_is_left_out_unless_there_is_nothing_else() -> None:
    described = metric("queries", 96, direction="neither")
    judged = metric("recall", 0.5)
    both = figure_of(card({"m": [described, judged]}))
    assert both.panels[0].y.names == ("recall\nn = 10",)
    (only,) = figure_of(card({"m": [described]})).panels
    assert only.x.label == "n = 10"


def test_what_there_is_no_room_for_is_told() -> None:
    number = count()
    models = {
        f"m{n}": [metric(f"r{i}", next(number) / 1e6) for i in range(3)]
        for n in range(MOST_MODELS + 1)
    }
    figure = figure_of(card(models))
    assert len(figure.panels[0].y.names) == MOST_MODELS
    assert figure.caption.endswith(" The first 24 of 25 models.")


def test_nothing_with_a_value_is_no_figure() -> None:
    assert drawn(card({})) is None
    assert drawn(card({"m": [metric("recall", None)]})) is None
    plain = metric("recall", 0.5, is_headline=False)
    assert drawn(card({"m": [plain]})) is None
