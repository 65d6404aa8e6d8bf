"""Power cuts: what was acknowledged is there afterwards; and the test has teeth.

The writer is the real one, on a disk that forgets unsynced writes. At moments spread
over the whole run the disk is copied as a power cut could leave it, and the copy is
opened and checked. The sidecar of the log lies on the same disk: it may be behind, torn
or gone, and must never make a sound log unusable. With `synchronous=NORMAL` the same
cuts must lose something, or the test would prove nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from store.database import SQL, open_reader
from store.errors import StoreError
from store.events import Entry, Event
from store.log.sqlite import SqliteLog
from store.verify import verify
from tests.crash.forgetful_disk import CUTS, ApswConnection, Cut, Disk, Image
from tests.store.memory_log import FakeClock
from tests.store.samples import (
    RUN_STARTED,
    blob,
    completed,
    failed,
    plan_first,
    reply,
    started,
)

TASKS = 60
APPENDERS = 8
#: `make prove` asks for more than three hundred; a few rounds keep `make test` short.
CUT_COUNT = 330 if os.environ.get("SIFTLOG_PROVE") else 40
#: What the writer sets by itself, and is left to set.
SHIPPED = "FULL"
#: Small, so that a short run meets many checkpoints.
CHECKPOINT = "PRAGMA wal_autocheckpoint = 25"


@dataclass(slots=True)
class Moment:
    """The disk at one of its writes, and what had been acknowledged by then."""

    image: Image
    acknowledged: int


@dataclass(slots=True)
class Course:
    """One run of the writer, and the copies of the disk at some of its writes."""

    at: frozenset[int]
    writes: int = 0
    acknowledged: dict[int, Event] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    disk: Disk | None = None

    def watch(self) -> None:
        self.writes += 1
        if self.writes in self.at and self.disk is not None:
            moment = Moment(self.disk.image(), len(self.acknowledged))
            self.moments.append(moment)


def _entries(number: int) -> Iterator[Entry]:
    paper = blob(f"paper {number % 7} ".encode() * 900)
    yield Entry(event=started(number), payload=b"{}", blobs=(paper,))
    if number % 5 == 0:
        yield Entry(event=failed(number))
        yield Entry(event=started(number, 2), payload=b"{}", blobs=(paper,))
    attempt = 2 if number % 5 == 0 else 1
    yield reply(number, random.Random(number).randbytes(3000), attempt)
    yield Entry(event=completed(number, attempt))


async def _work(course: Course, vfs: str, folder: Path, synchronous: str) -> None:
    assert course.disk is not None
    replaced = {SQL["autocheckpoint"]: CHECKPOINT}
    if synchronous != SHIPPED:
        replaced[SQL["synchronous"]] = f"PRAGMA synchronous = {synchronous}"
    async with await SqliteLog.create(
        folder / "log.db",
        run_id="r1",
        config_sha256=bytes(32),
        clock=FakeClock(),
        owner="tester",
        connector=lambda path: ApswConnection(path, vfs, replaced),  # type: ignore[arg-type,return-value]
        open_slots=course.disk.open_slots,
    ) as log:
        for entry in (Entry(event=RUN_STARTED), plan_first(TASKS)):
            course.acknowledged[await log.append(entry)] = entry.event
        numbers = iter(range(1, TASKS + 1))

        async def appender() -> None:
            for number in numbers:
                for entry in _entries(number):
                    course.acknowledged[await log.append(entry)] = entry.event

        async with asyncio.TaskGroup() as group:
            for _ in range(APPENDERS):
                group.create_task(appender())


def _run(folder: Path, synchronous: str, at: frozenset[int]) -> Course:
    """Work once; copy the disk just before the writes numbered *at*."""
    course = Course(at)
    name = f"forgetful-{synchronous}"
    course.disk = Disk(name, course.watch)
    try:
        asyncio.run(_work(course, name, folder, synchronous))
    finally:
        course.disk.unregister()
    return course


def _courses(tmp_path: Path, synchronous: str, cuts: int) -> Iterator[Course]:
    """Enough runs of the writer for *cuts* moments, spread over each run."""
    tmp_path.mkdir()
    writes = _run(tmp_path, synchronous, frozenset()).writes
    chance = random.Random(synchronous)
    while cuts > 0:
        # batches differ from run to run, so late moments may not come
        at = frozenset(chance.sample(range(1, writes * 9 // 10), min(cuts, 40)))
        course = _run(tmp_path, synchronous, at)
        yield course
        cuts -= len(course.moments)


async def _lost(course: Course, moment: Moment, folder: Path) -> int:
    """Acknowledged events that are not there after a cut; everything else is sound."""
    acknowledged = dict(list(course.acknowledged.items())[: moment.acknowledged])
    path = folder / "log.db"
    try:
        log = await SqliteLog.open(path, clock=FakeClock(), owner="tester")
    except StoreError:
        return len(acknowledged)
    async with log:
        kept = {row.seq: row.event for row in await log.events(limit=10_000)}
    with open_reader(path) as reader:
        assert verify(reader).faults == ()
    return sum(kept.get(seq) != event for seq, event in acknowledged.items())


def _losses(tmp_path: Path, synchronous: str, cuts: int) -> list[int]:
    losses = []
    chance = random.Random(cuts)
    for course in _courses(tmp_path / synchronous, synchronous, cuts):
        for moment in course.moments:
            number = len(losses)
            cut: Cut = CUTS[number % len(CUTS)]
            folder = tmp_path / f"{synchronous}-{number}"
            folder.mkdir()
            moment.image.after_cut(folder, cut, chance)
            losses.append(asyncio.run(_lost(course, moment, folder)))
    return losses


@pytest.mark.timeout(600)
def test_no_power_cut_loses_an_acknowledged_event(tmp_path: Path) -> None:
    losses = _losses(tmp_path, SHIPPED, CUT_COUNT)
    assert len(losses) >= CUT_COUNT
    assert sum(losses) == 0


@pytest.mark.timeout(600)
def test_the_same_cuts_lose_events_without_full_sync(tmp_path: Path) -> None:
    losses = _losses(tmp_path, "NORMAL", CUT_COUNT)
    assert len(losses) >= CUT_COUNT
    assert sum(losses) > 0
