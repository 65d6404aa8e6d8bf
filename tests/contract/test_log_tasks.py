"""What every log knows of its tasks: planned, open, in flight, answered, grouped."""

from __future__ import annotations

import pytest

from store.errors import IllegalMove
from store.events import (
    AttemptsAbandoned,
    Entry,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
    TasksReopened,
)
from store.log.interface import Log, Planning
from store.task import TaskState, planned_tasks
from tests.store.samples import (
    completed,
    failed,
    plan,
    plan_first,
    reply,
    started,
    task,
)

pytestmark = pytest.mark.asyncio


async def test_planning_says_how_far_the_plan_has_come(log: Log) -> None:
    assert await log.planning() == Planning(tasks=0, consumed=0, exhausted=False)
    await log.append(plan([task(1), task(2)], consumed=1))
    follow_up = plan([task(3, stage="judge", root=1)], first=3)
    event = TasksPlanned(first=3, count=1, consumed=0)
    await log.append(Entry(event=event, payload=follow_up.payload))
    assert await log.planning() == Planning(tasks=3, consumed=1, exhausted=False)
    last = TasksPlanned(first=4, count=0, consumed=1, exhausted=True)
    await log.append(Entry(event=last, payload=plan([]).payload))
    assert await log.planning() == Planning(tasks=3, consumed=1, exhausted=True)


async def test_a_plan_with_a_gap_or_a_wrong_count_is_refused(log: Log) -> None:
    await log.append(plan_first(2))
    with pytest.raises(IllegalMove, match="after task 2"):
        await log.append(plan([task(4)], first=4))
    wrong = TasksPlanned(first=3, count=2, consumed=4)
    with pytest.raises(IllegalMove):
        await log.append(Entry(event=wrong, payload=plan([task(3)], first=3).payload))
    assert (await log.planning()).tasks == 2


async def test_a_manifests_tasks_come_back_as_planned(log: Log) -> None:
    rows = [
        task(1, key="ä/№ 1", context='{"order": [2, 1]}', group="g"),
        task(2, stage="judge", model="m-small", replicate=3, skip="no text"),
    ]
    seq = await log.append(plan(rows))
    payload = await log.payload(seq)
    assert payload is not None
    assert planned_tasks(payload) == rows
    first, second = await log.tasks([2, 1, 9])
    assert (first.key, first.context, first.group) == (
        "ä/№ 1",
        '{"order": [2, 1]}',
        "g",
    )
    assert (second.stage, second.model, second.replicate) == ("judge", "m-small", 3)
    assert (second.state, second.reason) == (TaskState.SKIPPED, "no text")


async def test_open_tasks_are_the_queued_and_waiting_ones_of_a_stage_and_model(
    log: Log,
) -> None:
    rows = [task(n) for n in range(1, 7)] + [task(7, model="m-small")]
    await log.append(plan(rows), *map(started, (1, 2, 3)))
    await log.append(failed(1), reply(2, b"x"), completed(2))
    await log.append(TaskSkipped(task=5, reason="cancelled"))
    found = await log.open_tasks("ask", "m-large", after=0, limit=10)
    assert [row.task for row in found] == [1, 4, 6]
    assert [row.state for row in found][:2] == [TaskState.WAITING, TaskState.QUEUED]
    page = await log.open_tasks("ask", "m-large", after=1, limit=1)
    assert [row.task for row in page] == [4]
    open_counts = [
        len(await log.open_tasks(stage, model, after=0, limit=10))
        for stage, model in (("ask", "m-large"), ("ask", "m-small"), ("judge", "x"))
    ]
    assert open_counts == [3, 1, 0]
    final = await log.final_tasks("ask", "m-large", after=0, limit=10)
    assert [row.task for row in final] == [2]


async def test_a_retry_waits_as_long_as_was_decided(log: Log) -> None:
    await log.append(plan_first(1), started(1))
    seq = await log.append(failed(1, retry_in_s=2.5))
    (row,) = await log.tasks([1])
    (event,) = await log.events(after=seq - 1)
    assert row.state is TaskState.WAITING
    assert row.not_before_us == event.ts_us + 2_500_000
    assert (row.error, row.attempts, row.tries) == ("Overloaded", 1, 1)
    assert not row.is_held


async def test_attempts_without_an_outcome_are_in_flight_until_abandoned(
    log: Log,
) -> None:
    await log.append(plan_first(4), *map(started, (3, 1, 2, 4)))
    await log.append(reply(2, b"x"), failed(3))
    assert await log.in_flight() == [(1, 1), (4, 1)]
    await log.append(AttemptsAbandoned(attempts=[(1, 1)]))
    await log.append(AttemptsAbandoned(attempts=[(4, 1)], hold=True))
    assert await log.in_flight() == []
    again, held = await log.tasks([1, 4])
    assert (again.state, again.abandoned, again.attempts) == (
        TaskState.QUEUED,
        1,
        1,
    )
    assert (held.state, held.is_held, held.not_before_us) == (
        TaskState.WAITING,
        True,
        None,
    )
    # an attempt whose outcome nobody knows is not held against the task
    assert (again.tries, held.tries) == (0, 0)
    found = await log.open_tasks("ask", "m-large", after=0, limit=9)
    assert [row.task for row in found] == [1, 3, 4]


async def test_an_answer_that_was_not_read_is_found(log: Log) -> None:
    await log.append(plan_first(3), *map(started, (1, 2, 3)))
    await log.append(reply(1, b"x"), reply(2, b"y"), completed(2))
    found = await log.unread_answers(after=0, limit=9)
    assert [row.task for row in found] == [1]
    assert await log.unread_answers(after=1, limit=9) == []


