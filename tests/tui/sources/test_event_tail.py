"""The tail of a log: it follows, samples, stands still, searches, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from store.query import parse_event_query
from tests.replacing import replace
from tests.store.memory_log import FakeClock
from tests.tui.fake_events import FakeEvents
from tui.sources.event_tail import PAGE, SEARCH, EventTail, EventTailReader
from tui.sources.events import LINES


class Seat:
    """A reader, its log and clock, and where the cursor is."""

    def __init__(self, seq: int = 1_000_000) -> None:
        self.source = FakeEvents(seq)
        self.clock = FakeClock()
        self.is_at_bottom = True
        self.said: list[str] = []
        self.reader = EventTailReader(
            self.source,
            self.clock,
            is_at_bottom=lambda: self.is_at_bottom,
            say=lambda: self.said.append(self.tail.foot),
        )

    @property
    def tail(self) -> EventTail:
        return self.reader.tail

    @property
    def seqs(self) -> list[int]:
        return [line.recorded.seq for line in self.tail.window.lines]

    def filter(self, expression: str) -> None:
        self.reader.filter(parse_event_query(expression), expression)

    async def grow(self, by: int, seconds: float = 0.5) -> bool:
        """More events; whether lines were shown for them."""
        self.source.seq += by
        self.clock.advance(seconds)
        return await self.reader.poll(may_feed=True)


def _run(
    act: Callable[[Seat], Coroutine[Any, Any, None]], seq: int = 1_000_000
) -> Seat:
    seat = Seat(seq)
    asyncio.run(act(seat))
    return seat


def test_it_begins_at_the_end_with_one_page_and_follows() -> None:
    async def act(seat: Seat) -> None:
        assert seat.tail.emptiness == "Looking for events …"
        await seat.reader.to_end()
        assert seat.seqs == list(range(1_000_001 - PAGE, 1_000_001))
        assert len(seat.source.found) == 1
        assert seat.tail.heading == "following · 1,000,000 events"
        assert seat.tail.foot == ""
        assert await seat.grow(20)
        assert seat.seqs[-21:] == list(range(1_000_000, 1_000_021))
        assert not await seat.grow(0)
        for _ in range(100):
            await seat.grow(24)
        assert len(seat.seqs) == LINES
        assert seat.seqs == list(
            range(seat.source.seq - LINES + 1, seat.source.seq + 1)
        )

    _run(act)


def test_whoever_leaves_the_bottom_is_not_followed_and_can_follow_again() -> None:
    async def act(seat: Seat) -> None:
        await seat.reader.to_end()
        before = seat.seqs
        seat.is_at_bottom = False
        assert not await seat.grow(10)
        assert seat.seqs == before
        assert seat.tail.foot == "the cursor left the bottom · 10 newer: f follows"
        assert seat.tail.heading == "1,000,010 events"
        seat.is_at_bottom = True
        await seat.reader.to_end()
        assert seat.seqs[-1] == 1_000_010
        assert (seat.tail.is_following, seat.tail.foot) == (False, "")
        seat.reader.tail = seat.tail.toggled()
        assert await seat.grow(1)
        # without having left: nothing is to be said but what is new
        seat.reader.tail = seat.tail.toggled()
        assert seat.tail.foot == ""
        await seat.grow(3)
        assert seat.tail.foot == "3 newer: f follows"

    _run(act)


def test_of_more_than_fifty_events_a_second_some_are_shown() -> None:
    async def act(seat: Seat) -> None:
        await seat.reader.to_end()
        assert await seat.grow(500)
        assert seat.tail.heading == "showing 1 of 20 · following · 1,000,500 events"
        assert seat.seqs[PAGE:] == list(range(1_000_020, 1_000_501, 20))
        # more than a ring holds: those that were read stand for all
        assert await seat.grow(100_000)
        assert seat.tail.share == 5_000
        assert seat.seqs[-1] == 1_100_500
        assert await seat.grow(10)
        assert seat.tail.heading == "following · 1,100,510 events"
        assert seat.tail.window.is_sampled
        # somebody who stops to look finds all of them
        seat.is_at_bottom = False
        await seat.grow(0)
        assert seat.tail.has_gaps
        await seat.reader.around(1_000_500)
        assert not seat.tail.has_gaps
        assert seat.seqs == list(range(1_000_501 - PAGE, 1_000_501 + PAGE))

    _run(act)


def test_whoever_comes_back_after_long_finds_the_end_without_a_gap() -> None:
    async def act(seat: Seat) -> None:
        await seat.reader.to_end()
        assert await seat.grow(300_000, seconds=3_600)
        assert seat.seqs == list(range(1_300_001 - LINES, 1_300_001))
        assert not seat.tail.window.is_sampled
        assert seat.tail.heading == "following · 1,300,000 events"

    _run(act)


def test_what_is_frozen_stands_still_and_counts() -> None:
    async def act(seat: Seat) -> None:
        await seat.reader.to_end()
        before = seat.seqs
        seat.reader.tail = seat.tail.frozen()
        assert not await seat.grow(1_204)
        assert seat.seqs == before
        assert seat.tail.foot == "FROZEN, 1,204 events since: space continues"
        assert seat.tail.heading == "1,001,204 events"
        seat.reader.tail = seat.tail.frozen()
        assert await seat.grow(0)
        assert seat.seqs[-1] == 1_001_204
        # f does not leave somebody behind who only held it still
        going = seat.tail.frozen().toggled()
        assert (going.is_following, going.frozen_at) == (True, None)

    _run(act)


def test_a_search_says_how_far_it_has_come_and_stops_by_itself() -> None:
    async def act(seat: Seat) -> None:
        seat.filter("err:Nothing")
        await seat.reader.to_end()
        assert len(seat.source.found) == SEARCH // 20_000
        assert seat.said[0] == "searching, at event 2,480,001 …: esc stops"
        assert seat.tail.emptiness == (
            "No event from 1,500,001 on fits err:Nothing: N searches on, x clears the "
            "filter, / changes it."
        )
        assert seat.tail.heading.endswith("0 found so far, of 2,500,000 events")
        # whoever asks for more gets all of it, and may stop it where it has come to
        async with asyncio.TaskGroup() as group:
            seek = group.create_task(seat.reader.seek(2_500_001, is_backward=True))
            await asyncio.sleep(0)
            assert await seek is None
        assert seat.tail.emptiness.startswith("No event fits err:Nothing: x clears")
        assert seat.tail.foot == ""

    _run(act, seq=2_500_000)


def test_a_search_that_is_stopped_keeps_what_it_has_found() -> None:
    async def act(seat: Seat) -> None:
        seat.filter("err:RateLimited")

        def stop() -> None:
            if len(seat.source.found) == 3:
                raise asyncio.CancelledError

        seat.reader = EventTailReader(
            seat.source, seat.clock, is_at_bottom=lambda: True, say=stop
        )
        seat.filter("err:RateLimited")
        with pytest.raises(asyncio.CancelledError):
            await seat.reader.to_end()
        assert seat.tail.reached is not None
        seat.reader.stop()
        assert seat.seqs == list(range(950_000, 1_000_001, 10_000))
        assert seat.tail.foot == "searched back to event 940,001: N continues"
        assert await seat.reader.seek(950_000, is_backward=True) == 940_000
        assert await seat.reader.seek(990_000, is_backward=True) == 980_000

    _run(act)


def test_what_was_filtered_for_is_found_in_the_whole_log_too() -> None:
    async def act(seat: Seat) -> None:
        seat.filter("err:RateLimited")
        await seat.reader.to_end()
        assert seat.seqs[-1] == 1_000_000
        seat.filter("")
        await seat.reader.around(1_000_000)
        assert seat.seqs[-2:] == [999_999, 1_000_000]
        assert await seat.reader.seek(1_000_000, is_backward=True) == 990_000
        assert 990_000 in seat.seqs
        assert len(seat.seqs) == 2 * PAGE
        assert await seat.reader.seek(989_999, is_backward=False) == 990_000
        assert await seat.reader.seek(1_000_000, is_backward=False) is None
        await seat.reader.to_beginning()
        assert seat.seqs == list(range(1, PAGE + 1))

    _run(act)


def test_older_and_newer_pages_are_read_on_and_the_ring_stays_small() -> None:
    async def act(seat: Seat) -> None:
        await seat.reader.to_beginning()
        assert seat.seqs == []
        await seat.reader.to_end()
        for _ in range(6):
            await seat.reader.read_on(is_backward=True)
        assert len(seat.seqs) == LINES
        assert seat.seqs[0] == 1_000_001 - 7 * PAGE
        await seat.reader.read_on(is_backward=False)
        assert seat.seqs[-1] == seat.seqs[0] + LINES - 1

    _run(act)


@pytest.mark.parametrize(
    ("phase", "is_alive", "foot"),
    [
        ("run_finished", False, "the run has finished: no further events"),
        ("run_drained", False, "the run was drained: no further events until"),
        ("run_cancelled", False, "the run was cancelled: no further events"),
        ("run_started", False, "no process works on the run"),
        # whoever resumed it works on it, whatever its last word was
        ("run_finished", True, ""),
    ],
)
def test_the_end_of_a_run_is_said(phase: str, is_alive: bool, foot: str) -> None:
    async def act(seat: Seat) -> None:
        await seat.reader.to_end()
        tip = replace(seat.tail.tip, phase=phase, is_alive=is_alive)
        seat.reader.tail = replace(seat.tail, tip=tip)

    seat = _run(act)
    assert seat.tail.foot.startswith(foot)
    assert bool(seat.tail.foot) == bool(foot)


def test_an_empty_log_says_that_events_will_come() -> None:
    async def act(seat: Seat) -> None:
        await seat.reader.to_end()

    seat = _run(act, seq=0)
    assert seat.tail.emptiness.startswith("Nothing is recorded yet")
