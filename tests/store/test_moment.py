"""Moments are found by number and by time, and tell who was at work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.database import LogReader, open_reader
from store.errors import NoSuchMoment
from store.log.sqlite import SqliteLog
from store.read.status import scorings
from store.time_travel import absences, moment_at, moment_named, moment_of
from tests.store.logs import SCORED, taken_up_again, written
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import RUN_STARTED

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
        ("0", "go from 1 to 6"),
        ("7", "go from 1 to 6"),
        ("2025-12-31T23:59:59Z", "had not begun"),
        ("-4m", "had not begun"),
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
