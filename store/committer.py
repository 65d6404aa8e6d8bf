"""Group commit: many appenders share one transaction, and one sync of the disk.

Appending puts a unit into a queue; the thread of one aiosqlite connection takes
whatever has queued up while it was busy and commits it as one transaction. There is no
timer: a lone append is committed at once, and under load the batches grow by
themselves. All waiters of a batch are woken by a single call into the event loop.

The queue needs no task of its own, so that nothing has to be cancelled or awaited but
the appends themselves; a cancelled appender's entries are committed all the same.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import aiosqlite

from store.errors import Fenced, IllegalMove, LogClosed, StoreError
from store.writer import Fact, Writer

#: One transaction takes at most this much: the commit stays a few milliseconds long.
BATCH_EVENTS = 1024
BATCH_BYTES = 4 << 20

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WriterThread(aiosqlite.Connection):
    """aiosqlite's connection, used for whole functions instead of single statements.

    A batch as one function costs one hop between threads, where statement by statement
    it would cost one each; hence the protected members, here and nowhere else.
    """

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)

    async def run(
        self,
        function: Callable[Concatenate[sqlite3.Connection, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Call *function* with the connection, on its thread."""
        result: _T = await self._execute(function, self._conn, *args, **kwargs)  # type: ignore[no-untyped-call]
        return result

    def submit(self, function: Callable[[], None]) -> None:
        """Call *function* on the thread, in turn, and tell nobody."""
        self._tx.put_nowait((None, function))


class _Unit(NamedTuple):
    """What one call to `append` wants committed together."""

    facts: tuple[Fact, ...]
    size: int
    durable: asyncio.Future[int] | None


@dataclass(slots=True)
class _Queue:
    """Units waiting for a commit; shared by the loop and the thread.

    A deque's ends may be used from both without a lock. `bytes` belongs to the loop.
    """

    units: deque[_Unit] = field(default_factory=deque)
    bytes: int = 0
    is_announced: bool = False  #: the thread has been told that there is something

    def take(self) -> list[_Unit]:
        """The next batch."""
        batch: list[_Unit] = []
        events = size = 0
        while self.units and events < BATCH_EVENTS and size < BATCH_BYTES:
            unit = self.units.popleft()
            batch.append(unit)
            events += len(unit.facts)
            size += unit.size
        return batch


class Committer:
    """The way from appenders on the event loop to the writer on its thread."""

    def __init__(self, path: Path, thread: WriterThread, writer: Writer) -> None:
        self._path = path
        self._thread = thread
        self._writer = writer
        self._queue = _Queue()
        self._loop = asyncio.get_running_loop()
        self.failure: StoreError | None = None  #: why nothing more can be committed

    @property
    def queued_bytes(self) -> int:
        """What waits for a commit."""
        return self._queue.bytes

    def put(self, facts: tuple[Fact, ...], durable: asyncio.Future[int] | None) -> None:
        """Have *facts* committed together; *durable* is told the last one's seq."""
        queue = self._queue
        unit = _Unit(facts, sum([fact.size for fact in facts]), durable)
        queue.units.append(unit)
        queue.bytes += unit.size
        self._announce()

    async def drain(self) -> None:
        """Return when everything queued so far has been committed, or has failed."""
        while self._queue.units:
            # the thread works in order, so each turn comes after a batch
            await self._thread.run(_nothing)

    def _announce(self) -> None:
        if not self._queue.is_announced:
            self._queue.is_announced = True
            self._thread.submit(self._commit)

    def _commit(self) -> None:
        """Commit one batch; on the thread."""
        # withdrawn before taking, so that a unit which comes too late announces itself
        self._queue.is_announced = False
        batch = self._queue.take()
        if not batch:
            return
        outcomes = self._outcomes(batch)
        if self._queue.units:
            self._announce()
        self._loop.call_soon_threadsafe(self._acknowledge, batch, outcomes)

    def _outcomes(self, batch: list[_Unit]) -> list[int | IllegalMove] | StoreError:
        if self.failure is not None:
            return self.failure
        try:
            return self._writer.commit([unit.facts for unit in batch])
        except Fenced as error:
            self.failure = error
            return error
        except sqlite3.Error as error:
            return self.fail(error)
        except Exception as error:  # noqa: BLE001 - nobody may wait for ever for a bug
            self.failure = LogClosed(
                f"{self._path} could not be written by a mistake of siftlog's "
                f"({error!r}): report it; what was acknowledged is safe"
            )
            self.failure.__cause__ = error
            return self.failure

    def fail(self, error: sqlite3.Error) -> LogClosed:
        """Write nothing more, since the disk refused; the error to be raised.

        After a failed sync nobody knows what the page cache holds, so there is no
        second try on this connection.
        """
        return self.close(
            f"{self._path} could not be written ({error}): make room or mend the disk, "
            "then resume the run; what was acknowledged is safe"
        )

    def close(self, why: str) -> LogClosed:
        """Write nothing more, for the reason *why*; the error to be raised."""
        self.failure = LogClosed(why)
        return self.failure

    def _acknowledge(
        self, batch: list[_Unit], outcomes: list[int | IllegalMove] | StoreError
    ) -> None:
        """Wake everybody who waits for a batch; on the loop."""
        self._queue.bytes -= sum(unit.size for unit in batch)
        if isinstance(outcomes, StoreError):
            for unit in batch:
                _settle(unit.durable, same(outcomes))
            return
        for unit, outcome in zip(batch, outcomes, strict=True):
            _settle(unit.durable, outcome)


def same(error: StoreError) -> StoreError:
    """The error once more, for another waiter: a traceback belongs to one of them."""
    copy = type(error)(str(error))
    copy.__cause__ = error.__cause__
    return copy


def _settle(durable: asyncio.Future[int] | None, outcome: int | StoreError) -> None:
    if durable is None or durable.done():  # nobody waits, or not any more
        return
    if isinstance(outcome, StoreError):
        durable.set_exception(outcome)
    else:
        durable.set_result(outcome)


def _nothing(_conn: sqlite3.Connection) -> None:
    """Only wait for one's turn."""
