"""What outlives a process: the log's disk, in memory or real.

A disk commits units at once, in order, each whole or not at all. That commits take time
and that a crash loses what still waits for one is the business of
`tests.simulation.ahead`.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from store.clock import Clock
from store.database import WriterLock, connect, open_reader
from store.errors import IllegalMove
from store.events import Entry, Event, RecordedEvent, TasksPlanned
from store.fold import Fold
from store.fold_state import RunState
from store.log import opening
from store.log.committer import WriterThread
from store.log.interface import Log
from store.log.sqlite import SqliteLog
from store.log.writer import PreparedEntry, Writer
from store.read.status import status
from store.read.usage import spending
from store.task import TaskDraft, TaskRow, planned_tasks
from store.verify import verify
from tests.simulation.standing import Standing, standing
from tests.store.memory_log import MemoryLog

Unit: TypeAlias = Sequence[Entry | Event]


class Disk(Protocol):
    """A run's log between and beneath its processes."""

    @property
    def seq(self) -> int:
        """Of the last event that is durable."""
        ...

    def open(self) -> Log:
        """For a process that takes the run up."""
        ...

    def commit(self, units: Sequence[Unit]) -> list[int | IllegalMove]:
        """Make *units* durable; for each its last seq, or why it was refused."""
        ...

    def end(self, *, is_crash: bool) -> None:
        """The process that had it open is gone."""
        ...

    def standing(self) -> Standing:
        """What a reader of the log sees."""
        ...

    async def recorded(self) -> list[RecordedEvent]:
        """All events."""
        ...

    async def rows(self) -> list[TaskRow]:
        """All tasks as the live projection holds them."""
        ...

    async def difference(self) -> str | None:
        """Where the live projection is not what a fold of all events gives."""
        ...


class MemoryDisk(MemoryLog):
    """The quick one: the in-memory log, kept from process to process."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.epoch = 0

    @property
    def seq(self) -> int:
        """Of the last event."""
        return len(self._events)

    def open(self) -> Log:
        """A new epoch on the same log."""
        self.epoch += 1
        return self

    def commit(self, units: Sequence[Unit]) -> list[int | IllegalMove]:
        """Append each unit."""
        outcomes: list[int | IllegalMove] = []
        for unit in units:
            try:
                self.append_nowait(*unit)
            except IllegalMove as error:
                outcomes.append(error)
            else:
                outcomes.append(self.seq)
        return outcomes

    def end(self, *, is_crash: bool) -> None:
        """Nothing was lent to the process."""

    def standing(self) -> Standing:
        """The same, from drafts and events."""
        return standing(self._tasks.values(), [r.event for r in self._events])

    async def recorded(self) -> list[RecordedEvent]:
        """All events."""
        return list(self._events)

    async def rows(self) -> list[TaskRow]:
        """All tasks."""
        return list(self._select(lambda _: True))

    async def difference(self) -> str | None:
        """Fold everything at once and compare."""
        run, tasks = RunState(), dict[int, TaskDraft]()
        fold = Fold(run=run, tasks=tasks)
        for recorded, payload in zip(self._events, self._payloads, strict=True):
            manifest = (
                planned_tasks(payload or b"")
                if isinstance(recorded.event, TasksPlanned)
                else ()
            )
            fold.apply(recorded.seq, recorded.ts_us, recorded.event, manifest)
        for block in fold.blocks:
            for number, plan in enumerate(block.tasks, block.first):
                fold.tasks.setdefault(
                    number, TaskDraft.planned(number, plan, block.seq)
                )
        if fold.run != self._run:
            return f"run state {self._run}, but the events say {fold.run}"
        return next(
            (
                f"{self._tasks.get(number)}, but the events say {draft}"
                for number, draft in fold.tasks.items()
                if self._tasks.get(number) != draft
            ),
            None if len(fold.tasks) == len(self._tasks) else "tasks nobody planned",
        )


class _Inline(WriterThread):
    """The log's thread without a thread: each function is called where it is given.

    With threads, what happens first would be up to the machine.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        super().__init__(lambda: conn)
        self._connection = conn

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call *function* with the connection."""
        return function(self._conn, *args, **kwargs)

    def leave(self) -> None:
        """Close the connection, as the end of a process does."""
        self._conn.close()
        self._connection = None


class SqliteDisk:
    """The real log on the real disk.

    After a crash the next process finds a copy of database and write-ahead log as they
    lay there at that moment.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._epoch = 0
        self._is_open = False
        self._path = folder / "0" / "log.db"
        self._path.parent.mkdir()
        self._lock = WriterLock(self._path.with_suffix(".lock"))
        self._writer: Writer
        self._thread: _Inline
        self.seq = 0

    def open(self) -> Log:
        """Open it as a new process does."""
        self._lock = WriterLock(self._path.with_suffix(".lock"))
        self._lock.acquire()
        conn = connect(self._path)
        self._thread = _Inline(conn)
        now_us = self._clock.now_us()
        if not self._epoch:
            opening.create(
                conn,
                self._path,
                run_id="simulated",
                owner="simulated",
                config_sha256=bytes(32),
                now_us=now_us,
            )
        opened = opening.open_for_writing(
            conn, self._path, owner="simulated", now_us=now_us
        )
        self._epoch = opened.epoch
        self._is_open = True
        self._writer = Writer(conn, epoch=opened.epoch, position=opened.position)
        return SqliteLog(
            self._path,
            clock=self._clock,
            lock=self._lock,
            thread=self._thread,
            opened=opened,
            writer=self._writer,
        )

    def commit(self, units: Sequence[Unit]) -> list[int | IllegalMove]:
        """One transaction, as the committer's thread makes it."""
        now_us = self._clock.now_us()
        outcomes = self._writer.commit(
            [tuple(PreparedEntry.of(entry, now_us) for entry in unit) for unit in units]
        )
        self.seq = max([self.seq, *(o for o in outcomes if isinstance(o, int))])
        return outcomes

    def end(self, *, is_crash: bool) -> None:
        """Close it, or leave the file as it lies there."""
        path = self._path
        if is_crash:
            self._path = self._folder / str(self._epoch) / "log.db"
            self._path.parent.mkdir()
            for name in ("log.db", "log.db-wal"):
                shutil.copy2(path.with_name(name), self._path.with_name(name))
        else:
            self._writer.write_projections()
        self._is_open = False
        self._thread.leave()
        self._lock.release()

    def standing(self) -> Standing:
        """What `siftlog status` shows; of a run that never began, nothing."""
        if not self.seq:
            return standing((), ())
        if self._is_open:
            self._writer.write_projections()  # as a quarter of a second later
        else:
            opening.catch_up(self._path)
        with open_reader(self._path) as reader:
            seen = status(reader)
            return Standing(
                tasks=seen.tasks,
                queues=seen.queues,
                pauses=seen.pauses,
                money=spending(reader),
                is_cancelled=seen.signs.phase == "run_cancelled",
            )

    async def recorded(self) -> list[RecordedEvent]:
        """All events."""
        log = self.open()
        found = await log.events(limit=1_000_000)
        self.end(is_crash=False)
        return found

    async def rows(self) -> list[TaskRow]:
        """All tasks."""
        log = self.open()
        found = await log.tasks(range(1, (await log.planning()).tasks + 1))
        self.end(is_crash=False)
        return found

    async def difference(self) -> str | None:
        """What `siftlog verify` finds."""
        with open_reader(self._path) as reader:
            report = verify(reader)
        if report.faults:
            return str(report.faults[0])
        return None if report.projections_compared else "projections not compared"
