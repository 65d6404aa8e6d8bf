"""Small segments that are put together without the log that they are from."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.database import open_reader
from store.errors import CorruptLog, PlaceAway
from store.events import Event
from store.segments.place import Place
from store.segments.segment import SegmentRange
from store.segments.source import SegmentSource, compact, sources
from tests.store.logs import reopen
from tests.store.samples import ASIDE
from tests.store.segments.carried import UNITS, Fickle, carried, local, sending, whole

EACH = tuple(range(1, len(UNITS)))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.of(f"memory://{tmp_path}")


def _source(place: Place) -> SegmentSource:
    (source,) = sources(place)
    return source


def _compacted(place: Place) -> int:
    return compact(place, _source(place))


@pytest.fixture
def small(path: Path, place: Place) -> Path:
    """A log in as many segments as it has units."""
    return carried(path, place, EACH)


def test_many_become_one_that_is_the_same_log(small: Path, place: Place) -> None:
    before = _source(place)
    assert _compacted(place) == len(UNITS)
    (name,) = place.names("seg")
    assert name.endswith(".rolled.zst")
    after = _source(place)
    assert whole(after) == local(small)
    assert (after.identity, after.shard) == (before.identity, before.shard)
    assert (after.heartbeat, after.mark) == (before.heartbeat, before.mark)
    assert _compacted(place) == 0


def test_a_log_that_goes_on_after_all_is_carried_on(small: Path, place: Place) -> None:
    with open_reader(small) as reader:
        beside = sending(reader, place)
        _compacted(place)
        _go_on(small, ASIDE[0])
        beside.send()
        assert whole(_source(place)) == local(small)
        beside.finish()
    assert whole(_source(place)) == local(small)


def test_what_was_added_to_large_ones_is_put_together_alone(
    path: Path, place: Place
) -> None:
    carried(path, place, EACH)
    _compacted(place)
    (first,) = place.names("seg")
    for _ in range(2):
        _go_on(path, ASIDE[0])
        with open_reader(path) as reader:
            sending(reader, place).send()
    assert _compacted(place) == 2
    assert first in place.names("seg")
    assert len(place.names("seg")) == 2
    assert whole(_source(place)) == local(path)


@pytest.mark.usefixtures("small")
def test_what_follows_a_gap_is_left_alone(place: Place) -> None:
    names = place.names("seg")
    place.remove(names[3])
    before = whole(_source(place))
    assert _compacted(place) == 3
    assert set(names[4:]) < set(place.names("seg"))
    assert whole(_source(place)) == before


def test_nothing_is_removed_for_a_large_one_that_is_damaged(
    small: Path, place: Place
) -> None:
    kept = {name: place.get(name) or b"" for name in place.names("seg")}
    _compacted(place)
    (large,) = place.names("seg")
    place.remove(large)
    for name, data in {**kept, large: b"something else"}.items():
        place.put_new(name, data)
    with pytest.raises(CorruptLog, match="no sound segment"):
        _compacted(place)
    assert set(place.names("seg")) == {*kept, large}
    assert whole(_source(place)) == local(small)


def test_what_does_not_follow_on_is_left_as_it_is(
    path: Path, tmp_path: Path, place: Place
) -> None:
    """As when a log was copied, and both were written."""
    carried(path, place, EACH)
    copy = shutil.copy(path, tmp_path / "copy.db")
    _go_on(path, ASIDE[0])
    with open_reader(path) as reader:
        sending(reader, place).send()
    _compacted(place)
    (upto,) = (span.end for span in map(SegmentRange.parse, place.names("seg")) if span)
    _go_on(copy, ASIDE[1])
    for _ in range(2):
        _go_on(copy, ASIDE[0])
        with open_reader(copy) as reader:
            beside = sending(reader, Elsewhere(place))
            beside.mark = upto
            beside.send()
            upto = beside.mark
    names = place.names("seg")
    assert len(names) == 3
    with pytest.raises(CorruptLog, match="is not what was committed"):
        _compacted(place)
    assert place.names("seg") == names


def _go_on(path: Path, event: Event) -> None:
    async def main() -> None:
        async with await reopen(path) as log:
            await log.append(event)

    asyncio.run(main())


class Elsewhere(Fickle):
    """A place that looks empty to who carries."""

    def __init__(self, inner: Place) -> None:
        super().__init__(inner.address)

    def names(self, under: str) -> list[str]:
        del under
        return []


def test_a_place_that_takes_nothing_loses_nothing(path: Path, tmp_path: Path) -> None:
    place = Fickle(str(tmp_path / "place"))
    carried(path, place, EACH)
    place.takes = 0
    with pytest.raises(PlaceAway):
        _compacted(place)
    assert len(place.names("seg")) == len(UNITS)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(EACH)))
def test_however_a_log_was_cut_it_stays_the_same(
    tmp_path_factory: pytest.TempPathFactory, cut: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    place = Place.of(f"memory://{folder}")
    log = carried(folder / "log.db", place, sorted(cut))
    assert _compacted(place) == (len(cut) + 1 if cut else 0)
    assert whole(_source(place)) == local(log)
