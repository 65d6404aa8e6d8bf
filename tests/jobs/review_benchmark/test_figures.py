"""The figures of a scoring hold its numbers, each once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from jobs.review_benchmark.figures import IMPORTED, SEARCHED
from jobs.review_benchmark.losses import LOST_AT
from jobs.review_benchmark.score import score
from runner.scorecard import Figure, LineSeries, Points, Stack
from tests.jobs.review_benchmark.lost_studies import (
    CALM,
    SLEEP,
    imported,
    scored,
)


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, Figure]:
    return {own.name: own for own in scored(tmp_path).figures}


def stacks(figure: Figure, panel: int) -> Sequence[tuple[float, ...]]:
    marks = figure.panels[panel].marks
    return [
        tuple(value or 0 for value in mark.values)
        for mark in marks
        if isinstance(mark, Stack)
    ]


def test_a_run_of_our_own_has_all_figures(figures: dict[str, Figure]) -> None:
    assert list(figures) == ["recall-by-review", "losses", "threshold", "retrieval"]


def test_the_worst_review_is_on_top_and_bars_end_at_ceilings(
    figures: dict[str, Figure],
) -> None:
    (panel,) = figures["recall-by-review"].panels
    assert panel.y.names == (SLEEP.id, CALM.id)
    first, second = (mark for mark in panel.marks if isinstance(mark, Points))
    assert first.x == (1 / 7, 1.0)
    assert first.hi == second.hi == (5 / 7, 1.0)
    assert second.x == (3 / 7, 1.0)
    assert not set(first.y) & set(second.y)


def test_what_is_lost_at_a_step_is_missing_from_it_on(
    figures: dict[str, Figure],
) -> None:
    kept, lost = stacks(figures["losses"], 0)
    assert kept == (8, 6, 4, 3, 2)
    assert lost == (0, 2, 2, 1, 1)
    panel = figures["losses"].panels[0]
    assert panel.y.names == ("truth", "database", "retrieved", "scored", "included")
    assert panel.row_notes == ("8", "6", "4", "3", "2")


def test_an_import_tells_of_fewer_steps() -> None:
    dataset, answers = imported()
    found = {own.name: own for own in score(dataset, answers).figures}
    assert "retrieval" not in found
    kept, lost = stacks(found["losses"], 0)
    assert kept == (7, 2, 1)
    assert lost == (0, 5, 1)


def test_curves_end_at_what_was_measured(figures: dict[str, Figure]) -> None:
    (panel,) = figures["retrieval"].panels
    first = next(mark for mark in panel.marks if isinstance(mark, LineSeries))
    assert (first.x[0], first.y[0]) == (0, 0.0)
    assert first.y[-1] == pytest.approx((1.0 + 3 / 7) / 2)
    lines = [
        m for m in figures["threshold"].panels[0].marks if isinstance(m, LineSeries)
    ]
    assert [line.label for line in lines] == ["recall", "precision"]
    # a value holds below its score down to the next one, and is not drawn sloping there
    assert lines[0].x == (4.0, 1.5)
    assert all(line.steps for line in lines)


def test_each_way_of_losing_a_study_has_its_step() -> None:
    assert [cause for step in SEARCHED.values() for cause in step] == list(LOST_AT)
    assert not {cause for step in IMPORTED.values() for cause in step} - set(LOST_AT)
