"""What every log promises, asked of the one on SQLite and of the one in memory."""

from __future__ import annotations

import asyncio

import pytest

from store.errors import IllegalMove, LogClosed
from store.events import Entry, LimitObserved, RunFinished
from store.log.interface import Log
from store.task import TaskState
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, blob, completed, plan_first, reply, started

pytestmark = pytest.mark.asyncio


async def test_an_append_returns_the_seq_of_its_last_entry(log: Log) -> None:
    assert await log.last_seq() == 0
    assert await log.append(RUN_STARTED) == 1
    assert await log.append(plan_first(2), started(1), started(2)) == 4
    assert await log.last_seq() == 4


async def test_events_come_back_as_they_were_with_dense_seqs_and_rising_times(
    log: Log, clock: FakeClock
) -> None:
    events = [RUN_STARTED, started(1), completed(1, unparsed="no_list")]
    await log.append(events[0], plan_first(1), events[1])
    clock.advance(1.5)
    await log.append(reply(1, b"hello"), events[2])
    found = await log.events()
    assert [row.seq for row in found] == [1, 2, 3, 4, 5]
    assert [found[0].event, found[2].event, found[4].event] == events
    times = [row.ts_us for row in found]
    assert times == sorted(set(times))
    assert times[3] - times[2] >= 1_000_000
    assert {row.epoch for row in found} == {log.epoch}
    assert found[3].payload_bytes == len(b"hello")


async def test_events_are_read_on_from_a_seq_by_pages_and_by_kind(log: Log) -> None:
    await log.append(RUN_STARTED, plan_first(3), *map(started, (1, 2, 3)))
    assert [r.seq for r in await log.events(after=2, limit=2)] == [3, 4]
    kinds = ["attempt_started"]
    assert [r.seq for r in await log.events(after=3, kinds=kinds)] == [4, 5]
    rare = ["tasks_planned", "run_started"]
    assert [r.seq for r in await log.events(kinds=rare)] == [1, 2]
    assert [r.seq for r in await log.events(kinds=rare, limit=1)] == [1]
    both = ["tasks_planned", "attempt_started"]
    assert [r.seq for r in await log.events(kinds=both, limit=3)] == [2, 3, 4]
    assert await log.events(kinds=["no_such_kind"]) == []


@pytest.mark.parametrize("size", [0, 1, 511, 512, 70_000])
async def test_a_payload_comes_back_byte_for_byte(log: Log, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"\xff" * (size % 256)
    seq = await log.append(plan_first(1), started(1), reply(1, data))
    assert await log.payload(seq) == data
    assert await log.payload(seq - 1) is None
    assert await log.payload(seq + 1) is None
    stored = await log.reply(1)
    assert stored is not None
    assert stored.body == data


async def test_a_unit_is_recorded_whole_or_not_at_all(log: Log) -> None:
    await log.append(plan_first(2))
    with pytest.raises(IllegalMove, match="after task 2"):
        await log.append(started(1), started(2), plan_first(1))
    with pytest.raises(IllegalMove):
        await log.append(started(1), completed(1))
    assert await log.last_seq() == 1
    assert [row.state for row in await log.tasks([1, 2])] == [TaskState.QUEUED] * 2
    assert await log.append(started(1)) == 2


async def test_a_refused_unit_takes_no_other_down(log: Log) -> None:
    await log.append(plan_first(3))
    outcomes: dict[int, object] = {}

    async def append(number: int, *events: object) -> None:
        try:
            outcomes[number] = await log.append(*events)  # type: ignore[arg-type]
        except IllegalMove as error:
            outcomes[number] = error

    async with asyncio.TaskGroup() as group:
        group.create_task(append(1, started(1)))
        group.create_task(append(2, completed(2)))
        group.create_task(append(3, started(3)))
    assert (outcomes[1], outcomes[3]) == (2, 3)
    assert isinstance(outcomes[2], IllegalMove)


async def test_events_stand_in_the_order_of_the_calls(log: Log) -> None:
    async def _append(log: Log, limit: LimitObserved) -> None:
        await log.append(limit)

    async def _append_nowait(log: Log, limit: LimitObserved) -> None:
        log.append_nowait(limit)

    limits = [LimitObserved(model="m", concurrency=n, in_flight=0) for n in range(60)]
    async with asyncio.TaskGroup() as group:
        for number, limit in enumerate(limits):
            if number % 3:
                group.create_task(_append(log, limit))
            else:
                group.create_task(_append_nowait(log, limit))
    await log.append(RunFinished(completed=0, failed=0, skipped=0))
    assert [row.event for row in await log.events()][:-1] == limits


async def test_a_cancelled_appenders_event_is_recorded(log: Log) -> None:
    async def _append(log: Log) -> None:
        await log.append(started(1))

    await log.append(plan_first(1))
    async with asyncio.TaskGroup() as group:
        appender = group.create_task(_append(log))
        await asyncio.sleep(0)
        appender.cancel()
    assert appender.cancelled()
    await log.append(reply(1, b"x"))
    assert [row.seq for row in await log.events(after=1)] == [2, 3]


async def test_appending_nothing_is_a_mistake(log: Log) -> None:
    with pytest.raises(ValueError, match="nothing"):
        await log.append()


async def test_a_closed_log_takes_nothing_more(log: Log) -> None:
    log.append_nowait(RUN_STARTED)
    await log.close()
    with pytest.raises(LogClosed):
        await log.append(plan_first(1))
    with pytest.raises(LogClosed):
        log.append_nowait(plan_first(1))
    await log.close()


async def test_statistics_count_what_was_committed(log: Log) -> None:
    part = blob(b"a paper")
    await log.append(plan_first(1))
    await log.append(Entry(event=started(1), payload=b"{}", blobs=(part, part)))
    figures = log.statistics()
    assert (figures.events, figures.commits, figures.queued_bytes) == (2, 2, 0)
    assert figures.bytes_written >= len(part.data)


async def test_a_heartbeat_is_no_event(log: Log) -> None:
    await log.heartbeat()
    await log.heartbeat()
    assert await log.last_seq() == 0
