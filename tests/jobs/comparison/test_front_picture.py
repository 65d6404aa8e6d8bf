"""The picture of quality against cost and latency: its points, its line, its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.comparison import pareto_front
from jobs.comparison.difference import SideEstimate
from jobs.comparison.pareto_front import Dominance, Expense, FrontPoint, ParetoFront
from jobs.metrics import Interval
from runner.errors import UsageError
from runner.scorecard import LineSeries, Points
from tests.jobs.comparison.item_columns import side

A = side({}, "a")


def place(model: str, value: float, expense: Expense) -> FrontPoint:
    return FrontPoint(
        side=side({}, model),
        quality=SideEstimate(
            value=value, interval=Interval(lo=value - 0.1, hi=value + 0.1)
        ),
        expense=expense,
        dominated=(Dominance(by=A, quality="better"),) if model == "c" else (),
    )


def three(**changes: object) -> ParetoFront:
    return ParetoFront(
        **{
            "path": "score",
            "unit": "paper",
            "cluster": "paper",
            "lower_is_better": False,
            "n": 12,
            "places": (
                place("a", 0.5, Expense(usd=1.0)),
                place("b", 0.7, Expense(usd=2.0)),
                place("c", 0.4, Expense(usd=4.0)),
            ),
            **changes,
        }
    )


def test_each_side_is_a_point_and_the_line_joins_the_front() -> None:
    (panel,) = pareto_front.front_figure(three(), 0.9).panels
    line, *points = panel.marks
    assert isinstance(line, LineSeries)
    assert (line.x, line.y) == ((1.0, 2.0, pytest.approx(4.4)), (0.5, 0.7, 0.7))
    assert [
        (each.x, each.label, each.notes) for each in points if isinstance(each, Points)
    ] == [
        ((1.0,), "r  a", ("",)),
        ((2.0,), "r  b", ("",)),
        ((4.0,), "r  c", ("dominated",)),
    ]
    assert panel.title == "12 items, 90% intervals by paper"
    assert panel.x.label == "USD per paper"


def test_where_lower_is_better_the_line_joins_the_lowest() -> None:
    (panel,) = pareto_front.front_figure(three(lower_is_better=True), 0.95).panels
    (line, *_) = panel.marks
    assert isinstance(line, LineSeries)
    assert line.y == (0.5, 0.4, 0.4)


def test_without_cost_and_latency_there_is_nothing_to_draw() -> None:
    unknown = three(places=(place("a", 0.5, Expense()), place("b", 0.5, Expense())))
    with pytest.raises(UsageError, match="No side has a cost or a latency"):
        pareto_front.front_figure(unknown, 0.95)
    with pytest.raises(UsageError, match="in different ways"):
        pareto_front.front_figure(None, 0.95)


@pytest.mark.parametrize(
    ("name", "begins"), [("x.png", b"\x89PNG\r\n"), ("x.SVG", b"<?xml version")]
)
def test_the_file_is_what_its_name_says(
    tmp_path: Path, name: str, begins: bytes
) -> None:
    pareto_front.check_figure_format(tmp_path / name)
    pareto_front.write_figure(pareto_front.front_figure(three(), 0.95), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == [name]
