"""A log that is read from its segments, whole or with some of them missing."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from store.database import open_reader
from store.events import Event
from store.segments.place import Place
from store.segments.segment import SegmentRange
from store.segments.source import sources
from store.union.source import CommitRange, LocalLogSource
from tests.store.logs import reopen
from tests.store.memory_log import START_US
from tests.store.samples import ASIDE
from tests.store.segments.carried import UNITS, Fickle, carried, local, sending, whole

EACH = tuple(range(1, len(UNITS)))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.of(f"memory://{tmp_path}")


def _told(place: Place) -> tuple[list[str], list[CommitRange]]:
    """What is said of a place, and what its logs give."""
    said: list[str] = []
    found = [whole(source) for source in sources(place, said.append)]
    return said, found


def test_it_is_the_log_by_name_and_shows_its_last_sign_of_life(
    path: Path, place: Place
) -> None:
    carried(path, place, EACH)
    (source,) = sources(place)
    with open_reader(path) as reader:
        assert source.identity == LocalLogSource(reader).identity
    assert source.heartbeat is not None
    assert source.heartbeat.at_us == START_US


@pytest.mark.parametrize("unit", range(len(UNITS)))
def test_it_is_read_from_where_one_has_come(
    path: Path, place: Place, unit: int
) -> None:
    carried(path, place, EACH)
    marks = [span.end for span in map(SegmentRange.parse, place.names("seg")) if span]
    (source,) = sources(place)
    after, parts = marks[unit]
    assert whole(source, after, parts) == local(path, after, parts)


def test_in_the_middle_of_a_segment_only_what_follows_is_given(
    path: Path, place: Place
) -> None:
    carried(path, place)
    (source,) = sources(place)
    after = local(path).links[2][0]
    rest, here = whole(source, after, 3), local(path, after, 3)
    assert (rest.rows, rest.links, rest.writers) == (
        here.rows,
        here.links,
        here.writers,
    )
    assert set(here.blobs) <= set(rest.blobs)


def test_a_missing_segment_hides_what_follows_it_and_is_told(
    path: Path, place: Place
) -> None:
    carried(path, place, EACH)
    names = place.names("seg")
    place.remove(names[3])
    said, (found,) = _told(place)
    upto = found.rows[-1].seq
    assert found.rows == local(path).rows[:upto]
    assert 0 < upto < local(path).rows[-1].seq
    assert len(said) == 1
    assert f"lacks what follows event {upto}" in said[0]


def test_without_its_beginning_a_log_gives_what_follows_what_one_has(
    path: Path, place: Place
) -> None:
    carried(path, place, EACH)
    first, second, *_ = place.names("seg")
    place.remove(first)
    said: list[str] = []
    (source,) = sources(place, said.append)
    assert whole(source).rows == []
    assert "lacks what follows event 0" in said[0]
    span = SegmentRange.parse(second)
    assert span is not None
    assert whole(source, *span.start) == local(path, *span.start)


def test_a_damaged_segment_is_told_and_ends_what_is_read(
    path: Path, place: Place
) -> None:
    carried(path, place, EACH)
    name = place.names("seg")[3]
    data = place.get(name) or b""
    place.remove(name)
    place.put_new(name, data[:-1])
    said, (found,) = _told(place)
    assert "is no sound segment" in said[0]
    assert found.rows[-1].seq < local(path).rows[-1].seq


def test_a_damaged_segment_is_no_matter_where_another_holds_the_same(
    path: Path, place: Place
) -> None:
    carried(path, place, EACH)
    kept = {name: place.get(name) or b"" for name in place.names("seg")}
    with open_reader(path) as reader:
        sending(reader, place).finish()
    (rolled,) = place.names("seg")
    for name, data in kept.items():
        place.put_new(name, data)
    place.remove(rolled)
    place.put_new(rolled, b"SIFTSEG")
    said, (found,) = _told(place)
    assert found == local(path)
    assert len(said) == 1


def test_a_log_without_any_sound_segment_is_told_and_hides_no_other(
    path: Path, place: Place
) -> None:
    carried(path, place)
    log = "0" * 32
    place.put_new(f"seg/{log}/000000000001-000000000002.0-0.zst", b"?")
    said, (found,) = _told(place)
    assert found == local(path)
    assert f"no sound segment of log {log}" in said[-1]


def test_foreign_files_are_told_and_passed_over(path: Path, place: Place) -> None:
    carried(path, place)
    place.put_new("seg/notes.txt", b"mine")
    said, (found,) = _told(place)
    assert found == local(path)
    assert said == [f"{place.address}/seg/notes.txt is no segment, and is passed over"]


def test_what_was_rolled_up_while_it_was_read_is_found_where_it_went(
    path: Path, tmp_path: Path
) -> None:
    place = Fickle(str(tmp_path / "place"))
    carried(path, place, EACH)
    (source,) = sources(place)
    stretches = source.commit_ranges(0)
    first = next(stretches)
    with open_reader(path) as reader:
        sending(reader, place).finish()
    rest = [row for stretch in stretches for row in stretch.rows]
    assert [*first.rows, *rest] == local(path).rows


def test_two_logs_of_one_id_are_not_mixed(path: Path, tmp_path: Path) -> None:
    def append(to: Path, place: Place, *events: Event) -> None:
        async def write() -> None:
            async with await reopen(to) as log:
                await log.append(*events)

        asyncio.run(write())
        with open_reader(to) as reader:
            sending(reader, place).send()

    one, other = (Place.of(str(tmp_path / name)) for name in ("one", "other"))
    carried(path, one)
    copy = shutil.copy(path, tmp_path / "copy.db")
    append(path, one, ASIDE[0])
    upto = local(path).rows[-1].seq
    append(copy, other, ASIDE[1])
    append(copy, other, ASIDE[2])
    name = other.names("seg")[-1]
    one.put_new(name, other.get(name) or b"")
    said, (found,) = _told(one)
    assert found == local(path)
    assert f"read up to event {upto}" in said[0]


def test_a_second_look_at_what_has_not_changed_reads_no_segment(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Fickle(str(tmp_path / "place"))
    carried(path, place, EACH)
    (first,) = sources(place)
    monkeypatch.setattr(place, "get", lambda name: pytest.fail(f"{name} was read"))
    (second,) = sources(place)
    assert second.identity == first.identity
    assert second.heartbeat == first.heartbeat
