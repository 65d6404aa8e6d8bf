"""A log carried to a place, and read there as it lies here."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from store.database import open_reader
from store.errors import CorruptLog, PlaceAway
from store.events import Event
from store.segments import shipping as module
from store.segments.place import Place
from store.segments.segment import LogPosition, complete_logs
from store.segments.source import sources
from store.union.source import LocalLogSource
from tests.store.logs import reopen
from tests.store.samples import ASIDE
from tests.store.segments.carried import (
    SHARD,
    UNITS,
    Fickle,
    carried,
    local,
    sending,
    whole,
)
from tests.store.union.union_logs import merge

EACH = tuple(range(1, len(UNITS)))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.of(str(tmp_path / "place"))


def test_what_was_carried_is_the_log(path: Path, place: Place) -> None:
    carried(path, place, EACH)
    (source,) = sources(place)
    assert whole(source) == local(path)
    assert len(place.names("seg")) == len(UNITS)
    assert source.shard == SHARD


def test_what_was_carried_is_merged_as_the_log_itself_would_be(
    path: Path, tmp_path: Path, place: Place
) -> None:
    carried(path, place, EACH)
    union = tmp_path / "union.db"
    (source,) = sources(place)
    assert merge(union, source) == len(local(path).rows)
    with open_reader(path) as reader:
        assert merge(union, LocalLogSource(reader)) == 0
    assert merge(union, source) == 0


def test_nothing_is_carried_twice(path: Path, place: Place) -> None:
    carried(path, place)
    with open_reader(path) as reader:
        again = sending(reader, place)
        again.send()
        assert again.sent.segments == 0


def test_a_place_that_went_away_in_the_middle_gets_the_rest_later(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so that each stretch is a segment, parts and events by themselves
    monkeypatch.setattr(module, "RANGE_BYTES", 0)
    carried(path, Place.of(str(tmp_path / "elsewhere")))
    place = Fickle(str(tmp_path / "place"), takes=0)
    with open_reader(path) as reader:
        one = sending(reader, place)
        one.measure()
        waits = one.unshipped_bytes
        with pytest.raises(PlaceAway):
            one.send()
        assert (one.mark, one.unshipped_bytes) == (LogPosition(), waits)
        place.takes = 1
        with pytest.raises(PlaceAway):
            one.send()
        parts = local(path).blobs_upto
        assert one.mark == LogPosition(0, parts)
        assert one.unshipped_bytes < waits
    place.takes = 1
    with open_reader(path) as reader:
        rest = sending(reader, place)
        assert rest.mark == LogPosition(0, parts)
        rest.send()
    (source,) = sources(place)
    assert whole(source) == local(path)


def test_what_waits_is_weighed(path: Path, place: Place) -> None:
    carried(path, place, EACH)
    everything = local(path)
    with open_reader(path) as reader:
        elsewhere = sending(reader, Place.of(f"{place.address}-2"))
        first = elsewhere.measure()
        assert first == everything.rows[0].ts_us
        assert elsewhere.unshipped_bytes == module.commits_bytes(everything)
        elsewhere.measure()
        assert elsewhere.unshipped_bytes == module.commits_bytes(everything)
        elsewhere.send()
        assert elsewhere.measure() is None
        assert elsewhere.unshipped_bytes == 0


def test_many_small_segments_become_one(
    path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROLL_UP_AFTER", 3)
    carried(path, place, EACH)
    names = place.names("seg")
    assert len(names) <= len(UNITS) / 2
    assert any(".rolled." in name for name in names)
    (source,) = sources(place)
    assert whole(source) == local(path)


def test_a_kill_between_rolling_up_and_removing_does_no_harm(
    path: Path, place: Place
) -> None:
    carried(path, place, EACH)
    small = place.names("seg")
    kept = {name: place.get(name) or b"" for name in small}
    with open_reader(path) as reader:
        sending(reader, place).finish()
    for name, data in kept.items():
        place.put_new(name, data)
    (source,) = sources(place)
    assert whole(source) == local(path)
    with open_reader(path) as reader:
        sending(reader, place).finish()
    assert not set(small) & set(place.names("seg"))
    (source,) = sources(place)
    assert whole(source) == local(path)


def test_a_finished_log_says_so_last(path: Path, tmp_path: Path) -> None:
    place = Fickle(str(tmp_path / "place"))
    carried(path, place)
    assert complete_logs(place) == []
    place.takes = 0
    with open_reader(path) as reader:
        one = sending(reader, place)
        with pytest.raises(PlaceAway):
            one.finish()
        assert complete_logs(place) == []
        place.takes = 9
        done = one.finish()
    assert complete_logs(place) == [done]
    end = local(path)
    assert (done.run_id, done.shard, done.last_seq) == ("r1", SHARD, end.rows[-1].seq)
    assert done.link == end.links[-1][1].hex()


def test_a_log_that_was_taken_up_again_ends_later(path: Path, place: Place) -> None:
    carried(path, place)
    with open_reader(path) as reader:
        sending(reader, place).finish()

    async def go_on() -> None:
        async with await reopen(path) as log:
            await log.append(UNITS[0][0])

    asyncio.run(go_on())
    with open_reader(path) as reader:
        done = sending(reader, place).finish()
    assert complete_logs(place) == [done]


def test_a_last_word_of_other_bytes_is_told_and_passed_over(
    path: Path, place: Place
) -> None:
    place.put_new("done/aa-000000000001.json", b"{}")
    carried(path, place)
    with open_reader(path) as reader:
        done = sending(reader, place).finish()
    said: list[str] = []
    assert complete_logs(place, said.append) == [done]
    (told,) = said
    assert "aa-000000000001.json does not say which log came to its end" in told


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_log_that_was_put_back_in_time_is_not_carried_on(
    path: Path, tmp_path: Path, place: Place, goes_on: bool
) -> None:
    async def append(to: Path, event: Event) -> None:
        async with await reopen(to) as log:
            await log.append(event)

    carried(path, place)
    old = shutil.copy(path, tmp_path / "old.db")
    asyncio.run(append(path, ASIDE[0]))
    with open_reader(path) as reader:
        sending(reader, place).send()
    if goes_on:
        asyncio.run(append(old, ASIDE[1]))
    with (
        open_reader(old) as reader,
        pytest.raises(CorruptLog, match="it is an older copy"),
    ):
        sending(reader, place)
