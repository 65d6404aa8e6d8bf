"""Group commit step by step, on a thread that is turned by hand."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from store.errors import LogClosed
from store.events import Entry
from store.log.committer import BATCH_EVENTS, Committer
from store.log.writer import PreparedEntry
from tests.store.samples import RUN_STARTED

pytestmark = pytest.mark.asyncio


class Turned:
    """The writer's thread, which does one thing at a time when it is turned."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()

    def submit(self, function: Callable[[], None]) -> None:
        self.waiting.append(function)

    def turn(self) -> None:
        while self.waiting:
            self.waiting.popleft()()


class Commits:
    """A writer that says what it commits, and fails where it is to."""

    def __init__(self, *, fails_at: int = 0) -> None:
        self.calls = 0
        self.committed = 0
        self._fails_at = fails_at
        self.during: Callable[[], None] | None = None  #: happens while it commits

    def commit(self, units: Sequence[Sequence[PreparedEntry]]) -> list[int]:
        self.calls += 1
        if self.during is not None:
            self.during()
        if self.calls == self._fails_at:
            raise sqlite3.OperationalError("disk I/O error")
        seqs = []
        for unit in units:
            self.committed += len(unit)
            seqs.append(self.committed)
        return seqs


class LateUnits(deque[object]):
    """A queue that somebody appends to just after it was found empty."""

    looks: int = 0  #: so often it is found empty before
    then: Callable[[], None] | None = None

    def __bool__(self) -> bool:
        is_empty = not len(self)
        self.looks -= is_empty
        then = self.then
        if is_empty and self.looks == 0 and then is not None:
            then()
        return not is_empty


def _made(writer: Commits) -> tuple[Committer, Turned]:
    thread = Turned()
    return Committer(Path("log.db"), thread, writer), thread  # type: ignore[arg-type]


def _put(committer: Committer, events: int = 1) -> asyncio.Future[int]:
    durable = asyncio.get_running_loop().create_future()
    fact = PreparedEntry(1, Entry(event=RUN_STARTED), b"{}", 2)
    committer.put((fact,) * events, durable)
    return durable


async def _soon(durable: asyncio.Future[int]) -> int:
    """What an append returns; an error where it was forgotten."""
    async with asyncio.timeout(2):
        return await durable


async def test_nothing_is_committed_after_a_commit_that_failed() -> None:
    writer = Commits(fails_at=1)
    committer, thread = _made(writer)
    first = _put(committer)
    late: list[asyncio.Future[int]] = []

    def come() -> None:  # before anybody knows of the failure
        writer.during = None
        late.append(_put(committer))

    writer.during = come
    thread.turn()
    later = _put(committer)
    thread.turn()
    for durable in (first, *late, later):
        with pytest.raises(LogClosed, match="disk I/O error"):
            await _soon(durable)
    assert (writer.calls, writer.committed) == (1, 0)
    assert isinstance(committer.failure, LogClosed)


@pytest.mark.parametrize("looks", [1, 2])
async def test_a_unit_that_comes_as_the_queue_was_found_empty_is_committed(
    looks: int,
) -> None:
    writer = Commits()
    committer, thread = _made(writer)
    late: list[asyncio.Future[int]] = []
    units = LateUnits()
    committer._queue.units = units  # type: ignore[assignment]
    first = _put(committer)
    units.looks = looks
    units.then = lambda: late.append(_put(committer))
    thread.turn()
    (second,) = late  # or the queue was not found empty as often
    assert [await first, await _soon(second)] == [1, 2]


async def test_a_unit_that_comes_during_a_commit_is_committed() -> None:
    writer = Commits()
    committer, thread = _made(writer)
    late: list[asyncio.Future[int]] = []

    def come() -> None:
        writer.during = None
        late.append(_put(committer))

    writer.during = come
    first = _put(committer)
    thread.turn()
    assert [await first, await _soon(late[0])] == [1, 2]


async def test_what_one_batch_has_no_room_for_follows_without_a_further_append() -> (
    None
):
    writer = Commits()
    committer, thread = _made(writer)
    found = [_put(committer, BATCH_EVENTS) for _ in range(3)]
    assert len(thread.waiting) == 1, "a thread that knows of work is told again"
    thread.turn()
    seqs = [await _soon(durable) for durable in found]
    assert seqs == [BATCH_EVENTS * n for n in (1, 2, 3)]
    assert writer.calls == 3
