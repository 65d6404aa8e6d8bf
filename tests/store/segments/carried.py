"""Logs that are carried to a place, and places that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from store.database import LogReader, open_reader
from store.errors import PlaceAway
from store.events import Entry, Event
from store.segments.place import Place
from store.segments.shipping import SegmentSender
from store.slices import Shard
from store.union.source import CommitRange, LocalLogSource, UnionSource
from tests.store.logs import create, reopen
from tests.store.memory_log import START_US
from tests.store.samples import RUN_STARTED, blob, completed, plan_first, reply, started

SHARD = Shard(index=1, count=4, slices="256-511")

TASKS = 6


def _asked(number: int) -> list[Entry | Event]:
    """A task from its start to its end, with a part of its own and one of all."""
    parts = (blob(b"You read papers."), blob(b"paper %d " % number * 90))
    return [
        Entry(event=started(number), blobs=parts),
        reply(number, b"answer %d" % number),
        completed(number),
    ]


UNITS: tuple[Sequence[Entry | Event], ...] = (
    [RUN_STARTED],
    [plan_first(TASKS)],
    *(_asked(number) for number in range(1, TASKS + 1)),
)


def sending(reader: LogReader, place: Place) -> SegmentSender:
    return SegmentSender(
        reader, place, shard=SHARD, siftlog_version="0.1.0", now_us=lambda: START_US
    )


def carried(path: Path, place: Place, cut: Sequence[int] = ()) -> Path:
    """A log that is carried after so many of its units, and at its end.

    It is taken up anew with each unit, so that it has as many writers.
    """

    async def write(start: int, end: int) -> None:
        async with await (reopen(path) if start else create(path)) as log:
            for unit in UNITS[start:end]:
                await log.append(*unit)

    for start, end in pairwise([0, *cut, len(UNITS)]):
        asyncio.run(write(start, end))
        with open_reader(path) as reader:
            sending(reader, place).send()
    return path


def local(path: Path, after: int = 0, parts: int = 0) -> CommitRange:
    """All that the log itself gives."""
    with closing(open_reader(path)) as reader:
        return whole(LocalLogSource(reader), after, parts)


def whole(source: UnionSource, after: int = 0, parts: int = 0) -> CommitRange:
    """All that a source gives, as one stretch."""
    found = list(source.commit_ranges(after, parts))
    return CommitRange(
        rows=[row for stretch in found for row in stretch.rows],
        blobs=[blob for stretch in found for blob in stretch.blobs],
        links=[link for stretch in found for link in stretch.links],
        writers={e: w for stretch in found for e, w in stretch.writers.items()},
        blobs_upto=max((stretch.blobs_upto for stretch in found), default=parts),
    )


class Fickle(Place):
    """A place that takes only so many files, and can be away."""

    def __init__(self, address: str, takes: int = 1 << 30) -> None:
        super().__init__(address)
        self._inner = Place.of(address)
        self.takes = takes

    def put_new(self, name: str, data: bytes) -> bool:
        if self.takes == 0:
            raise PlaceAway(f"{self.address} cannot be used (away): see to it")
        self.takes -= 1
        return self._inner.put_new(name, data)

    def get(self, name: str) -> bytes | None:
        return self._inner.get(name)

    def names(self, under: str) -> list[str]:
        return self._inner.names(under)

    def remove(self, name: str) -> None:
        self._inner.remove(name)
