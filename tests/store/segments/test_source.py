"""What a place tells of a run without any log being opened."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store.database import open_reader
from store.events import Entry, Event, RunCancelled, RunDrained
from store.segments.place import Place
from store.segments.source import ShippedLog, survey
from store.slices import Slices
from store.union.source import LocalLogSource
from tests.store.logs import reopen
from tests.store.memory_log import START_US
from tests.store.segments.carried import SHARD, UNITS, carried, local, sending


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.of(f"memory://{tmp_path}")


def _only(place: Place) -> ShippedLog:
    (found,) = survey(place).logs
    return found


def test_a_log_is_told_by_how_far_it_leads_and_whether_that_is_its_end(
    path: Path, place: Place
) -> None:
    assert survey(place).logs == ()
    carried(path, place, (2, 5))
    found = _only(place)
    with open_reader(path) as reader:
        log = LocalLogSource(reader).identity.log.hex()
    assert (found.log, found.run_id, str(found.slices)) == (log, "r1", SHARD.slices)
    assert (found.events, found.carried_us) == (local(path).rows[-1].seq, START_US)
    assert not found.has_ended
    assert str(survey(place).missing) == "0-255,512-1023"
    assert len(survey(place).unfinished) == 1024
    with open_reader(path) as reader:
        sending(reader, place).finish()
    assert _only(place).has_ended
    assert survey(place).unfinished == survey(place).missing


def test_a_log_that_was_gone_on_with_has_not_ended(path: Path, place: Place) -> None:
    carried(path, place)

    async def go_on(event: Entry | Event) -> None:
        async with await reopen(path) as log:
            await log.append(event)

    with open_reader(path) as reader:
        sending(reader, place).finish()
    states = []
    for event in (
        UNITS[0][0],
        RunDrained(by="operator", why="", open=2),
        UNITS[0][0],
        RunCancelled(by="operator"),
    ):
        asyncio.run(go_on(event))
        with open_reader(path) as reader:
            sending(reader, place).send()
        states.append(_only(place).state)
    assert states == ["open", "drained", "open", "cancelled"]
    assert not _only(place).has_ended


def test_what_follows_a_gap_does_not_count(path: Path, place: Place) -> None:
    carried(path, place, (2, 5))
    first, gap, _ = place.names("seg")
    place.remove(gap)
    upto = int(first.rpartition("/")[2][13:25])
    assert _only(place).events == upto


def test_what_cannot_be_read_is_told_and_does_not_count(
    path: Path, place: Place
) -> None:
    carried(path, place, (2,))
    last = place.names("seg")[-1]
    place.remove(last)
    place.put_new(last, b"something else")
    said: list[str] = []
    (found,) = survey(place, said.append).logs
    assert found.events < local(path).rows[-1].seq
    assert len(said) == 1
    assert found.slices == Slices.of(1, 4)
