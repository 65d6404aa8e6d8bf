"""Implements the event log on SQLite, as the engine uses it during a run.

A shell around parts that each do one thing: `store.log.opening` checks and opens,
`store.log.committer` collects appends, `store.log.writer` makes a commit of them,
`store.tables` reads. One connection on one thread serves them all, so that reads see
what was appended before them and no second connection interferes with the writer's
checkpoints.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

import aiosqlite

from store import tables
from store.clock import Clock
from store.database import SQL, Connector, WriterLock, connect, open_reader
from store.errors import CorruptLog, LogBehind, LogClosed, RunExists, Unwritable
from store.events import Entry, Event, RecordedEvent
from store.filesystem import identity_of, network_problem
from store.forked import serve_bodies
from store.log import opening
from store.log.committer import Committer, WriterThread, copied_error
from store.log.integrity import OpenSlots, check_absent, open_slots
from store.log.interface import LogStatistics, Planning, StoredReply
from store.log.writer import PreparedEntry, Writer
from store.task import TaskRow

#: Bytes that may wait for a commit before `append_nowait` refuses more.
QUEUE_BYTES = 64 << 20

_P = ParamSpec("_P")
_T = TypeVar("_T")


class SqliteLog:
    """One run's log, open for writing by this process and no other.

    Create it with `create` or `open`; as an async context manager it closes itself:

        async with await SqliteLog.open(path, clock=clock, owner="me@host") as log:
            seq = await log.append(TaskSkipped(task=7, reason="no questions"))
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        lock: WriterLock,
        thread: WriterThread,
        opened: opening.OpenedLog,
        writer: Writer,
    ) -> None:
        self._path = path
        self._clock = clock
        self._lock = lock
        self._thread = thread
        self._opened = opened
        self._writer = writer
        self._committer = Committer(path, thread, writer)
        wal = path.with_name(f"{path.name}-wal")
        self._files = {file: identity_of(file) for file in (path, wal)}
        self._is_closed = False
        self.lost = 0  #: missing or changed events whose loss was accepted

    @classmethod
    async def create(
        cls,
        path: Path,
        *,
        run_id: str,
        config_sha256: bytes,
        clock: Clock,
        owner: str,
        connector: Connector = connect,
        open_slots: OpenSlots = open_slots,
    ) -> Self:
        """Create a new log at *path* and open it.

        Args:
            path: path of `log.db`; its folder must exist.
            run_id: the run's id.
            config_sha256: hash of the run's resolved configuration.
            clock: supplies the time of every event.
            owner: who writes, for messages: "user@host".
            connector: opens the file.
            open_slots: opens its sidecar.

        Raises:
            RunExists: a log already exists.
            EventsLost: only the sidecar of an earlier log is left.
            LogBusy: another process is writing it.
            Unwritable: the file system cannot keep a log.
        """

        def create(conn: sqlite3.Connection) -> None:
            if conn.execute(SQL["tables"]).fetchone()[0]:
                raise RunExists(
                    f"there is already a run at {path}: resume it with 'siftlog "
                    f"resume {run_id}', or choose another id"
                )
            opening.create(
                conn,
                path,
                run_id=run_id,
                owner=owner,
                config_sha256=config_sha256,
                now_us=clock.now_us(),
            )

        check_absent(path)
        return await cls._start(
            path,
            clock,
            owner,
            connector=connector,
            open_slots=open_slots,
            first=create,
        )

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        owner: str,
        connector: Connector = connect,
        open_slots: OpenSlots = open_slots,
        accept_loss: bool = False,
    ) -> Self:
        """Open the log at *path* for writing.

        Opening records nothing: `in_flight` lists attempts that an earlier writer left
        without an outcome, and the caller decides about them.

        Args:
            path: path of the log.
            clock: supplies the time of every event.
            owner: who writes, for messages: "user@host".
            connector: opens the file.
            open_slots: opens its sidecar.
            accept_loss: open it although acknowledged events are missing.

        Raises:
            NoSuchRun: there is no file.
            EventsLost: acknowledged events are missing; the files stay as they are.
            LogBusy: another process is writing it.
            NotALog: it is another program's file.
            NewerLog: a later siftlog wrote it.
            CorruptLog: its last commit is damaged.
            Unwritable: it is on a network file system, or has no space.
        """
        # checked before any file is created next to it, since it may belong to another
        # program; by a reader, which leaves a damaged WAL as evidence
        end = opening.check(path, accept_loss=accept_loss)
        log = await cls._start(
            path, clock, owner, connector=connector, open_slots=open_slots
        )
        log.lost = end.lost_events
        return log

    @classmethod
    async def _start(
        cls,
        path: Path,
        clock: Clock,
        owner: str,
        *,
        connector: Connector,
        open_slots: OpenSlots,
        first: Callable[[sqlite3.Connection], None] | None = None,
    ) -> Self:
        refused = network_problem(path.parent)
        if refused is not None:
            raise Unwritable(refused)
        lock = WriterLock(path.with_suffix(".lock"))
        thread = WriterThread(lambda: connector(path))
        # an earlier Ctrl-C arrives here, where there is nothing to undo
        await asyncio.sleep(0)
        connecting: asyncio.Future[aiosqlite.Connection] | None = None
        try:
            lock.acquire()
            connecting = asyncio.ensure_future(thread)  # noqa: TID251 - awaited below, whatever happens
            await asyncio.shield(connecting)
            if first is not None:
                await thread.run(first)
            opened = await thread.run(
                opening.open_for_writing, path, owner=owner, now_us=clock.now_us()
            )
            writer = await thread.run(
                Writer,
                epoch=opened.epoch,
                position=opened.position,
                head_writer=opening.begin_heads(path, opened, open_slots),
            )
        except BaseException as error:
            if connecting is not None:
                # the thread cannot be closed before it has connected, or failed to
                await asyncio.wait([connecting])
            await thread.close()
            lock.release()
            if isinstance(error, OSError | sqlite3.Error):
                raise Unwritable(
                    f"{path} cannot be opened for writing ({error}): check that "
                    "its folder exists, is writable and has free space"
                ) from error
            raise
        return cls(
            path, clock=clock, lock=lock, thread=thread, opened=opened, writer=writer
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._opened.run_id

    @property
    def config_sha256(self) -> bytes:
        """Hash of the configuration that the log was created with."""
        return self._opened.config_sha256

    @property
    def epoch(self) -> int:
        """Number of this opening of the log, from 1."""
        return self._opened.epoch

    @property
    def writer(self) -> str:
        """Id of this opening's writer, in hex; with a seq it identifies an event."""
        return self._opened.writer.hex()

    async def append(self, *entries: Entry | Event) -> int:
        """Record *entries* as one unit; return the last one's seq once durable."""
        durable: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._put(entries, durable)
        return await durable

    def append_nowait(self, *entries: Entry | Event) -> None:
        """Record *entries* with the next commit, without waiting for it."""
        self._check_open()
        if self._committer.queued_bytes > QUEUE_BYTES:
            raise LogBehind(
                f"more than {QUEUE_BYTES >> 20} MiB wait to be written to "
                f"{self._path}: append and wait instead"
            )
        self._put(entries, None)

    def _put(
        self, entries: Sequence[Entry | Event], durable: asyncio.Future[int] | None
    ) -> None:
        self._check_open()
        if not entries:
            raise ValueError("nothing to append")
        now_us = self._clock.now_us()
        self._committer.put(
            tuple(PreparedEntry.of(e, now_us) for e in entries), durable
        )

    def _check_open(self) -> None:
        if self._committer.failure is not None:
            raise copied_error(self._committer.failure)
        if self._is_closed:
            raise LogClosed(f"{self._path} is closed: resume the run to write to it")

    async def heartbeat(self) -> None:
        """Record that the process is alive (a plain row, outside the events).

        Raises:
            LogClosed: it cannot be written, or its files are no longer at its path.
        """
        self._check_open()
        now_us = self._clock.now_us()
        self._check_files()
        try:
            await self._thread.run(lambda _conn: self._writer.write_heartbeat(now_us))
        except sqlite3.Error as error:
            raise self._committer.fail(error) from error

    def _check_files(self) -> None:
        """Close the log if its files were deleted, moved or replaced.

        SQLite would continue to write to files that no longer have a name.
        """
        for file, identity in self._files.items():
            if identity is not None and identity_of(file) != identity:
                raise self._committer.close(
                    f"{file} was deleted, moved or replaced while the run was "
                    "writing to it; no further call is sent: restore the run's "
                    "folder, then resume the run"
                )

    async def _read(
        self,
        function: Callable[Concatenate[sqlite3.Connection, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Read projections, after all that was appended before."""

        def read(conn: sqlite3.Connection) -> _T:
            self._committer.show()
            return function(conn, *args, **kwargs)

        return await self._read_events(read)

    async def _read_task(
        self, function: Callable[[sqlite3.Connection, int], _T], task: int
    ) -> _T:
        """Read by the row of one task; cheaper than `_read` if it has not changed."""

        def read(conn: sqlite3.Connection) -> _T:
            self._committer.show(of=task)
            return function(conn, task)

        return await self._read_events(read)

    async def _read_events(
        self,
        function: Callable[Concatenate[sqlite3.Connection, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Read what needs no projections."""
        self._check_open()
        try:
            return await self._thread.run(function, *args, **kwargs)
        except sqlite3.DatabaseError as error:
            raise CorruptLog(
                f"{self._path} cannot be read ({error}): see 'siftlog verify "
                f"{self.run_id}', then restore a copy of the run's folder"
            ) from error

    async def planning(self) -> Planning:
        """Return the progress of the plan."""
        return await self._read(tables.planning)

    async def open_tasks(
        self, stage: str, model: str, *, after: int, limit: int
    ) -> list[TaskRow]:
        """Return queued and waiting tasks with a number above *after*, ascending."""
        return await self._read(
            tables.task_rows, SQL["open_tasks"], (stage, model, after, limit)
        )

    async def final_tasks(
        self, stage: str, model: str, *, after: int, limit: int
    ) -> list[TaskRow]:
        """Return completed and failed tasks with a number above *after*, ascending."""
        return await self._read(
            tables.task_rows, SQL["final_tasks"], (stage, model, after, limit)
        )

    async def tasks(self, numbers: Sequence[int]) -> list[TaskRow]:
        """Return the tasks with these numbers, ascending; omit unknown numbers."""
        return await self._read(tables.tasks_numbered, numbers)

    async def family(self, root: int) -> list[TaskRow]:
        """Return the first-stage task *root* and all its descendants, ascending."""
        return await self._read(tables.task_rows, SQL["family"], (root,))

    async def group(
        self, stage: str, model: str, replicate: int, group: str
    ) -> list[TaskRow]:
        """Return the tasks that a gathering stage collects under one key, ascending."""
        return await self._read(
            tables.task_rows, SQL["group"], (stage, model, replicate, group)
        )

    async def group_is_open(
        self, stage: str, model: str, replicate: int, group: str
    ) -> bool:
        """Return whether any task of a group is open; cheaper than a full read."""
        return await self._read(tables.group_is_open, stage, model, replicate, group)

    async def in_flight(self) -> list[tuple[int, int]]:
        """Return started attempts without a recorded outcome, ascending."""
        return await self._read(tables.in_flight)

    async def unread_answers(self, *, after: int, limit: int) -> list[TaskRow]:
        """Return running tasks with an unparsed stored reply: ascending, > *after*."""
        return await self._read(tables.task_rows, SQL["unread_answers"], (after, limit))

    async def reply(self, task: int) -> StoredReply | None:
        """Return the current reply of *task*."""
        return await self._read_task(tables.reply, task)

    async def task_events(self, task: int) -> list[RecordedEvent]:
        """Return the events about one task only, ascending."""
        return await self._read_task(tables.task_events, task)

    async def started(self, task: int) -> str | None:
        """Return `request_sha256` of the task's latest started attempt."""
        return await self._read_task(tables.started, task)

    async def events(
        self, *, after: int = 0, limit: int = 1000, kinds: Sequence[str] | None = None
    ) -> list[RecordedEvent]:
        """Return events with seq above *after*, ascending."""
        return await self._read(tables.recorded, after, limit, kinds)

    async def serve_forked_bodies(self) -> None:
        """Let a fork's own reads find the bodies that its parent run has."""
        await self._thread.run(serve_bodies, self._path, open_reader)

    async def payload(self, seq: int) -> bytes | None:
        """Return the payload of an event."""
        return await self._read_events(tables.payload, seq)

    async def last_seq(self) -> int:
        """Return the seq of the latest committed event; 0 in an empty log.

        Readers of the file then see the projections of it.
        """
        return await self._read(tables.last_seq)

    def statistics(self) -> LogStatistics:
        """Return the writer's statistics."""
        written = self._writer.written
        wal = self._path.with_name(self._path.name + "-wal")
        return LogStatistics(
            commits=written.commits,
            events=written.events,
            bytes_written=written.bytes,
            queued_bytes=self._committer.queued_bytes,
            wal_bytes=wal.stat().st_size if wal.exists() else 0,
        )

    async def close(self) -> None:
        """Commit queued entries and release the log; harmless when repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._committer.drain()
            self._committer.end()
            if self._committer.failure is None:
                await self._thread.run(lambda _conn: self._writer.end())
        finally:
            self._writer.release()
            await self._thread.close()
            self._lock.release()
