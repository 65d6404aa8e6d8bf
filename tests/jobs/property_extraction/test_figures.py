"""Figures hold the scoring's own numbers, and only those there is input for."""

from __future__ import annotations

from typing import TypeVar

from jobs.property_extraction import figures as property_figures
from jobs.property_extraction.figures import MOST_ROWS
from jobs.property_extraction.results import PropertyResults
from runner.scorecard import Bars, Figure, Mark, Points, Stack
from tests.jobs.property_extraction.scored_rows import (
    ALIAS,
    STATED,
    scored,
    stated,
    truth,
)

Kind = TypeVar("Kind", bound=Mark)


def figures(results: PropertyResults) -> dict[str, Figure]:
    return {figure.name: figure for figure in property_figures.figures(results)}


def marks(figure: Figure, kind: type[Kind]) -> list[Kind]:
    return [
        mark
        for panel in figure.panels
        for mark in panel.marks
        if isinstance(mark, kind)
    ]


def test_each_model_has_its_rates_with_their_intervals() -> None:
    results = scored(STATED, ())
    first, second = marks(figures(results)["rates"], Points)
    metric = results.columns["m1"].metric("recall")
    assert (first.x[1], first.lo[1], first.hi[1]) == (
        metric.value,
        metric.lo,
        metric.hi,
    )
    assert (first.label, second.label) == ("m1", "m2")
    assert second.x == (None, 0.0, 0.0)


def test_what_is_lost_at_each_step_adds_up_to_the_truth() -> None:
    left, lost = marks(figures(scored(STATED))["losses"], Stack)
    # the formula is left out; no other name is stated for the field and the structure
    assert left.values == (4, 2, 1)
    assert lost.values == (0, 2, 1)


def test_properties_stand_by_how_much_truth_they_have() -> None:
    rows = tuple(truth(f"P{n}", "Tc", "10", "K") for n in range(3))
    others = tuple(truth("P1", f"n{n:03}", "x") for n in range(MOST_ROWS + 5))
    found = figures(scored(STATED, rows=(*others, *rows)))["recall-by-property"]
    names = found.panels[0].y.names
    assert (names[0], found.panels[0].row_notes[0]) == ("Tc", "n = 3")
    assert len(names) == MOST_ROWS
    assert f"Of {MOST_ROWS + 6} properties the {MOST_ROWS} with" in found.caption


def test_properties_with_the_same_rates_are_one_point() -> None:
    rows = (truth("P1", "a", "1"), truth("P1", "b", "2"), truth("P1", "c", "3"))
    own = (stated("P1", "a", "1"), stated("P1", "b", "2"), stated("P1", "c", "x"))
    found = figures(scored(own, rows=rows))["precision-recall-by-property"]
    (points,) = marks(found, Points)
    assert dict(
        zip(zip(points.x, points.y, strict=True), points.notes, strict=True)
    ) == {
        (0.0, 0.0): "1",
        (1.0, 1.0): "2",
    }


def test_aliases_are_shown_beside_none() -> None:
    assert "aliases" not in figures(scored(STATED))
    (bars,) = marks(figures(scored(STATED, aliases=ALIAS))["aliases"], Bars)
    assert bars.values == (1, 2)


def test_every_caption_says_what_is_left_out() -> None:
    for figure in property_figures.figures(scored(STATED, aliases=ALIAS)):
        assert "1 of 5 truth rows" in figure.caption, figure.name


def test_without_a_paper_there_is_no_figure() -> None:
    other = (stated("Q1", "Tc", "10", "K"),)
    assert figures(scored(other, paper_set="common")) == {}
