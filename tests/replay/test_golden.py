"""Logs of every version ever written are read, checked and gone on with."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store import encoding
from store.database import APPLICATION_ID, SQL, connect, open_reader
from store.encoding import UPCASTERS, upcast
from store.errors import NewerLog
from store.events import KINDS, Entry, UnknownEvent
from store.log.projections import rebuild
from store.log.sqlite import SqliteLog
from store.read.status import status
from store.read.tasks import events, parts
from store.tables import last_seq, payload, task_events
from store.time_travel import LogPrefix, moment_of
from store.verify import TABLES, check_schema, verify
from tests.replay.every_kind import ENTRIES, PART, all_entries
from tests.replay.write_golden import (
    GOLDEN,
    OLD_FACTS,
    OLD_FAILED,
    OLD_STARTED,
    RELEASE,
)
from tests.store.memory_log import FakeClock

LOGS = sorted(GOLDEN.glob("*.sql"))
ADDED = 2
"""Events that follow the entries: of them, one is of a version that never was."""


def attempt_failed_0(fields: dict[str, Any]) -> dict[str, Any]:
    """The step of a version that never was, for this test alone."""
    old = dict(fields)
    return {
        "error": old.pop("class"),
        "latency_ms": old.pop("latency_s") * 1000,
        "message": old.pop("text"),
        **old,
    }


@pytest.fixture
def upcaster(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {**UPCASTERS, ("attempt_failed", 0): attempt_failed_0}
    monkeypatch.setattr(encoding, "UPCASTERS", steps)


@pytest.fixture(params=LOGS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A golden log, as the file it was."""
    target = tmp_path / "log.db"
    with closing(connect(target)) as conn:
        conn.execute(SQL["page_size"])
        conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        conn.execute(SQL["journal_mode"])
        conn.executescript(request.param.read_text(encoding="utf-8"))
    return target


@pytest.fixture
def entries(request: pytest.FixtureRequest, path: Path) -> list[Entry]:
    """What was written into it."""
    name = request.node.callspec.params["path"].stem
    if name in ENTRIES:
        return ENTRIES[name]
    with open_reader(path) as reader:
        return all_entries()[: last_seq(reader) - ADDED]


def test_there_is_a_golden_log_and_it_holds_every_kind() -> None:
    assert {log.stem for log in LOGS if log.stem.startswith("log-")} == set(ENTRIES)
    assert RELEASE in {log.stem for log in LOGS}, (
        "run python -m tests.replay.write_golden"
    )
    held = {type(entry.event) for entries in ENTRIES.values() for entry in entries}
    assert held == set(KINDS.values())


@pytest.mark.usefixtures("upcaster")
def test_every_event_comes_back_as_it_was_written(
    path: Path, entries: list[Entry]
) -> None:
    written = [entry.event for entry in entries] + [OLD_STARTED, OLD_FAILED]
    with open_reader(path) as reader:
        found = events(reader)
        payloads = [payload(reader, row.seq) for row in found]
        assert parts(reader, [PART.sha256]) == {PART.sha256: PART.data}
    assert [row.event for row in found] == written
    assert payloads == [entry.payload for entry in entries] + [None, None]


@pytest.mark.usefixtures("upcaster")
def test_it_is_sound_and_its_projections_are_what_this_code_makes(
    path: Path, entries: list[Entry]
) -> None:
    with open_reader(path) as reader:
        report = verify(reader)
        seen = status(reader)
    assert report.faults == ()
    assert report.events == len(entries) + 2
    tasks = seen.tasks
    assert (tasks.planned, tasks.completed, tasks.skipped, tasks.open) == (5, 1, 2, 2)
    assert (seen.attempts.started, seen.attempts.unknown) == (5, 1)
    assert seen.scorings == (1,)


def test_a_bundle_may_hold_it_with_the_views_and_indexes_of_its_version(
    path: Path,
) -> None:
    # a statement that changes stays in a script of its own, which verify knows
    check_schema(path)


