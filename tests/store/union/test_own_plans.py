"""Logs of a run whose plans skip a task that is worked on all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.database import open_reader
from store.events import TasksReopened
from store.read.status import status
from tests.store.samples import completed, plan, started, task
from tests.store.samples import reply as answer
from tests.store.union.union_logs import outcome, shard_log, shard_started, union_of

SKIPPING = plan([task(1, skip="no_text")])
AGAIN = TasksReopened(tasks=[1], by="a person")
PAID = (answer(1, b"paid", cost_usd=0.5), completed(1))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("is_answered", [True, False])
def test_what_the_plan_skipped_may_be_asked_again_in_two_logs(
    tmp_path: Path, order: tuple[int, ...], *, is_answered: bool
) -> None:
    rest = [[started(1)], PAID] if is_answered else []
    logs = [
        shard_log(tmp_path, "0-1", [shard_started(0, 1), SKIPPING], [AGAIN], *rest),
        shard_log(tmp_path, "0-2", [shard_started(0, 2), SKIPPING], [AGAIN]),
    ]
    with open_reader(union_of(tmp_path / "union.db", [logs[i] for i in order])) as log:
        tasks = status(log).tasks
    assert (tasks.planned, tasks.skipped, tasks.completed) == (1, 0, int(is_answered))
    assert tasks.open == int(not is_answered)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_answer_counts_though_another_plan_skips_its_task(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    asking = plan([task(1)])
    logs = [
        shard_log(tmp_path, "0-1", [shard_started(0, 1), asking], [started(1)], PAID),
        shard_log(tmp_path, "0-2", [shard_started(0, 2), SKIPPING]),
    ]
    said = outcome(union_of(tmp_path / "union.db", [logs[i] for i in order]))
    assert said["counts"] == ["('ask', 'm-large', 3, 1)"]
    assert said["reasons"] == []
