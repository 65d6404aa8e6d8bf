"""What is said of a log that may not be opened.

Moments are found by number and by time, and tell who was at work. Looking back: a log's
prefix is what the log was, to every view and row.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.database import SQL, LogReader, open_reader, unreadable
from store.errors import CorruptLog, NoSuchMoment, StoreError
from store.events import Entry
from store.log.sqlite import SqliteLog
from store.read.status import scorings, status
from store.read.tasks import events
from store.tables import last_seq, payload
from store.time_travel import LogPrefix, absences, moment_at, moment_named, moment_of
from tests.store.logs import COURSE, SCORED, taken_up_again, written
from tests.store.looks import Seen, seen
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import RUN_STARTED, courses


def test_with_too_many_files_open_no_log_is_called_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "log.db", [RUN_STARTED])
    free = os.dup(0)
    os.close(free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(StoreError, match="the number of open files") as caught:
            open_reader(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not isinstance(caught.value, CorruptLog)


def test_what_sqlite_quotes_of_a_statement_stays_on_one_line() -> None:
    quoted = sqlite3.DatabaseError('unrecognized token: ""KEY(a, b)\n) STRICT"')
    said = str(unreadable(Path("log.db"), quoted))
    assert said.startswith('log.db cannot be read (unrecognized token: ""KEY(a, b) )')
    assert len(said.splitlines()) == 1


def test_no_reader_can_write_anywhere(tmp_path: Path) -> None:
    path = written(tmp_path / "log.db", [RUN_STARTED])
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as conn:
        conn.execute("CREATE TABLE theirs(x)")
    before = other.read_bytes()
    with LogPrefix(path) as prefix, open_reader(path) as whole:
        prefix.move_to(moment_of(whole, 1))
        for reader in (open_reader(path), prefix.open_reader()):
            with closing(reader):
                assert reader.execute("PRAGMA query_only").fetchone() == (1,)
                # what is attached is not protected by the way the log was opened
                reader.execute("ATTACH ? AS other", (str(other),))
                for statement in (
                    "INSERT INTO other.theirs VALUES (1)",
                    "CREATE TEMP TABLE mine(x)",
                    "DELETE FROM event",
                ):
                    with pytest.raises(
                        sqlite3.OperationalError, match=r"readonly|view"
                    ):
                        reader.execute(statement)
    assert other.read_bytes() == before


S = 1_000_000
END_US = START_US + 170 * S
"""Of the work; a scoring comes later."""
MUCH_LATER_US = START_US + 10_000 * S


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogReader]:
    path = taken_up_again(tmp_path_factory.mktemp("run") / "log.db")
    with open_reader(path) as reader:
        yield reader


def test_a_number_is_that_event_at_its_own_time(reader: LogReader) -> None:
    moment = moment_named(reader, "2", MUCH_LATER_US)
    assert (moment.seq, moment.at_us) == (2, START_US + 10 * S)
    assert moment.is_alive
    assert moment == moment_of(reader, 2)


@pytest.mark.parametrize(
    ("name", "seq", "seconds"),
    [
        ("2026-01-01T00:00:00Z", 1, 0),
        ("2026-01-01T00:00:09.999999Z", 1, 9.999999),
        ("2026-01-01T01:00:10+01:00", 2, 10),
        ("2026-01-01T00:01:00+00:00", 3, 60),
        ("-60s", 4, 110),
        ("-1m", 4, 110),
        ("-1m0.5s", 3, 109.5),
        ("-0s", 5, 170),
    ],
)
def test_a_time_is_the_last_event_by_then(
    reader: LogReader, name: str, seq: int, seconds: float
) -> None:
    moment = moment_named(reader, name, MUCH_LATER_US)
    assert (moment.seq, moment.at_us) == (seq, START_US + round(seconds * S))


def test_what_was_scored_later_does_not_move_the_end(reader: LogReader) -> None:
    assert len(scorings(reader)) == 1
    assert moment_named(reader, "-0s", MUCH_LATER_US).at_us == END_US


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("0", "the log has events 1 to 6"),
        ("7", "the log has events 1 to 6"),
        ("2025-12-31T23:59:59Z", "had not started"),
        ("-4m", "had not started"),
        ("2026-01-01T00:00:10", "has no offset"),
        ("2026-01-01", "has no offset"),
        ("2030-01-01T00:00:00Z", "in the future"),
        ("yesterday", "is no moment"),
        ("-", "is no moment"),
        ("-5", "is no moment"),
        ("10m", "is no moment"),
        ("-999999999999d", "is no moment"),
        ("", "is no moment"),
        ("٣", "is no moment"),
    ],
)
def test_what_is_no_moment_of_the_run_is_refused(
    reader: LogReader, name: str, sentence: str
) -> None:
    with pytest.raises(NoSuchMoment, match=sentence):
        moment_named(reader, name, MUCH_LATER_US)


@pytest.mark.parametrize(
    ("seconds", "is_alive", "beat_s"),
    [
        (15, True, 15),  # it recorded more later
        (30, True, 30),
        (31, False, 30),  # killed: its last event was its last sign
        (100, False, 30),
        (110, True, 110),
        (150, True, 150),
        (171, False, 170),
    ],
)
def test_who_recorded_more_later_was_at_work(
    reader: LogReader, seconds: int, is_alive: bool, beat_s: int
) -> None:
    moment = moment_at(reader, START_US + seconds * S)
    assert (moment.is_alive, moment.last_sign_us) == (is_alive, START_US + beat_s * S)


def test_who_opened_the_log_was_there_before_recording_anything(tmp_path: Path) -> None:
    path = written(tmp_path / "log.db", [RUN_STARTED])
    clock = FakeClock(START_US + 100 * S)

    async def go_on() -> None:
        async with await SqliteLog.open(path, clock=clock, owner="tester") as log:
            clock.advance(5)
            await log.append(SCORED)

    asyncio.run(go_on())
    with open_reader(path) as reader:
        alive = [
            moment_at(reader, START_US + seconds * S).is_alive
            for seconds in (99, 100, 104, 105)
        ]
    assert alive == [False, True, True, True]


def test_a_process_that_is_there_now_was_there_since(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    clock = FakeClock()

    async def live() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=clock, owner="tester"
        ) as log:
            await log.append(RUN_STARTED)
            clock.advance(20)
            await log.heartbeat()

    asyncio.run(live())
    with open_reader(path) as reader:
        beaten = moment_at(reader, START_US + 20 * S)
        after = moment_at(reader, START_US + 21 * S)
        held = moment_at(reader, START_US + 21 * S, is_held=True)
    assert (beaten.is_alive, after.is_alive, held.is_alive) == (True, False, True)
    assert after.last_sign_us == START_US + 20 * S
    assert held.last_sign_us == held.at_us


def test_nobody_was_there_between_two_processes(reader: LogReader) -> None:
    assert absences(reader) == (
        (START_US + 30 * S, START_US + 110 * S),
        (END_US, END_US + 3600 * S),
    )


def test_a_log_of_one_process_has_no_absences(tmp_path: Path) -> None:
    with open_reader(written(tmp_path / "log.db", [RUN_STARTED])) as reader:
        assert absences(reader) == ()
    with open_reader(written(tmp_path / "empty.db")) as reader:
        assert absences(reader) == ()
        with pytest.raises(NoSuchMoment, match="never"):
            moment_at(reader, START_US)


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
                    seq = await log.last_seq()
                    looks[seq] = seen(reader)
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
