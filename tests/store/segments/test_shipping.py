"""A log that is carried while it is written.

Whatever happens to a sender, a place holds a beginning of the log, and then all.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.database import open_reader
from store.errors import PlaceAway, Unshipped
from store.log.sqlite import SqliteLog
from store.segments import shipping as module
from store.segments.segment import complete_logs
from store.segments.shipping import Shipper
from store.segments.source import sources
from tests.store.logs import create, reopen
from tests.store.memory_log import FakeClock
from tests.store.segments.carried import SHARD, UNITS, Fickle, local, sending, whole


class TurnClock(FakeClock):
    """A clock that knows when somebody has gone to sleep."""

    def __init__(self) -> None:
        super().__init__()
        self._asleep = asyncio.Event()

    async def sleep_until(self, when: float) -> None:
        self._asleep.set()
        await super().sleep_until(when)

    async def look(self) -> None:
        """Wake who sleeps."""
        await self._asleep.wait()
        self._asleep.clear()
        self.advance(module.POLL_S)

    async def pass_by(self, looks: int) -> None:
        """Wake who sleeps, so often, and return when it sleeps again."""
        for _ in range(looks):
            await self.look()
        await self._asleep.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """A log under way, and what carries it."""

    path: Path
    log: SqliteLog
    clock: TurnClock
    place: Fickle
    shipper: Shipper
    said: list[str]

    async def append(self, *numbers: int) -> int:
        """Units of the course; the last one's last event."""
        last = 0
        for number in numbers:
            last = await self.log.append(*UNITS[number])
        return last

    @property
    def shipped_seq(self) -> int:
        return self.shipper.statistics().shipped_seq

    def is_whole(self) -> bool:
        """Whether the place has all of the log."""
        (source,) = sources(self.place)
        return whole(source) == local(self.path)


@asynccontextmanager
async def standing(path: Path, *, most_bytes: int = 1 << 30) -> AsyncIterator[Stand]:
    clock = TurnClock()
    place = Fickle(str(path.with_name("place")))
    said: list[str] = []
    async with (
        await create(path, clock=clock) as log,
        Shipper.following(
            path,
            place,
            clock=clock,
            notify=said.append,
            siftlog_version="0.1.0",
            shard=SHARD,
            most_bytes=most_bytes,
        ) as shipper,
    ):
        yield Stand(
            path=path, log=log, clock=clock, place=place, shipper=shipper, said=said
        )


@asynccontextmanager
async def shipping(path: Path) -> AsyncIterator[Stand]:
    """A stand whose shipper is at work."""
    async with standing(path) as stand, asyncio.TaskGroup() as group:
        task = group.create_task(stand.shipper.run())
        yield stand
        task.cancel()


def test_every_five_seconds_what_is_new_becomes_a_segment(path: Path) -> None:
    async def main() -> None:
        async with shipping(path) as stand:
            last = await stand.append(0, 1, 2)
            await stand.clock.pass_by(looks=4)
            assert stand.shipped_seq == 0
            assert stand.shipper.statistics().unshipped_bytes > 0
            await stand.clock.pass_by(looks=1)
            assert stand.shipped_seq == last
            assert stand.shipper.statistics().unshipped_bytes == 0
            assert len(stand.place.names("seg")) == 1
            await stand.clock.pass_by(looks=9)
            assert len(stand.place.names("seg")) == 1  # there was nothing new
            assert stand.is_whole()

    asyncio.run(main())


def test_what_is_much_does_not_wait_for_its_turn(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with shipping(path) as stand:
            last = await stand.append(0, 1)
            stand_still = stand.shipped_seq
            await stand.clock.pass_by(looks=1)
            assert stand.shipped_seq == stand_still == 0
            monkeypatch.setattr(module, "SEGMENT_BYTES", 300)
            await stand.clock.pass_by(looks=1)
            assert stand.shipped_seq == last

    asyncio.run(main())


def test_a_place_that_is_away_is_told_once_and_so_is_its_return(path: Path) -> None:
    async def main() -> None:
        async with shipping(path) as stand:
            stand.place.takes = 0
            await stand.append(0, 1, 2)
            await stand.clock.pass_by(looks=25)
            assert len(stand.said) == 1
            assert "the run goes on, and 0.0 MiB of" in stand.said[0]
            shown = stand.shipper.statistics()
            assert shown.is_away
            assert shown.unshipped_bytes > 0
            assert shown.unshipped_since_us == local(path).rows[0].ts_us
            stand.place.takes = 99
            await stand.append(3)
            await stand.clock.pass_by(looks=5)
            assert len(stand.said) == 2
            assert stand.said[1].endswith("is back, and has all there was")
            shown = stand.shipper.statistics()
            assert not shown.is_away
            assert (shown.unshipped_bytes, shown.unshipped_since_us) == (0, None)
            assert stand.is_whole()

    asyncio.run(main())


def test_more_may_not_wait_than_is_allowed_to_be_lost(path: Path) -> None:
    async def main() -> None:
        async with standing(path, most_bytes=300) as stand:
            stand.place.takes = 0
            await stand.append(0, 1, 2, 3)
            async with asyncio.TaskGroup() as group:
                group.create_task(stand.clock.look())
                with pytest.raises(Unshipped, match=r"check .* resume the run"):
                    await stand.shipper.run()

    asyncio.run(main())


def test_however_a_run_ends_what_is_left_is_carried(path: Path) -> None:
    async def main() -> None:
        async with standing(path) as stand:
            await stand.append(*range(len(UNITS)))
            raise InterruptedError

    with pytest.raises(InterruptedError):
        asyncio.run(main())
    (source,) = sources(Fickle(str(path.with_name("place"))))
    assert whole(source) == local(path)


def test_a_finished_log_says_so_in_the_place(path: Path) -> None:
    async def main() -> None:
        async with standing(path) as stand:
            last = await stand.append(*range(len(UNITS)))
            stand.place.takes = 1
            assert not await stand.shipper.finish()
            assert complete_logs(stand.place) == []
            stand.place.takes = 99
            assert await stand.shipper.finish()
            assert [done.last_seq for done in complete_logs(stand.place)] == [last]

    asyncio.run(main())


def test_a_log_that_goes_on_is_carried_from_where_it_was(path: Path) -> None:
    async def main() -> None:
        async with standing(path) as stand:
            await stand.append(0, 1, 2)
            await stand.shipper.flush()
            async with Shipper.following(
                path,
                stand.place,
                clock=stand.clock,
                notify=stand.said.append,
                siftlog_version="0.1.0",
            ) as again:
                assert again.statistics().shipped_seq == stand.shipped_seq
                await stand.append(3)
            assert again.statistics().segments == 1
            assert stand.is_whole()

    asyncio.run(main())


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
