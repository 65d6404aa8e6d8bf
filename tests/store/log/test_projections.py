"""Projections that are written later are those of a rebuild, whatever happens."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.database import SQL, connect, open_reader, read_transaction
from store.errors import CorruptLog, Fenced, IllegalMove
from store.events import Entry, RunDrained, TasksPlanned
from store.log import committer, opening, projections
from store.log.opening import check_tail
from store.log.projections import rebuild
from store.log.sqlite import SqliteLog
from store.log.writer import PreparedEntry, Writer
from store.read.status import status
from store.runs import RunFolder
from store.tables import applied_seq, last_seq, visible_seq
from store.verify import TABLES, verify
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import (
    RUN_STARTED,
    completed,
    courses,
    failed,
    plan_first,
    reply,
    started,
)

Rows: TypeAlias = dict[str, list[tuple[object, ...]]]


def _rows(conn: sqlite3.Connection) -> Rows:
    return {table: conn.execute(SQL[f"rows_{table}"]).fetchall() for table in TABLES}


def _opened(conn: sqlite3.Connection, path: Path) -> Writer:
    if not conn.execute(SQL["tables"]).fetchone()[0]:
        opening.create(
            conn, path, run_id="r1", owner="tester", config_sha256=b"", now_us=START_US
        )
    opened = opening.open_for_writing(conn, path, owner="tester", now_us=START_US)
    return Writer(conn, epoch=opened.epoch, position=opened.position)


@contextmanager
def _writer(path: Path) -> Iterator[Writer]:
    with closing(connect(path)) as conn:
        yield _opened(conn, path)


def _commit(writer: Writer, *units: Sequence[object]) -> list[int | IllegalMove]:
    return writer.commit(
        [[PreparedEntry.of(e, START_US) for e in unit] for unit in units]  # type: ignore[arg-type]
    )


def _killed(path: Path, folder: Path) -> Path:
    """The files as they lie there when their writer is killed."""
    folder.mkdir()
    for file in (path, path.with_name(f"{path.name}-wal")):
        if file.exists():
            shutil.copy(file, folder / file.name)
    return folder / path.name


def _reopened(path: Path) -> tuple[Rows, Rows]:
    """The rows after the log was opened again, and after a rebuild."""
    with closing(connect(path)) as conn:
        _opened(conn, path)
        rows = _rows(conn)
        rebuild(conn)
        return rows, _rows(conn)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(entries=courses(), data=st.data())
def test_a_log_that_was_killed_anywhere_reopens_as_it_would_be_rebuilt(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    path = folder / "log.db"
    kill_after = data.draw(st.integers(1, len(entries)), label="killed after")
    most = data.draw(st.sampled_from([1, 3, 4096]), label="held at most")
    with pytest.MonkeyPatch.context() as patch, _writer(path) as writer:
        patch.setattr(projections, "MOST_EVENTS", most)
        at = 0
        while at < kill_after:
            size = data.draw(st.integers(1, 4))
            _commit(writer, entries[at : at + size])
            at += size
            if data.draw(st.booleans()):
                writer.write_projections()
        killed = _killed(path, folder / "killed")
    with open_reader(killed) as reader:
        check_tail(reader, killed)
        assert verify(reader).faults == ()
    rows, rebuilt = _reopened(killed)
    assert rows == rebuilt


def test_a_refused_unit_leaves_no_trace_in_what_is_held(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with _writer(path) as writer:
        _commit(writer, [RUN_STARTED, plan_first(3)])
        _commit(writer, [started(1)])
        outcomes = _commit(
            writer, [reply(1, b"{}")], [started(2), completed(2)], [started(3)]
        )
        assert [type(outcome) for outcome in outcomes] == [int, IllegalMove, int]
        writer.write_projections()
    with open_reader(path) as reader:
        assert visible_seq(reader) == last_seq(reader) == 5
        rows = _rows(reader)
    assert rows == _reopened(path)[1]


def test_a_writer_that_was_replaced_writes_no_projections(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with _writer(path) as replaced:
        _commit(replaced, [RUN_STARTED, plan_first(3)])
        _commit(replaced, [started(1), failed(1)])
        with _writer(path) as writer:
            _commit(writer, [started(1, 2)])
            with pytest.raises(Fenced):
                replaced.write_projections()
            with pytest.raises(Fenced):
                _commit(replaced, [started(2)])
            replaced.end()
            writer.write_projections()
            with open_reader(path) as reader:
                rows = _rows(reader)
    assert rows == _reopened(path)[1]


def test_what_others_act_on_is_shown_with_its_event(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with _writer(path) as writer, open_reader(path) as reader:
        _commit(writer, [RUN_STARTED, plan_first(3)])
        _commit(writer, [started(1)])
        assert (visible_seq(reader), last_seq(reader)) == (2, 3)
        assert status(reader).last_seq == 2
        assert status(reader).tasks.running == 0
        _commit(writer, [RunDrained(by="operator", why="asked to", open=3)])
        assert visible_seq(reader) == last_seq(reader) == 4
        assert status(reader).signs.phase == "run_drained"
        assert status(reader).tasks.running == 1


def test_much_is_never_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.db"
    monkeypatch.setattr(projections, "MOST_TASKS", 10)
    with _writer(path) as writer, open_reader(path) as reader:
        _commit(writer, [RUN_STARTED])
        _commit(writer, [plan_first(9)])
        assert visible_seq(reader) == 1
        block = plan_first(2)
        more = Entry(
            event=TasksPlanned(first=10, count=2, consumed=11), payload=block.payload
        )
        _commit(writer, [more])
        assert visible_seq(reader) == 3
        assert status(reader).tasks.planned == 11


@pytest.mark.asyncio
async def test_readers_see_task_states_without_a_further_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "WRITE_EVERY_S", 0.0)
    path = tmp_path / "log.db"
    async with await SqliteLog.create(
        path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
    ) as log:
        await log.append(RUN_STARTED, plan_first(1))
        await log.append(started(1))
        await log.payload(1)  # a turn of the thread, which writes what is due before
        await log.payload(1)
        with open_reader(path) as reader:
            assert visible_seq(reader) == 3


@pytest.mark.asyncio
async def test_every_commit_is_followed_by_its_projections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the queue takes longer than projections may wait."""
    due: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def noted(delay: float, *args: Any) -> asyncio.TimerHandle:
        due.append(delay)
        return call_later(0.0, *args)

    monkeypatch.setattr(committer, "BATCH_EVENTS", 1)
    path = tmp_path / "log.db"
    async with await SqliteLog.create(
        path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
    ) as log:
        monkeypatch.setattr(loop, "call_later", noted)
        await log.append(RUN_STARTED, plan_first(60))
        for number in range(1, 61):
            log.append_nowait(started(number))
        while log.statistics().events < 62:
            await log.payload(1)  # a turn of the thread
        for _ in range(3):
            await log.payload(1)
        with open_reader(path) as reader:
            assert visible_seq(reader) == last_seq(reader) == 62
        monkeypatch.undo()
    assert set(due) == {projections.WRITE_EVERY_S}
    assert projections.WRITE_EVERY_S <= 0.25