async def test_a_re_asked_answer_stays_the_one_that_counts_until_the_next(
    log: Log,
) -> None:
    await log.append(plan_first(1), started(1))
    await log.append(reply(1, b"first", reask="no_list"), started(1, 2))
    assert await log.unread_answers(after=0, limit=9) == []
    assert await log.in_flight() == [(1, 2)]
    await log.append(failed(1, 2, retry_in_s=None))
    (row,) = await log.unread_answers(after=0, limit=9)
    stored = await log.reply(row.task)
    assert stored is not None
    assert (stored.body, stored.answered.attempt) == (b"first", 1)


async def test_reopening_forgets_the_reply_and_starts_the_bound_anew(log: Log) -> None:
    await log.append(plan_first(2), started(1), failed(1), started(1, 2))
    await log.append(reply(1, b"x", 2), completed(1, 2, unparsed="truncated"))
    await log.append(TasksReopened(tasks=[1], by="someone"))
    (row,) = await log.tasks([1])
    assert (row.state, row.reply_seq, row.reason) == (TaskState.QUEUED, None, None)
    assert (row.attempts, row.tries) == (2, 0)
    assert await log.reply(1) is None
    await log.append(started(1, 3))
    (row,) = await log.tasks([1])
    assert (row.attempts, row.tries) == (3, 1)
    with pytest.raises(IllegalMove, match="queued"):
        await log.append(TasksReopened(tasks=[2], by="someone"))


async def test_a_failed_task_has_an_error_and_no_reply(log: Log) -> None:
    await log.append(plan_first(1), started(1))
    await log.append(
        failed(1, retry_in_s=None),
        TaskFailed(task=1, attempt=1, error="Overloaded"),
    )
    (row,) = await log.tasks([1])
    assert (row.state, row.error) == (TaskState.FAILED, "Overloaded")
    assert await log.reply(1) is None


async def test_a_refused_answer_does_not_count_once_the_task_has_failed(
    log: Log,
) -> None:
    await log.append(plan_first(2), started(1), started(2))
    await log.append(reply(1, b"first", reask="no_list"), started(1, 2))
    await log.append(failed(1, 2, retry_in_s=None))
    await log.append(TaskFailed(task=1, attempt=2, error="Timeout"))
    await log.append(reply(2, b"first", reask="no_list"), started(2, 2), failed(2, 2))
    await log.append(TaskSkipped(task=2, reason="cancelled"))
    assert [await log.reply(task) for task in (1, 2)] == [None, None]


async def test_a_task_cannot_be_completed_without_a_reply(log: Log) -> None:
    await log.append(plan_first(1), started(1))
    with pytest.raises(IllegalMove, match="no reply"):
        await log.append(completed(1))


async def test_an_answer_may_come_without_a_request_of_ours(log: Log) -> None:
    await log.append(plan_first(1), reply(1, b"made elsewhere"), completed(1))
    (row,) = await log.tasks([1])
    assert (row.state, row.attempts) == (TaskState.COMPLETED, 1)
    assert await log.started(1) is None


async def test_a_family_is_the_first_stage_task_and_all_that_descend_from_it(
    log: Log,
) -> None:
    await log.append(plan([task(1), task(2)]))
    later = [
        task(3, stage="judge", root=2),
        task(4, stage="judge", root=1),
        task(5, stage="judge", root=2),
    ]
    await log.append(plan(later, first=3))
    assert [row.task for row in await log.family(2)] == [2, 3, 5]
    assert [row.task for row in await log.family(1)] == [1, 4]
    assert await log.family(9) == []


async def test_a_group_is_what_shares_stage_model_replicate_and_key(log: Log) -> None:
    rows = [
        task(1, group="g"),
        task(2, group="h"),
        task(3, group="g"),
        task(4, group="g", model="m-small"),
        task(5, group="g", replicate=2),
        task(6, group="g", stage="judge"),
        task(7),
    ]
    await log.append(plan(rows))
    assert [r.task for r in await log.group("ask", "m-large", 1, "g")] == [1, 3]
    assert not await log.group_is_open("ask", "m-large", 1, "unknown")
    for number in (1, 3):
        assert await log.group_is_open("ask", "m-large", 1, "g")
        await log.append(TaskSkipped(task=number, reason="cancelled"))
    assert not await log.group_is_open("ask", "m-large", 1, "g")
    assert await log.group_is_open("ask", "m-small", 1, "g")


async def test_the_latest_request_of_a_task_is_known_by_its_hash(log: Log) -> None:
    await log.append(plan_first(1))
    assert await log.started(1) is None
    await log.append(started(1), failed(1), started(1, 2))
    assert await log.started(1) == started(1, 2).request_sha256
    assert await log.started(99) is None


async def test_a_task_costs_what_all_its_answers_did(log: Log) -> None:
    await log.append(plan_first(2))
    await log.append(started(1))
    await log.append(reply(1, b"a", cost_usd=0.25, reask="no number in it"))
    await log.append(started(1, 2))
    await log.append(failed(1, 2))
    await log.append(started(1, 3))
    await log.append(reply(1, b"b", 3, cost_usd=0.5, reask="no number in it"))
    await log.append(started(1, 4))
    await log.append(reply(1, b"c", 4, cost_usd=1.0), Entry(event=completed(1, 4)))
    await log.append(TasksReopened(tasks=[1], by="me"))
    await log.append(started(1, 5))
    await log.append(reply(1, b"d", 5, cost_usd=2.0))
    first, second = await log.tasks([1, 2])
    assert first.cost_usd == 3.75
    assert second.cost_usd is None
