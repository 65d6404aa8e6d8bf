"""Figures hold the scorecard's own numbers, and only those there is input for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

from jobs.kit.charts import MOST_MODELS
from jobs.screening import figures as screening_figures
from jobs.screening.figures import MOST_CURVES, MOST_ROWS
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.results import ScreeningResults, measure_decisions
from jobs.screening.settings import ScreeningSettings
from runner.scorecard import (
    Category,
    Figure,
    Histogram,
    LineSeries,
    Mark,
    Panel,
    Points,
)
from tests.jobs.screening.told_decisions import Said, sheet

Kind = TypeVar("Kind", bound=Mark)


def review(name: str, of: int = 0) -> list[Said]:
    """Three included papers and two negatives of each kind; *of* varies the order."""
    return [
        (name, "1", "included", "include", 0.9),
        (name, "2", "included", "include", 0.85 - 0.1 * (of % 8)),
        (name, "3", "included", "exclude", 0.2),
        (name, "4", "near-miss", "include", 0.6),
        (name, "5", "near-miss", "exclude", 0.1),
        (name, "6", "random", "exclude", 0.05),
        (name, "7", "random", "unclear", None),
    ]


def results(*models: Sequence[Said]) -> ScreeningResults:
    return measure_decisions(
        ScreeningDataset(settings=ScreeningSettings(boot_b=20)), sheet(*models)
    )


def figures(*models: Sequence[Said]) -> dict[str, Figure]:
    return {
        figure.name: figure for figure in screening_figures.figures(results(*models))
    }


def marks(panel: Panel, kind: type[Kind]) -> list[Kind]:
    return [mark for mark in panel.marks if isinstance(mark, kind)]


@pytest.fixture(scope="module")
def many() -> dict[str, Figure]:
    """More reviews than a dot plot holds, and two models."""
    rows = [row for at in range(60) for row in review(f"r{at:02}", at)]
    return figures(rows, rows)


def test_false_positives_and_savings_are_those_of_the_scorecard() -> None:
    rows = [*review("a"), *review("b", 3)]
    found = results(rows)
    drawn = {figure.name: figure for figure in screening_figures.figures(found)}
    known = found.columns["model 1"].by_path()
    (panel,) = drawn["fpr-by-kind"].panels
    (rates,) = marks(panel, Points)
    paths = [f"{name.split()[0]}.micro.fpr" for name in panel.y.names]
    assert [path.split(".")[0] for path in paths] == ["near-miss", "random"]
    assert panel.y.names[0].endswith(f"\nn = {known[paths[0]].n}")
    assert rates.x == tuple(known[path].value for path in paths)
    assert rates.lo == tuple(known[path].lo for path in paths)
    (panel,) = drawn["wss95"].panels
    (points,) = marks(panel, Points)
    own = found.columns["model 1"].strata["all"].by_review["wss95"]
    saved = [value for value in own if value is not None]
    by_name = dict(zip(("a", "b"), saved, strict=True))
    assert points.x == tuple(by_name[name] for name in panel.y.names)
    assert (panel.x.lo, panel.x.hi) == (min(0, *saved), max(0, *saved))
    (panel,) = drawn["recall"].panels
    *singles, mean = marks(panel, LineSeries)
    assert len(singles) == 2
    assert all(line.faint for line in singles)
    assert (mean.faint, mean.x[0], mean.y[-1]) == (False, 0.0, 1.0)
    _, counts = drawn["reliability"].panels
    (histogram,) = marks(counts, Histogram)
    assert sum(histogram.counts) == sum(row[4] is not None for row in rows)


def test_a_kind_looks_alike_in_every_figure() -> None:
    (panel,) = figures(review("a"))["roc-by-kind"].panels
    kinds = ("included", "near-miss", "random")
    assert {line.label: line.series for line in marks(panel, LineSeries)} == {
        "near-miss": Category(kinds.index("near-miss")),
        "random": Category(kinds.index("random")),
    }


def test_of_many_reviews_those_that_save_least_are_shown(
    many: dict[str, Figure],
) -> None:
    first, second = many["wss95"].panels
    assert len(first.y.names) == MOST_ROWS
    assert first.y.names == second.y.names
    (points,) = marks(first, Points)
    values = [value for value in points.x if value is not None]
    assert values == sorted(values)
    assert "Of 60 reviews, those that save least." in many["wss95"].caption
    panel = many["recall"].panels[0]
    assert len(marks(panel, LineSeries)) == 61 < MOST_CURVES
    assert (panel.title, panel.y.label) == ("model 1", "recall, mean of 60 reviews")


def test_a_panel_a_model_and_no_more_models_than_can_be_told_apart() -> None:
    found = figures(*[review("a")] * (MOST_MODELS + 1))
    for name in ("recall", "roc-by-kind", "wss95"):
        assert len(found[name].panels) == MOST_MODELS
        assert "The first 6 of 7 models" in found[name].caption
    # counts stand below their model
    titles = [panel.title for panel in found["reliability"].panels]
    assert titles == [
        *("model 1", "model 2", "model 3", "", "", ""),
        *("model 4", "model 5", "model 6", "", "", ""),
    ]
    assert len(found["fpr-by-kind"].panels[0].marks) == MOST_MODELS


def test_what_has_no_input_has_no_figure() -> None:
    only: list[Said] = [("a", "1", "included", "include", None)]
    assert figures(only) == {}
    undecided = [*only, ("a", "2", "random", "unclear", None)]
    assert {*figures(undecided)} == {"recall", "fpr-by-kind", "roc-by-kind", "wss95"}
    (panel,) = figures(undecided)["fpr-by-kind"].panels
    assert [points.x for points in marks(panel, Points)] == [(None,)]
    (panel,) = figures(undecided)["recall"].panels
    assert panel.y.label == "recall, mean of 1 review"
