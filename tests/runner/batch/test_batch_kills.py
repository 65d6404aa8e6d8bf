"""A process that asks by batches may be killed at any step: nothing is billed twice."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from store.events import AttemptAnswered
from tests.runner.batch.batch_provider import Chances, Provider
from tests.runner.batch.batch_run import TASKS, BatchRun, Fuse

ROUNDS = 200 if "SIFTLOG_PROVE" in os.environ else 4


def _check(run: BatchRun) -> None:
    """Each item billed once by the provider, recorded once in the log."""
    answered = Counter(
        event.task
        for event in run.events("attempt_answered")
        if isinstance(event, AttemptAnswered)
    )
    assert set(answered.values()) == {1}, "an answer was recorded twice"
    assert set(run.provider.billed.values()) == {1}, "an item was billed twice"
    assert len(answered) == len(run.provider.billed) == TASKS
    seen = run.status()
    assert (seen.tasks.completed, seen.attempts.unknown) == (TASKS, 0)
    assert (seen.possible_usd, seen.in_flight_usd) == (0.0, 0.0)
    assert seen.cost_usd == pytest.approx(TASKS * (10 * 0.5 + 5 * 1.0) / 1e6)
    assert run.open().count == 0


def test_an_undisturbed_run_asks_everything_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = BatchRun(tmp_path, Provider(random.Random(1)), monkeypatch)
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    _check(run)
    assert run.provider.bodies == TASKS


@pytest.mark.parametrize("is_labelled", [True, False], ids=["keyed", "keyless"])
def test_whatever_step_a_process_is_killed_at_each_item_is_billed_and_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_labelled: bool
) -> None:
    chance = random.Random(7)
    chances = Chances(
        lost=0.2, refused=0.1, broken=0.3, short=0.3, expires=0.1, fails=0.05
    )
    kills = 0
    for number in range(1000):
        provider = Provider(random.Random(number), chances, is_labelled=is_labelled)
        provider.lag_s = chance.choice([0.0, 100.0])
        run = BatchRun(tmp_path / str(number), provider, monkeypatch)
        ended = None
        for _ in range(60):
            # a run that never began cannot be resumed: its first event takes two
            steps = chance.randint(3, 90) if kills < ROUNDS else None
            ended = run.process(Fuse(steps))
            if ended is not None:
                break
            kills += 1
        assert ended is not None
        assert ended.outcome == "finished"
        _check(run)
        if kills >= ROUNDS:
            return
    pytest.fail("too few processes were killed")
