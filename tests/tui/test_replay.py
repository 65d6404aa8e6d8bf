"""A replay shows the run as it was, on, back, and where it is told to go.

Time in a replay: it moves at a speed, stands still, and passes over absences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.database import open_reader
from store.errors import NoSuchMoment, NotALog
from store.runs import RunFolder
from store.tables import last_seq
from store.time_travel import LogPrefix, moment_of
from tests.store.logs import COURSE, edit, taken_up_again, written
from tests.store.looks import Seen, seen
from tests.store.memory_log import START_US, FakeClock
from tui import replay as module
from tui.replay import (
    SPEEDS,
    STILL_S,
    LogTimeSpan,
    Playhead,
    Replay,
    format_speed,
    parse_speed,
)
from tui.sources.run_snapshot import RunSnapshot, RunSource

S = 1_000_000
Begin = Callable[..., Replay]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START_US + 100_000 * S)


@pytest.fixture
def begin(tmp_path: Path, clock: FakeClock) -> Iterator[Begin]:
    begun: list[Replay] = []

    def start(
        log: Callable[[Path], Path], speed: float = 10.0, at: str = "1"
    ) -> Replay:
        folder = RunFolder(tmp_path / "r1")
        folder.path.mkdir()
        log(folder.log)
        past = Replay(folder, clock, speed, begin=at)
        begun.append(past)
        past.settle()
        return past

    yield start
    for past in begun:
        past.close()


def moved(past: Replay) -> int:
    """The event it has come to once all that was due has been read."""
    past.drive()
    past.wait()
    return past.moment.seq


def as_it_was(past: Replay, seq: int) -> Seen:
    with (
        open_reader(past.run.log) as whole,
        LogPrefix(past.run.log) as prefix,
    ):
        prefix.move_to(moment_of(whole, seq))
        with prefix.open_reader() as reader:
            return seen(reader)


def now(past: Replay) -> Seen:
    with past.run.open_reader() as reader:
        return seen(reader)


def test_it_moves_with_our_time_at_its_speed(begin: Begin, clock: FakeClock) -> None:
    past = begin(taken_up_again)
    assert (past.moment.seq, past.clock.now_us()) == (1, START_US)
    clock.advance(0.9)
    assert (moved(past), past.clock.now_us()) == (1, START_US + 9 * S)
    clock.advance(0.1)
    assert moved(past) == 2
    assert now(past) == as_it_was(past, 2)
    clock.advance(2.0)
    assert (moved(past), past.is_over) == (3, False)


def test_the_killed_process_is_lost_until_the_run_is_taken_up(
    begin: Begin, clock: FakeClock
) -> None:
    past = begin(taken_up_again)
    states = []
    with RunSource(past.run, past.clock) as source:
        for seconds in (1.0, 2.0, 1.0, 1.0, 1.0):
            clock.advance(seconds)
            moved(past)
            sight = source.poll()
            assert isinstance(sight, RunSnapshot)
            states.append((sight.status.last_seq, sight.state))
    # at 10, 30 and 40 s; then an absence of 80 s is cut to 20, and at 10 s after it
    assert states == [(2, "live"), (3, "live"), (3, "lost"), (4, "live"), (4, "live")]


def test_it_stands_still_while_it_is_paused(begin: Begin, clock: FakeClock) -> None:
    past = begin(taken_up_again)
    past.pause()
    clock.advance(100)
    assert moved(past) == 1
    past.pause()
    clock.advance(1)
    assert moved(past) == 2


def test_a_step_is_an_event_and_pauses(begin: Begin, clock: FakeClock) -> None:
    past = begin(lambda path: written(path, *COURSE))
    for by, expected in ((1, 2), (1, 3), (1, 4), (-1, 3), (-2, 1), (-1, 1)):
        past.step(by)
        past.settle()
        assert past.moment.seq == expected
        assert now(past) == as_it_was(past, expected)
    clock.advance(1000)
    assert moved(past) == 1
    past.step(1000)
    past.settle()
    assert past.is_over


def test_time_that_goes_back_is_told(begin: Begin) -> None:
    past = begin(taken_up_again)
    past.seek_event(4)
    past.settle()
    assert past.reel.generation == 0
    past.seek_event(2)
    past.settle()
    assert (past.reel.generation, past.moment.seq) == (1, 2)
    assert now(past) == as_it_was(past, 2)


def test_a_stretch_is_skipped_within_the_log(begin: Begin) -> None:
    past = begin(taken_up_again)
    for seconds, at_s in ((60, 60), (60, 120), (-60, 60), (-600, 0), (9999, 3770)):
        past.skip(seconds)
        past.settle()
        assert past.moment.at_us == START_US + at_s * S


def test_it_goes_on_from_the_place_that_was_sought(
    begin: Begin, clock: FakeClock
) -> None:
    past = begin(taken_up_again)
    past.seek_event(2)
    past.settle()
    clock.advance(1)
    moved(past)
    assert past.moment.at_us == START_US + 20 * S


def test_what_was_wished_last_comes_true(begin: Begin) -> None:
    past = begin(taken_up_again)
    for seq in (5, 2, 4):
        past.seek_event(seq)
    past.settle()
    assert past.moment.seq == 4


def test_as_fast_as_it_goes_it_comes_to_the_end(begin: Begin) -> None:
    past = begin(lambda path: written(path, *COURSE), speed=math.inf)
    assert moved(past) == past.reel.last
    assert now(past) == as_it_was(past, past.reel.last)


def test_it_may_begin_anywhere(begin: Begin) -> None:
    past = begin(taken_up_again, at="-1m")
    assert (past.moment.seq, past.moment.at_us) == (4, START_US + 110 * S)


def test_what_is_no_moment_is_refused_at_once(tmp_path: Path) -> None:
    taken_up_again(tmp_path / "log.db")
    with pytest.raises(NoSuchMoment, match="events 1 to 6"):
        Replay(RunFolder(tmp_path), FakeClock(), 1.0, begin="9")


def test_nothing_recorded_is_nothing_to_replay(tmp_path: Path) -> None:
    written(tmp_path / "log.db")
    with pytest.raises(NotALog, match="nothing has been recorded yet"):
        Replay(RunFolder(tmp_path), FakeClock(), 1.0)


def test_prefixes_are_kept_on_the_way_and_gone_back_to(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP", 3)
    monkeypatch.setattr(module, "SPARSE", 5)
    past = begin(lambda path: written(path, *COURSE), speed=math.inf)
    end = moved(past)
    assert len(past.reel._saved) > 1
    past.pause()
    for seq in (end - 1, 7, 6, 2):
        past.seek_event(seq)
        past.settle()
        assert now(past) == as_it_was(past, seq)


def test_its_turns_can_be_gone_to(begin: Begin) -> None:
    past = begin(taken_up_again)
    assert [(seq, kind) for seq, _, kind in past.reel.turns] == [
        (4, "run_resumed"),
        (5, "run_finished"),
        (6, "scoring_recorded"),
    ]


def test_a_damaged_event_stops_it_with_a_sentence(
    begin: Begin, clock: FakeClock
) -> None:
    def damaged(path: Path) -> None:
        taken_up_again(path)
        edit(
            path,
            "DROP TRIGGER event_no_update",
            "UPDATE event SET facts = X'00' WHERE seq = 3",
        )

    past = begin(damaged)
    clock.advance(10)
    assert moved(past) == 1
    past.drive()
    assert "event 3" in past.failure
    assert "siftlog verify" in past.failure


def test_the_log_is_not_touched(begin: Begin) -> None:
    past = begin(taken_up_again, speed=math.inf)
    with open_reader(past.run.log) as reader:
        assert last_seq(reader) == 6
    before = past.run.log.read_bytes()
    moved(past)
    past.seek_event(2)
    past.settle()
    assert past.run.log.read_bytes() == before


def head(
    speed: float = 10.0, *absences: tuple[int, int], end_s: int = 1000
) -> Playhead:
    """At the beginning of a log, at second 5 of our clock."""
    gone = tuple((since * S, until * S) for since, until in absences)
    span = LogTimeSpan(begin_us=0, end_us=end_s * S, absences=gone)
    return Playhead(span=span, at_us=0, since_s=5.0, speed=speed)


def test_it_moves_at_its_speed_and_ends_with_the_log() -> None:
    assert head(10.0).us(8.0) == 30 * S
    assert head(0.5).us(8.0) == 1.5 * S
    assert head(10.0).us(5000.0) == 1000 * S
    assert head(math.inf).us(5.0) == 1000 * S


def test_it_stands_still_and_goes_on_from_there() -> None:
    still = head().toggled(30 * S, 8.0)
    assert (still.is_paused, still.us(100.0)) == (True, 30 * S)
    on = still.toggled(30 * S, 100.0)
    assert (on.is_paused, on.us(101.0)) == (False, 40 * S)


def test_another_speed_counts_from_where_it_is_taken_up() -> None:
    assert head().at_speed(100.0, 30 * S, 8.0).us(9.0) == 130 * S


def test_of_an_absence_the_beginning_is_shown_and_the_rest_passed_over() -> None:
    moving = head(10.0, (100, 500))
    assert moving.us(15.0) == 100 * S
    shown_until = 100 + STILL_S
    assert moving.us(5.0 + shown_until / 10) == pytest.approx(500 * S)
    assert moving.us(5.0 + shown_until / 10 - 0.1) == (shown_until - 1) * S
    assert moving.us(5.0 + shown_until / 10 + 1) == 510 * S


def test_a_short_absence_is_shown_whole() -> None:
    assert head(1.0, (100, 110)).us(110.0) == 105 * S


def test_who_is_put_into_an_absence_leaves_it_at_once() -> None:
    assert head(1.0, (100, 500)).put(300 * S, 5.0).us(6.0) == 501 * S


def test_no_place_is_outside_of_the_log() -> None:
    assert head().put(-1, 5.0).at_us == 0
    assert head().put(2000 * S, 5.0).at_us == 1000 * S


@given(
    st.lists(st.integers(0, 999), unique=True, max_size=10),
    st.floats(0.1, 1000),
    st.lists(st.floats(0, 2000), min_size=2, max_size=2),
)
def test_time_never_goes_back(
    ends: list[int], speed: float, times: list[float]
) -> None:
    ordered = sorted(ends)
    absences = list(zip(ordered[::2], ordered[1::2], strict=False))
    moving = head(speed, *absences)
    early, late = sorted(times)
    assert 0 <= moving.us(5 + early) <= moving.us(5 + late) <= 1000 * S


def test_keys_lead_through_the_speeds() -> None:
    assert head(10.0).next_speed(1) == 20.0
    assert head(10.0).next_speed(-1) == 5.0
    assert head(12.0).next_speed(-1) == 10.0
    assert head(SPEEDS[0]).next_speed(-1) == SPEEDS[0]
    assert head(math.inf).next_speed(1) == math.inf


@pytest.mark.parametrize(
    ("name", "speed"), [("10x", 10), ("10", 10), ("0.5x", 0.5), (".5x", 0.5)]
)
def test_speeds_are_read_as_they_are_typed(name: str, speed: float) -> None:
    assert parse_speed(name) == speed


@pytest.mark.parametrize("speed", SPEEDS)
def test_a_speed_is_told_as_it_is_typed(speed: float) -> None:
    assert parse_speed(format_speed(speed)) == speed


@pytest.mark.parametrize("name", ["0x", "-1x", "x", "", "fast", "1e3x", "inf", "nan"])
def test_what_is_no_speed_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a speed"):
        parse_speed(name)