def test_the_wal_stays_small_beside_a_reader(tmp_path: Path) -> None:
    """Both kinds of transactions add to it; SQLite resets it every 8 MiB."""
    path = tmp_path / "log.db"
    wal = path.with_name(f"{path.name}-wal")
    noise = Random(0)
    largest = written = 0
    with _writer(path) as writer, open_reader(path) as reader:
        _commit(writer, [RUN_STARTED, plan_first(1000)])
        for number in range(1, 1001):
            body = noise.randbytes(64 << 10)
            written += len(body)
            _commit(writer, [started(number)], [reply(number, body), completed(number)])
            if number % 5 == 0:
                writer.write_projections()
                with read_transaction(reader):
                    assert status(reader).tasks.completed == number
            largest = max(largest, wal.stat().st_size)
    assert written > 7 * (8 << 20)
    assert largest < 2 * (8 << 20)


@pytest.mark.asyncio
async def test_the_log_itself_reads_what_was_appended_before(tmp_path: Path) -> None:
    async with await SqliteLog.create(
        tmp_path / "log.db",
        run_id="r1",
        config_sha256=b"",
        clock=FakeClock(),
        owner="tester",
    ) as log:
        await log.append(RUN_STARTED, plan_first(2))
        log.append_nowait(started(1))
        assert await log.in_flight() == [(1, 1)]
        log.append_nowait(reply(1, b"{}"))
        stored = await log.reply(1)
        assert stored is not None
        assert stored.body == b"{}"
        log.append_nowait(completed(1))
        assert [event.kind for event in await log.task_events(1)] == [
            "attempt_started",
            "attempt_answered",
            "task_completed",
        ]


def test_a_run_that_was_killed_is_brought_up_to_date_for_its_readers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.db"
    with _writer(path) as writer:
        _commit(writer, [RUN_STARTED, plan_first(3)])
        _commit(writer, [started(1), started(2)])
        killed = _killed(path, tmp_path / "killed")
    folder = RunFolder(killed.parent)
    with folder.open_reader() as reader:
        assert (applied_seq(reader), last_seq(reader)) == (2, 4)
    folder.refresh()
    with folder.open_reader() as reader:
        assert applied_seq(reader) == 4
        assert status(reader).tasks.running == 2
        rows = _rows(reader)
    assert rows == _reopened(killed)[1]


@pytest.mark.parametrize("seq", [3, 5])
def test_a_task_that_does_not_fit_the_folded_events_is_damage(
    tmp_path: Path, seq: int
) -> None:
    path = tmp_path / "log.db"
    with _writer(path) as writer:
        _commit(writer, [RUN_STARTED, plan_first(1)])
        _commit(writer, [started(1)])
        _commit(writer, [reply(1, b"{}")])
        writer.write_projections()
        _commit(writer, [completed(1)])
    with open_reader(path) as reader:
        check_tail(reader, path)
    with closing(connect(path)) as conn:
        conn.execute("UPDATE task SET event_seq = ?", (seq,))
    with open_reader(path) as reader, pytest.raises(CorruptLog, match="task 1"):
        check_tail(reader, path)