@pytest.mark.usefixtures("upcaster")
def test_it_can_be_gone_on_with(path: Path, entries: list[Entry]) -> None:
    async def go_on() -> None:
        async with await SqliteLog.open(path, clock=FakeClock(), owner="x") as log:
            assert log.epoch == 2
            assert (
                await log.append(
                    OLD_STARTED.__class__(task=3, attempt=2, request_sha256="d" * 64)
                )
                == len(entries) + 3
            )

    asyncio.run(go_on())
    with open_reader(path) as reader:
        assert verify(reader).faults == ()


def test_without_its_upcaster_an_old_event_is_named_by_verify(
    path: Path, entries: list[Entry]
) -> None:
    with open_reader(path) as reader:
        (fault, *_) = verify(reader).faults
    assert (fault.what, fault.where) == ("event", f"event {len(entries) + 2}")
    assert fault.message == "version 0 of attempt_failed cannot be read any more"


def test_without_its_upcaster_an_old_event_is_shown_as_it_was_stored(
    path: Path,
) -> None:
    with open_reader(path) as reader:
        row = events(reader)[-1]
    assert row.kind == "attempt_failed"
    assert row.event == UnknownEvent(kind=row.kind, version=0, facts=OLD_FACTS)


def test_old_and_new_facts_mean_the_same() -> None:
    import msgspec  # noqa: PLC0415 - only to read the old facts

    steps = {("attempt_failed", 0): attempt_failed_0}
    old = msgspec.json.decode(OLD_FACTS)
    new = upcast("attempt_failed", 0, 1, old, steps)
    assert msgspec.convert(new, type(OLD_FAILED)) == OLD_FAILED
    assert "class" in old  # the row's own fields are left as they were


def test_a_log_with_later_events_is_read_and_not_written(
    path: Path, tmp_path: Path
) -> None:
    later = tmp_path / "later" / "log.db"
    later.parent.mkdir()
    shutil.copy(path, later)
    with sqlite3.connect(later) as conn:
        conn.execute("UPDATE kind SET ver = 2 WHERE name = 'task_completed'")
        conn.execute("DROP TRIGGER event_no_update")
        conn.execute("UPDATE event SET ver = 2 WHERE seq = 8")
    conn.close()
    with pytest.raises(NewerLog, match="it can still be read"):
        asyncio.run(SqliteLog.open(later, clock=FakeClock(), owner="x"))
    with open_reader(later) as reader:
        (row,) = events(reader, after=7, limit=1)
        assert isinstance(row.event, UnknownEvent)
        assert (row.kind, row.event.version) == ("task_completed", 2)
        assert status(reader).tasks.planned == 5


@pytest.mark.usefixtures("upcaster")
def test_kinds_that_are_not_known_are_kept_and_passed_over(
    path: Path, entries: list[Entry]
) -> None:
    with sqlite3.connect(path) as conn:
        conn.execute("UPDATE kind SET name = 'of_the_future' WHERE name = 'run_paused'")
    conn.close()
    with open_reader(path) as reader:
        kinds = [row.kind for row in events(reader)]
        own = task_events(reader, 1)
    with closing(connect(path)) as conn:
        rebuild(conn)
        (paused,) = conn.execute("SELECT count(*) FROM pause").fetchone()
    assert paused == 0
    assert kinds.count("of_the_future") == 1
    assert len(kinds) == len(entries) + 2
    assert len(own) == 5


@pytest.mark.usefixtures("upcaster")
def test_an_old_log_is_looked_back_on_as_it_would_be_rebuilt(path: Path) -> None:
    with open_reader(path) as whole, LogPrefix(path) as prefix:
        for seq in range(1, last_seq(whole) + 1):
            assert prefix.move_to(moment_of(whole, seq))
        with prefix.open_reader() as reader:
            seen = {t: reader.execute(SQL[f"rows_{t}"]).fetchall() for t in TABLES}
    with closing(connect(path)) as conn:
        rebuild(conn)
        rebuilt = {t: conn.execute(SQL[f"rows_{t}"]).fetchall() for t in TABLES}
    assert seen == rebuilt
