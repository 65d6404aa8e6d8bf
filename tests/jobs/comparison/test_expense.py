"""What a run's models cost and how long they took, from its log and its units."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.comparison.pareto_front import Expense, cost_unit, expenses
from jobs.comparison.rescoring import RescoredRun
from runner.score.scoring import Scoring
from runner.scorecard import Scorecard
from store.database import open_reader
from store.read.status import run_started
from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tests.store.samples import completed, plan, started, task
from tests.store.samples import reply as answered

MODELS = ("m-large", "m-small", "m-none")


def replayed(
    folder: Path, units: Mapping[str, Mapping[str, int]] | None = None, cached: int = 0
) -> RescoredRun:
    """A run of two models; the cache answers a further task of it if it is to."""
    again = [
        [plan([task(6)], first=6), started(6)],
        [answered(6, b"again", cached=True), completed(6)],
    ]
    written(folder / "log.db", *COURSE, *again[: 2 * cached])
    with open_reader(folder / "log.db") as reader:
        first = run_started(reader)
    card = Scorecard(
        models=dict.fromkeys(MODELS, ()), summary="", units=dict(units or {})
    )
    made = Scoring(
        number=None,
        job="sample-job",
        scorecard=card,
        content=b"",
        artifacts=(),
        folder=None,
        is_partial=True,
        inputs=(),
        changed_inputs=(),
        seq=1,
        ended=3,
    )
    return RescoredRun(folder=RunFolder(folder), started=first, scoring=made)


def test_without_units_dollars_are_for_a_task_that_ended(tmp_path: Path) -> None:
    run = replayed(tmp_path)
    assert cost_unit(run) == "task"
    found = expenses(run, "task")
    assert found["m-large"].usd == pytest.approx(0.25 / 2)
    assert found["m-small"].usd == pytest.approx(0.625)
    assert found["m-large"].seconds is not None
    assert found["m-none"] == Expense()


def test_dollars_are_for_the_first_unit_that_the_job_names(tmp_path: Path) -> None:
    units = {"m-large": {"record": 10, "answer": 20}, "m-small": {}}
    run = replayed(tmp_path, units)
    assert cost_unit(run) == "record"
    found = expenses(run, "record")
    assert found["m-large"].usd == pytest.approx(0.025)
    assert found["m-small"].usd is None


def test_answers_of_the_cache_make_dollars_unknown(tmp_path: Path) -> None:
    found = expenses(replayed(tmp_path, cached=1), "task")
    assert [found[model].usd for model in MODELS] == [None, None, None]
    assert found["m-small"].seconds is not None
