"""Who is said to be at work on a shard's slices, on a machine that cannot be asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runner.shards.parts import FRESH_S, read_other_logs, rival_warnings, shard_of
from store.database import open_reader
from store.events import Event, RunCancelled, RunDrained, RunFinished
from store.runs import RunFolder
from store.segments.place import Place
from store.segments.source import SegmentSource, sources
from tests.store.logs import reopen
from tests.store.memory_log import START_US, FakeClock
from tests.store.segments.carried import carried, sending

QUARTER = shard_of("1/4")


def _source(tmp_path: Path, *ends: Event) -> SegmentSource:
    """Of shard 1/4's log, that was carried when the clock began."""
    place = Place.of(f"memory://{tmp_path}")
    log = carried(tmp_path / "log.db", place, (3,))

    async def end() -> None:
        async with await reopen(log) as writer:
            await writer.append(*ends)

    if ends:
        asyncio.run(end())
        with open_reader(log) as reader:
            sending(reader, place).send()
    (source,) = sources(place)
    return source


@pytest.mark.parametrize("ahead_s", [-FRESH_S, 0.0, 3.0])
def test_who_was_carried_a_moment_ago_may_be_at_work(
    tmp_path: Path, ahead_s: float
) -> None:
    """And clocks of machines differ."""
    source = _source(tmp_path)
    now_us = START_US - round(ahead_s * 1e6)
    (said,) = rival_warnings([source], shard_of("0/3"), now_us)
    assert said.startswith("Shard 1/4 was carried from ")
    assert f" {max(0, -ahead_s):.0f} s ago, and has 86 slices of Shard 0/3" in said


def test_who_was_carried_long_ago_is_thought_to_be_gone(tmp_path: Path) -> None:
    now_us = START_US + round(FRESH_S * 1e6) + 1
    assert list(rival_warnings([_source(tmp_path)], QUARTER, now_us)) == []


@pytest.mark.parametrize(
    "end",
    [
        RunDrained(by="operator", why="", open=3),
        RunCancelled(by="operator"),
        RunFinished(completed=1, failed=0, skipped=0),
    ],
)
def test_who_has_said_a_last_word_is_gone(tmp_path: Path, end: Event) -> None:
    assert list(rival_warnings([_source(tmp_path, end)], QUARTER, START_US)) == []


def test_a_shard_is_told_of_them_as_it_begins(tmp_path: Path) -> None:
    source = _source(tmp_path)
    own = RunFolder(tmp_path / source.identity.run_id)
    place, told = Place.of(f"memory://{tmp_path}"), list[str]()
    asyncio.run(
        read_other_logs(
            own.shard(0, 1), shard_of("0/1"), place, FakeClock(), told.append
        )
    )
    (said,) = told
    assert said.startswith("Shard 1/4 was carried from ")
