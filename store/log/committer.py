"""Passes appends from the event loop to the writer's thread, which commits them.

Appending puts a unit into a queue; the thread of one aiosqlite connection commits
everything queued while it was busy as one transaction. There is no timer: a lone append
is committed at once, and under load the batches grow by themselves. All waiters of a
batch are woken by a single call into the event loop.

The queue needs no task, so only the appends themselves can be cancelled or awaited;
entries of a cancelled append are still committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import aiosqlite

from store.errors import CommitRefused, Fenced, IllegalMove, LogClosed, StoreError
from store.log.projections import WRITE_EVERY_S
from store.log.writer import PreparedEntry, Writer

#: Limits of one transaction, so that a commit takes a few milliseconds.
BATCH_EVENTS = 1024
BATCH_BYTES = 4 << 20

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WriterThread(aiosqlite.Connection):
    """aiosqlite's connection, used for whole functions instead of single statements.

    A batch as one function costs one hop between threads instead of one per statement;
    hence the protected members, here only.
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
        """Call *function* on the thread, in turn, without a result."""
        self._tx.put_nowait((None, function))


class _Unit(NamedTuple):
    """The entries of one call to `append`, committed together."""

    facts: tuple[PreparedEntry, ...]
    size: int
    durable: asyncio.Future[int] | None


@dataclass(slots=True)
class _Queue:
    """Units waiting for a commit; shared by the loop and the thread.

    Both may use a deque's ends without a lock. `bytes` belongs to the loop.
    """

    units: deque[_Unit] = field(default_factory=deque)
    bytes: int = 0
    is_announced: bool = False  #: the thread has been notified

    def take(self) -> list[_Unit]:
        """Remove and return the next batch."""
        batch: list[_Unit] = []
        events = size = 0
        while self.units and events < BATCH_EVENTS and size < BATCH_BYTES:
            unit = self.units.popleft()
            batch.append(unit)
            events += len(unit.facts)
            size += unit.size
        return batch


class Committer:
    """Passes units from the event loop to the writer on its thread."""

    def __init__(self, path: Path, thread: WriterThread, writer: Writer) -> None:
        self._path = path
        self._thread = thread
        self._writer = writer
        self._queue = _Queue()
        self._loop = asyncio.get_running_loop()
        self._write_due: asyncio.TimerHandle | None = None  #: of projections
        self.failure: StoreError | None = None  #: why the log accepts no more commits

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait for a commit."""
        return self._queue.bytes

    def put(
        self, facts: tuple[PreparedEntry, ...], durable: asyncio.Future[int] | None
    ) -> None:
        """Queue *facts* to be committed together; *durable* gets the last seq."""
        queue = self._queue
        unit = _Unit(facts, sum([fact.size for fact in facts]), durable)
        queue.units.append(unit)
        queue.bytes += unit.size
        self._announce()

    async def drain(self) -> None:
        """Wait until everything queued so far is committed or has failed."""
        while self._queue.units:
            # the thread works in order, so each turn comes after a batch
            await self._thread.run(_no_op)

    def _announce(self) -> None:
        if not self._queue.is_announced:
            self._queue.is_announced = True
            self._thread.submit(self._commit)

    def _commit(self) -> None:
        """Commit one batch; on the thread."""
        # reset before taking, so that a unit which arrives later announces itself
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
        except Exception as error:  # noqa: BLE001 - a bug must not block waiters forever
            self.failure = LogClosed(
                f"{self._path} could not be written because of a bug in "
                f"siftlog ({error!r}): please report it; acknowledged "
                "events are safe"
            )
            self.failure.__cause__ = error
            return self.failure

    def end(self) -> None:
        """Cancel what is due later; call it when nothing is queued any more."""
        if self._write_due is not None:
            self._write_due.cancel()

    def _request_projections(self) -> None:
        self._write_due = None
        self._thread.submit(self._write_projections)

    def _write_projections(self) -> None:
        """Write the projections; on the thread."""
        with contextlib.suppress(StoreError):  # kept for the next append
            if self.failure is None:
                self.show()

    def show(self, *, of: int | None = None) -> None:
        """Write the projections, or only if one task needs it; on the thread.

        Raises:
            Fenced: another writer has taken the log over.
            CommitRefused: the disk refused.
        """
        try:
            self._writer.write_projections(of=of)
        except Fenced as error:
            self.failure = error
            raise
        except sqlite3.Error as error:
            raise self.fail(error) from error

    def fail(self, error: sqlite3.Error) -> CommitRefused:
        """Stop writing because the disk refused; return the error to raise.

        After a failed sync the state of the page cache is unknown, so this connection
        does not retry.
        """
        self.failure = CommitRefused(
            f"{self._path} could not be written ({error}): free space "
            "or repair the disk, then resume the run; acknowledged "
            "events are safe"
        )
        return self.failure

    def close(self, reason: str) -> LogClosed:
        """Stop writing for the reason *reason*; return the error to raise."""
        self.failure = LogClosed(reason)
        return self.failure

    def _acknowledge(
        self, batch: list[_Unit], outcomes: list[int | IllegalMove] | StoreError
    ) -> None:
        """Wake all waiters of a batch; on the loop."""
        self._queue.bytes -= sum(unit.size for unit in batch)
        if isinstance(outcomes, StoreError):
            for unit in batch:
                _settle(unit.durable, copied_error(outcomes))
            return
        # after the commit, not at the append: a batch may wait in the queue for longer
        if self._write_due is None:
            self._write_due = self._loop.call_later(
                WRITE_EVERY_S, self._request_projections
            )
        for unit, outcome in zip(batch, outcomes, strict=True):
            _settle(unit.durable, outcome)


def copied_error(error: StoreError) -> StoreError:
    """Return a copy of the error for another waiter: each needs its own traceback."""
    copy = type(error)(str(error))
    copy.__cause__ = error.__cause__
    return copy


def _settle(durable: asyncio.Future[int] | None, outcome: int | StoreError) -> None:
    if durable is None or durable.done():  # no waiter, or it was cancelled
        return
    if isinstance(outcome, StoreError):
        durable.set_exception(outcome)
    else:
        durable.set_result(outcome)


def _no_op(_conn: sqlite3.Connection) -> None:
    """Do nothing: `drain` waits for its turn in the thread's queue."""
