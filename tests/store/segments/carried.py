"""Logs that are carried to a place, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from store.connect import Reader
from store.events import Entry, Event
from store.segments.place import Place
from store.segments.sending import Sending
from store.shard import Shard
from store.testing import START_US
from store.union.source import Source, Stretch
from tests.store.logs import COURSE, create

SHARD = Shard(index=1, count=4, slices="256-511")


def sending(reader: Reader, place: Place) -> Sending:
    return Sending(
        reader,
        place,
        shard=SHARD,
        siftlog_version="0.1.0",
        now_us=lambda: START_US,
    )


async def carried_by_step(
    path: Path, place: Place, units: Iterable[Sequence[Entry | Event]] = COURSE
) -> None:
    """A log in which each unit is carried as soon as it is committed."""
    from store.connect import open_reader  # noqa: PLC0415

    async with await create(path) as log:
        for unit in units:
            await log.append(*unit)
            with open_reader(path) as reader:
                sending(reader, place).send()


def whole(source: Source, after: int = 0, parts: int = 0) -> Stretch:
    """All that a source gives, in one."""
    found = list(source.stretches(after, parts))
    return Stretch(
        rows=[row for stretch in found for row in stretch.rows],
        blobs=[blob for stretch in found for blob in stretch.blobs],
        links=[link for stretch in found for link in stretch.links],
        writers={e: w for stretch in found for e, w in stretch.writers.items()},
        blobs_upto=max((stretch.blobs_upto for stretch in found), default=parts),
    )
