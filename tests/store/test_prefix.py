"""Looking back: a log's prefix is what the log was, to every view and row."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.database import SQL, LogReader, open_reader
from store.errors import StoreError
from store.events import Entry
from store.log.sqlite import SqliteLog
from store.read.status import status
from store.read.tasks import events
from store.tables import last_seq, payload
from store.time_travel import LogPrefix, moment_of
from tests.store.logs import COURSE, written
from tests.store.looks import Seen, seen
from tests.store.memory_log import FakeClock
from tests.store.samples import courses


def lived(
    path: Path, entries: Sequence[Entry], sizes: Iterator[int]
) -> dict[int, Seen]:
    """Write a log in units of some sizes, and look at it after each commit."""
    looks: dict[int, Seen] = {}

    async def live() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        ) as log:
            start = 0
            with open_reader(path) as reader:
                while start < len(entries):
                    end = start + next(sizes)
                    await log.append(*entries[start:end])
                    looks[await log.last_seq()] = seen(reader)
                    start = end

    asyncio.run(live())
    return looks


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(entries=courses(), data=st.data())
def test_every_prefix_is_what_was_live(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.db"
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1), label="units")
    looks = lived(path, entries, (sizes[n % len(sizes)] for n in range(10_000)))
    with open_reader(path) as whole, LogPrefix(path) as moving:
        for seq, look in looks.items():
            moment = moment_of(whole, seq)
            assert moving.move_to(moment)
            with moving.open_reader() as reader:
                assert seen(reader) == look
        at = data.draw(st.sampled_from(sorted(looks)), label="at once")
        with LogPrefix(path) as fresh:
            assert fresh.move_to(moment_of(whole, at))
            with fresh.open_reader() as reader:
                assert seen(reader) == looks[at]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "log.db", *COURSE)


def at(path: Path, seq: int, prefix: LogPrefix) -> LogReader:
    with open_reader(path) as whole:
        prefix.move_to(moment_of(whole, seq))
    return prefix.open_reader()


def test_nothing_later_can_be_seen_and_what_is_there_has_its_body(path: Path) -> None:
    with LogPrefix(path) as prefix, at(path, 4, prefix) as reader:
        assert last_seq(reader) == 4
        assert [row.seq for row in events(reader, after=2)] == [3, 4]
        assert payload(reader, 4) == b"one"
        assert payload(reader, 2) is not None
        assert events(reader, after=4) == []


def test_a_reader_follows_its_prefix(path: Path) -> None:
    with LogPrefix(path) as prefix, at(path, 3, prefix) as reader:
        before = status(reader).tasks.completed
        at(path, 5, prefix).close()
        assert (before, status(reader).tasks.completed) == (0, 1)


def test_a_look_back_writes_nothing(path: Path) -> None:
    before = hashlib.sha256(path.read_bytes()).digest()
    with LogPrefix(path) as prefix, at(path, 4, prefix) as reader:
        for statement in ("DELETE FROM main.counts", "DELETE FROM log.counts"):
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute(statement)
    assert hashlib.sha256(path.read_bytes()).digest() == before


def test_a_move_that_is_not_wanted_any_more_leaves_everything(path: Path) -> None:
    with LogPrefix(path) as prefix, at(path, 3, prefix) as reader:
        before = seen(reader)
        with open_reader(path) as whole:
            moment = moment_of(whole, last_seq(whole))
        assert not prefix.move_to(moment, should_continue=lambda _: False)
        assert (prefix.seq, seen(reader)) == (3, before)


def test_what_was_saved_is_moved_on_from_there(path: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.db"
    with LogPrefix(path) as prefix:
        at(path, 4, prefix).close()
        prefix.save(saved)
        with at(path, 9, prefix) as reader:
            expected = seen(reader)
    with LogPrefix(path, saved=saved) as again:
        assert again.seq == 4
        with at(path, 9, again) as reader:
            assert seen(reader) == expected


def test_its_files_are_gone_when_it_is_closed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    with LogPrefix(path):
        assert list(room.iterdir())
    assert not list(room.iterdir())


def test_pages_of_a_prefix_are_found_by_key_as_those_of_a_log_are(path: Path) -> None:
    with LogPrefix(path) as prefix, at(path, 9, prefix) as reader:
        for name, values in (
            ("last_seq", ()),
            ("tail", ()),
            ("events", (3, 5)),
            ("payload", (4,)),
            ("event_times", ("[3]",)),
        ):
            plan = [
                row[-1]
                for row in reader.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", values)
            ]
            assert not [step for step in plan if "SCAN log." in step], plan


def test_without_room_there_is_a_sentence(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match="TMPDIR"):
        LogPrefix(path)
