"""A ring holds what was looked at, however it was read, and no more than it may.

What the Events screen reads of a log is what the log holds, while it is the same. The
next match is the nearest one in the direction that was asked for.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import StoreError
from store.query import parse_event_query
from store.read.history import SeqRange
from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tests.tui.fake_events import PER_DAY, event
from tui.sources.connection import SameFile
from tui.sources.events import (
    EventWindow,
    LogEvents,
    Tip,
    day_of,
    sampling_interval,
    thinned,
)
from tui.widgets.task_list import next_match

LAST = 4_000
SIZE = 50


@given(
    st.integers(0, LAST),
    st.lists(st.tuples(st.booleans(), st.integers(1, SIZE), st.integers(1, 40))),
)
def test_what_is_read_at_either_end_leaves_no_gap(
    begin: int, steps: list[tuple[bool, int, int]]
) -> None:
    """Of every *share*th event, as a filter would have it, in any order of reading."""
    share = 1 + begin % 7
    ring = EventWindow.at(begin, size=SIZE)
    for is_backward, length, _ in steps:
        before = ring
        if is_backward:
            first = max(1, ring.older.last - length + 1)
            span = range(first, ring.older.last + 1)
            ring = ring.with_older([event(s) for s in span if s % share == 0], first)
        else:
            newer = ring.newer(LAST)
            last = min(LAST, newer.first + length - 1)
            span = range(newer.first, last + 1)
            ring = ring.with_newer([event(s) for s in span if s % share == 0], last)
        seqs = [line.recorded.seq for line in ring.lines]
        looked = ring.searched
        assert seqs == [
            s for s in range(looked.first, looked.last + 1) if not s % share
        ]
        assert len(seqs) <= SIZE
        # the end that was read at is kept: what goes, goes from the other one
        kept = [line.recorded.seq for line in before.lines]
        gone = len(kept) + sum(s % share == 0 for s in span) - len(seqs)
        assert set(kept) - set(seqs) == set(
            kept[len(kept) - gone :] if is_backward and gone else kept[:gone]
        )
        day = None
        for line in ring.lines:
            its_day = day_of(line.recorded.ts_us)
            assert line.day == ("" if its_day == day else its_day)
            day = its_day


def test_the_date_stands_where_the_day_changes() -> None:
    ring = EventWindow.at(PER_DAY - 2).with_newer(
        [event(seq) for seq in range(PER_DAY - 1, PER_DAY + 2)], PER_DAY + 1
    )
    assert [line.day for line in ring.lines] == ["2026-01-01", "2026-01-02", ""]
    ring = ring.with_older([event(PER_DAY - 2)], PER_DAY - 2)
    assert [line.day for line in ring.lines] == ["2026-01-01", "", "2026-01-02", ""]


def test_the_ends_say_what_is_left_to_be_read() -> None:
    ring = EventWindow.at(10)
    assert (ring.older, ring.newer(30)) == (SeqRange(1, 10), SeqRange(11, 30))
    ring = ring.with_older([], 4).with_newer([], 12)
    assert (ring.older, ring.newer(30)) == (SeqRange(1, 3), SeqRange(13, 30))
    assert not len(EventWindow.at(0).older)
    assert not len(EventWindow.at(30).newer(30))


@given(st.floats(0.001, 1e9), st.floats(0.5, 1e6))
def test_one_of_so_many_fits_and_hardly_less_is_shown_than_could_be(
    total: float, room: float
) -> None:
    share = sampling_interval(total, room)
    assert total / share <= room * 1.000_001
    assert share == 1 or total / share >= room / 2.6
    assert str(share).rstrip("0") in {"1", "2", "5"}


@given(st.integers(1, 300), st.integers(1, 60))
def test_the_newest_is_always_among_those_shown(count: int, share: int) -> None:
    events = [event(seq) for seq in range(1, count + 1)]
    shown = thinned(events, share)
    assert shown[-1] is events[-1]
    assert len(shown) == -(-count // share)


@pytest.mark.asyncio
async def test_the_end_the_events_and_their_bodies(tmp_path: Path) -> None:
    await asyncio.to_thread(written, tmp_path / "log.db", *COURSE)
    source = LogEvents(RunFolder(tmp_path))
    tip = await source.tip()
    assert tip == Tip(seq=tip.seq, phase="run_drained", is_alive=False)
    query = parse_event_query("kind:attempt_answered")
    found = await source.find(query, SeqRange(1, tip.seq), limit=2, is_backward=True)
    last = found.events[-1]
    assert await source.body(last) == "better"
    assert len(found.rest)
    assert (await source.names()).errors == ("Overloaded",)
    (tmp_path / "log.db").rename(tmp_path / "other.db")
    with pytest.raises(StoreError, match="was deleted or moved"):
        await source.tip()
    source.close()


def test_a_log_that_comes_back_is_the_same_and_another_is_not(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.log.write_bytes(b"one")
    seen = SameFile(folder)
    seen.check()
    folder.log.rename(tmp_path / "aside")
    with pytest.raises(StoreError, match="was deleted or moved"):
        seen.check()
    (tmp_path / "aside").rename(folder.log)
    seen.check()
    folder.log.rename(tmp_path / "aside")
    folder.log.write_bytes(b"two")
    with pytest.raises(StoreError, match="another file by now"):
        seen.check()


@given(
    st.lists(st.integers(1, 40), unique=True, min_size=1),
    st.sets(st.integers(1, 40)),
    st.data(),
    st.sampled_from([1, -1]),
)
def test_nothing_that_fits_is_passed_over(
    numbers: list[int], fitting: set[int], data: st.DataObject, step: int
) -> None:
    at = data.draw(st.integers(0, len(numbers) - 1))
    found = next_match(numbers, [sorted(fitting), []], at, step)
    ahead = numbers[at + 1 :] if step > 0 else numbers[:at][::-1]
    first = next((number for number in ahead if number in fitting), None)
    assert (found is None and first is None) or numbers[found or 0] == first
