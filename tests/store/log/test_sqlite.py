"""What only the log on disk can get wrong: opening, fencing, a full disk, order.

What is committed together, and what becomes of it when that fails.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path

import pytest

from store.database import connect, open_reader
from store.errors import (
    CommitRefused,
    CorruptLog,
    Fenced,
    IllegalMove,
    LogBehind,
    LogBusy,
    LogClosed,
    NewerLog,
    NotALog,
    RunExists,
    StoreError,
)
from store.events import BatchEnded, BatchPrepared, Entry, LimitObserved
from store.log import committer
from store.log import sqlite as sqlite_log
from store.log.sqlite import SqliteLog
from store.read.status import status
from store.read.tasks import events, parts
from store.read.usage import open_batches
from store.verify import verify
from tests.store.logs import create, edit, refused, reopen
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, blob, completed, plan_first, reply, started

# ruff: noqa: ASYNC240 - the files are tiny, and nothing else runs


pytestmark = pytest.mark.asyncio


GAP = """
INSERT INTO event
SELECT seq + 7, ts_us, epoch, kind, ver, task, attempt, prev, enc, blen, facts
FROM event WHERE seq = 1
"""


async def test_every_opening_is_a_new_epoch_by_a_new_writer(path: Path) -> None:
    async with await create(path) as log:
        assert (log.epoch, log.run_id, log.config_sha256) == (1, "r1", b"c" * 32)
        await log.append(RUN_STARTED)
    async with await reopen(path) as log:
        assert (log.epoch, log.run_id, log.config_sha256) == (2, "r1", b"c" * 32)
        await log.append(plan_first(1))
        assert [row.epoch for row in await log.events()] == [1, 2]
    with open_reader(path) as reader:
        writers = dict(reader.execute("SELECT writer, epoch FROM writer"))
    assert sorted(writers.values()) == [1, 2]


async def test_times_rise_even_when_the_clock_goes_back(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED)
    earlier = FakeClock(start_us=1000)
    async with await SqliteLog.open(path, clock=earlier, owner="tester") as log:
        await log.append(plan_first(1))
        first, second = await log.events()
        assert second.ts_us == first.ts_us + 1


async def test_a_second_writer_is_refused_while_the_first_lives(path: Path) -> None:
    async with await create(path):
        with pytest.raises(LogBusy, match="siftlog watch"):
            await reopen(path)
        with pytest.raises(LogBusy):
            await create(path)
    async with await reopen(path) as log:
        assert log.epoch == 2


async def test_a_log_is_not_made_where_one_is(path: Path) -> None:
    async with await create(path):
        pass
    with pytest.raises(RunExists, match="siftlog resume r1"):
        await create(path)


async def test_an_empty_file_left_by_a_crash_is_no_obstacle(path: Path) -> None:
    path.touch()
    async with await create(path) as log:
        assert await log.append(RUN_STARTED) == 1


async def test_a_writer_that_was_replaced_can_add_nothing(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED)
        edit(path, "UPDATE run SET epoch = epoch + 1")
        with pytest.raises(Fenced, match="taken this log over"):
            await log.append(plan_first(1))
        with pytest.raises(Fenced):
            await log.append(plan_first(1))
        with pytest.raises(Fenced):
            log.append_nowait(plan_first(1))
    with open_reader(path) as reader:
        assert len(events(reader)) == 1


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"not a database, surely" * 100, NotALog), (b"", NotALog)],
)
async def test_a_file_of_something_else_is_refused(
    path: Path, content: bytes, error: type[StoreError]
) -> None:
    path.write_bytes(content)
    with pytest.raises(error, match="siftlog runs"):
        await reopen(path)
    with pytest.raises(error, match="siftlog runs"):
        open_reader(path)
    assert path.read_bytes() == content


async def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    edit(path, "CREATE TABLE recipes(name TEXT)")
    before = path.read_bytes()
    with pytest.raises(NotALog, match="not a siftlog log"):
        await reopen(path)
    with pytest.raises(RunExists):
        await create(path)
    assert path.read_bytes() == before


async def test_a_log_that_is_not_there_is_not_made_by_opening(path: Path) -> None:
    with pytest.raises(StoreError, match="siftlog runs"):
        await reopen(path)
    assert not path.exists()


async def test_a_log_with_tables_of_a_later_version_is_refused(path: Path) -> None:
    async with await create(path):
        pass
    edit(path, "UPDATE run SET schema_ver = 99")
    with pytest.raises(NewerLog, match="upgrade siftlog"):
        await reopen(path)
    with pytest.raises(NewerLog, match="upgrade siftlog"):
        open_reader(path)


@pytest.mark.parametrize(
    ("unlock", "statement"),
    [
        (
            "DROP TRIGGER event_no_update",
            "UPDATE event SET ts_us = ts_us + 1 WHERE seq = 2",
        ),
        ("DROP TRIGGER body_no_delete", "DELETE FROM body"),
        ("DROP TRIGGER chain_no_delete", "DELETE FROM chain WHERE last_seq = 2"),
        ("DROP TRIGGER event_no_delete", "DELETE FROM event WHERE seq = 2"),
    ],
)
async def test_a_change_in_the_last_commit_is_noticed_on_opening(
    path: Path, unlock: str, statement: str
) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED)
        await log.append(plan_first(2))
    edit(path, unlock, statement)
    with pytest.raises(CorruptLog, match="siftlog verify"):
        await reopen(path)


async def test_events_cannot_be_changed_deleted_or_replaced(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(1))
    for statement in (
        "UPDATE event SET ts_us = 0",
        "DELETE FROM event",
        "UPDATE body SET data = x'00'",
        "DELETE FROM body",
        "DELETE FROM chain",
        "INSERT OR REPLACE INTO event SELECT * FROM event WHERE seq = 1",
        "UPDATE OR IGNORE event SET seq = 9 WHERE seq = 2",
        GAP,
    ):
        with pytest.raises(sqlite3.IntegrityError, match=r"append-only|gap in seq"):
            edit(path, statement)


async def test_a_full_disk_ends_the_log_and_loses_nothing_acknowledged(
    path: Path,
) -> None:
    def small(at: Path) -> sqlite3.Connection:
        conn = connect(at)
        conn.execute("PRAGMA page_size = 8192")
        conn.execute("PRAGMA max_page_count = 60")
        return conn

    log = await create(path, connector=small)
    seqs = [await log.append(RUN_STARTED, plan_first(50))]

    async def fill() -> None:
        for number in range(1, 51):
            seqs.append(await log.append(started(number)))
            noise = random.Random(number).randbytes(8000)
            seqs.append(await log.append(reply(number, noise)))

    with pytest.raises(CommitRefused, match=r"full.*resume"):
        await fill()
    async with asyncio.TaskGroup() as group:
        for number in range(40, 50):
            group.create_task(refused(log, number))
    with pytest.raises(LogClosed):
        log.append_nowait(started(50))
    await log.close()
    async with await reopen(path) as log:
        assert await log.last_seq() == seqs[-1] > 2
        await log.append(started(50))
    with open_reader(path) as reader:
        assert verify(reader).is_sound


async def test_a_message_part_is_stored_once(path: Path) -> None:
    paper = blob(b"the whole paper " * 4000)
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(30))
        for number in range(1, 31):
            question = blob(f"question {number}".encode())
            await log.append(
                Entry(event=started(number), payload=b"{}", blobs=(paper, question))
            )
        assert log.statistics().bytes_written < 5000
    async with await reopen(path) as log:  # and not again by a later writer
        await log.append(reply(1, b"x", reask="no_list"))
        await log.append(Entry(event=started(1, 2), blobs=(paper,)))
    with open_reader(path) as reader:
        (count,) = reader.execute("SELECT count(*) FROM blob").fetchone()
        found = parts(reader, [paper.sha256, bytes(32)])
    assert count == 31
    assert found == {paper.sha256: paper.data}


async def test_projections_of_other_code_are_made_anew_on_opening(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(3))
        await log.append(started(1), reply(1, b"x"), completed(1))
    with open_reader(path) as reader:
        before = status(reader)
    edit(
        path,
        "UPDATE projection SET code_ver = 0",
        "UPDATE counts SET n = 77",
        "DELETE FROM task WHERE task = 2",
    )
    async with await reopen(path):
        pass
    with open_reader(path) as reader:
        assert status(reader) == before
        assert verify(reader).is_sound


async def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nowhere" / "log.db", tmp_path / "file" / "log.db"):
        with pytest.raises(StoreError, match="check that its folder exists"):
            await create(path)


async def test_a_heartbeat_that_cannot_be_written_ends_the_log(path: Path) -> None:
    log = await create(path)
    edit(path, "DROP TABLE heartbeat")
    with pytest.raises(LogClosed, match="resume the run"):
        await log.heartbeat()
    with pytest.raises(LogClosed):
        await log.append(RUN_STARTED)
    await log.close()


async def test_a_damaged_file_is_a_sentence_to_its_reader(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(2))
        edit(path, "DROP VIEW tasks")
        with pytest.raises(CorruptLog, match="siftlog verify"):
            await log.tasks([1])


async def test_a_file_system_without_wal_is_refused_in_a_sentence(path: Path) -> None:
    def no_wal(_path: Path) -> sqlite3.Connection:
        return sqlite3.connect(":memory:", isolation_level=None)

    with pytest.raises(StoreError, match="local disk"):
        await create(path, connector=no_wal)


async def test_everybody_in_a_failed_batch_is_told(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(20))
        edit(path, "DROP TABLE chain")
        async with asyncio.TaskGroup() as group:
            for number in range(1, 21):
                group.create_task(refused(log, number))


async def test_a_plan_that_cannot_be_read_is_refused_and_the_log_goes_on(
    path: Path,
) -> None:
    async with await create(path) as log:
        planned = plan_first(1).event
        for payload in (None, b"", b"[{}]"):
            with pytest.raises(IllegalMove, match="this payload"):
                await log.append(Entry(event=planned, payload=payload))
        assert await log.append(plan_first(1)) == 1


async def test_a_mistake_of_our_own_is_told_and_never_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object) -> None:
        raise AttributeError("no such thing")

    log = await create(path)
    monkeypatch.setattr("store.tables.write_fold", mistaken)
    with pytest.raises(LogClosed, match="report it") as caught:
        await log.append(RUN_STARTED)
    assert isinstance(caught.value.__cause__, AttributeError)
    await log.close()
    with open_reader(path) as reader:
        assert events(reader) == []


async def test_a_burst_is_committed_in_few_transactions(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(500))
        before = log.statistics().commits
        async with asyncio.TaskGroup() as group:
            for number in range(1, 501):
                group.create_task(_append(log, number))
        figures = log.statistics()
        assert figures.events == 502
        assert figures.commits - before < 50
        assert figures.wal_bytes > 0


async def _append(log: SqliteLog, number: int) -> None:
    await log.append(started(number))


async def test_a_batch_is_bounded_and_the_rest_follows(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "BATCH_EVENTS", 10)
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(95))
        async with asyncio.TaskGroup() as group:
            for number in range(1, 96):
                group.create_task(_append(log, number))
        assert log.statistics().commits >= 1 + 95 // 10
        assert await log.last_seq() == 97


async def test_too_much_waiting_is_refused_without_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_log, "QUEUE_BYTES", 80)
    limit = LimitObserved(model="m", concurrency=1, in_flight=1)
    async with await create(path) as log:
        log.append_nowait(limit, limit)
        with pytest.raises(LogBehind, match="append and wait"):
            log.append_nowait(limit)
        assert await log.append(limit) == 3
        log.append_nowait(limit)
        assert log.statistics().queued_bytes > 0
    with open_reader(path) as reader:
        assert len(events(reader)) == 4


async def test_closing_commits_what_is_queued(path: Path) -> None:
    async with await create(path) as log:
        for number in range(3000):
            log.append_nowait(LimitObserved(model="m", concurrency=number, in_flight=0))
    with open_reader(path) as reader:
        assert len(events(reader, limit=5000)) == 3000


async def test_the_batch_that_is_open_longest_is_the_oldest(path: Path) -> None:
    clock = FakeClock()
    async with await create(path, clock=clock) as log:
        for key in ("ended", "first", "second"):
            await log.append(
                BatchPrepared(batch=key, model="m", form="openai", requests=2)
            )
            clock.advance(60)
        await log.append(BatchEnded(batch="ended", outcome="ended", requests=2))
        await log.append(plan_first(1))
    with open_reader(path) as reader:
        prepared = [event.ts_us for event in events(reader)][1]
        shown = open_batches(reader)
    assert (shown.count, shown.requests, shown.oldest_us) == (2, 4, prepared)
