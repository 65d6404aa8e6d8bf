"""A figure that fails costs neither the other figures nor the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jobs.kit.report.page import write
from runner.scorecard import Axis, FailedFigure, Figure, LineSeries, Panel
from tests.jobs.kit.report.reported import CARD, REPORTED, Page, written

GOOD = Figure(
    name="good",
    title="Good",
    caption="A line.",
    panels=(
        Panel(marks=(LineSeries(x=(0, 1), y=(0, 1), series=0),), x=Axis(), y=Axis()),
    ),
)

UNDRAWABLE = replace(
    GOOD,
    name="undrawable",
    panels=(
        Panel(marks=(LineSeries(x=(0, 1), y=(0, 1, 2), series=0),), x=Axis(), y=Axis()),
    ),
)


def test_a_report_has_a_finding_for_each_figure_that_failed(tmp_path: Path) -> None:
    failed = FailedFigure(name="broken", fault="ValueError at job/figures.py:3")
    card = replace(CARD, figures=(failed, UNDRAWABLE, GOOD))
    said = " ".join(Page(written(tmp_path, card)).texts)
    assert "The figure could not be drawn (ValueError at job/figures.py:3)" in said
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        *("good.png", "good.svg", "headline.png", "headline.svg")
    ]
    found = write(tmp_path, replace(REPORTED, scorecard=card))
    assert [each.where for each in found] == ["broken", "undrawable"]
