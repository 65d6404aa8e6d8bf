"""Whatever happens to a sender, a place holds a beginning of the log, and then all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.database import open_reader
from store.errors import PlaceAway
from store.segments import shipping as module
from store.segments.source import sources
from tests.store.logs import create, reopen
from tests.store.segments.carried import UNITS, Fickle, local, sending, whole


class Life(NamedTuple):
    """A sender's, from its start to its end."""

    units: int  #: committed before it
    takes: int  #: files that the place takes, and then it is away
    ends: bool  #: whether the log is said to have come to its end
    loses: int | None  #: which of the files somebody deletes after it


LIVES = st.builds(
    Life,
    st.integers(0, 3),
    st.sampled_from([0, 1, 2, 3, 99]),
    st.booleans(),
    st.none() | st.integers(0, 9),
)


@contextmanager
def _pieces(most: int) -> Iterator[None]:
    """Segments of at most so many bytes, and rolled up three by three."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RANGE_BYTES", most)
        patch.setattr(module, "ROLLED_BYTES", 3 * most)
        patch.setattr(module, "ROLL_UP_AFTER", 3)
        yield


@settings(max_examples=300 if "SIFTLOG_PROVE" in os.environ else 8)
@given(st.lists(LIVES, min_size=1, max_size=6), st.sampled_from([0, 500, 1 << 20]))
def test_a_place_holds_a_beginning_of_the_log_and_in_the_end_all_of_it(
    lives: list[Life], most: int
) -> None:
    with TemporaryDirectory() as folder, _pieces(most):
        path, place = Path(folder, "log.db"), Fickle(f"{folder}/place")
        units = iter(UNITS)
        asyncio.run(_write(path, 0))
        for life in lives:
            asyncio.run(_write(path, life.units, units))
            place.takes = life.takes
            with open_reader(path) as reader, suppress(PlaceAway):
                one = sending(reader, place)
                one.finish() if life.ends else one.send()
            _check_beginning(place, path)
            names = place.names("seg")
            if names and life.loses is not None:
                place.remove(names[life.loses % len(names)])
                _check_beginning(place, path)
        place.takes = 99
        with open_reader(path) as reader:
            sending(reader, place).send()
        _check_beginning(place, path)
        for source in sources(place):
            assert whole(source).rows == local(path).rows
            assert set(whole(source).blobs) == set(local(path).blobs)


async def _write(path: Path, count: int, units: Iterator[object] | None = None) -> None:
    async with await (reopen(path) if units else create(path)) as log:
        for unit in islice(units or (), count):
            await log.append(*unit)


def _check_beginning(place: Fickle, path: Path) -> None:
    here = local(path)
    for source in sources(place):
        found = whole(source)
        assert found.rows == here.rows[: len(found.rows)]
        assert found.links == here.links[: len(found.links)]
        # where cuts cross, a part comes twice
        parts = list(dict.fromkeys(found.blobs))
        assert parts == here.blobs[: len(parts)]
