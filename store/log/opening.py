"""Creates logs, opens them for writing, and brings their projections up to date.

Everything here runs on the writer's thread, under the writer's lock, and costs the
same for a log of ten events and of ten million.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from store import tables
from store.database import (
    SCHEMA_VERSION,
    SQL,
    WriterLock,
    connect,
    is_union,
    no_wal,
    open_reader,
)
from store.errors import CorruptLog, NewerLog, StoreError, Unwritable
from store.events import KINDS
from store.log.integrity import (
    EventRow,
    HeadWriter,
    LogEnd,
    OpenSlots,
    Position,
    check_end,
    genesis,
    heads_path,
    link_of_stored,
)
from store.log.projections import fold_between, rebuild
from store.statements import script

#: Set on every opening for writing. FULL: an acknowledged event survives power loss.
#: No mmap: a stray write through it could damage the file.
_PRAGMAS = (
    "journal_mode",
    "synchronous",
    "autocheckpoint",
    "journal_size_limit",
    "writer_cache",
    "writer_timeout",
    "recursive_triggers",
    "trusted_schema",
    "temp_store",
)


#: Commits checked in a log whose writer died: more than a WAL holds, which is
#: checkpointed at 512 pages; a commit changes at least two, of its events and of the
#: chain. A reader with an old snapshot may have let it grow further.
TAIL_COMMITS = 1024
TAIL_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLog:
    """A log that is ready to be written."""

    run_id: str
    config_sha256: bytes
    epoch: int
    writer: bytes  #: id of this opening's writer; (writer, seq) identifies an event
    position: Position
    genesis: bytes | None  #: start of the chain; None: of a union, which is derived


def prepare(conn: sqlite3.Connection, path: Path) -> None:
    """Configure the connection.

    Raises:
        Unwritable: the file system cannot keep a WAL.
    """
    for pragma in _PRAGMAS:
        row = conn.execute(SQL[pragma]).fetchone()
        if pragma == "journal_mode" and row[0] != "wal":
            raise Unwritable(no_wal(path, row[0]))


def _no_setup(conn: sqlite3.Connection) -> None:
    del conn


def create(
    conn: sqlite3.Connection,
    path: Path,
    *,
    run_id: str,
    owner: str,
    config_sha256: bytes,
    now_us: int,
    extra_setup: Callable[[sqlite3.Connection], None] = _no_setup,
) -> None:
    """Create an empty log atomically, with what *extra_setup* creates in it."""
    conn.execute(SQL["page_size"])
    prepare(conn, path)
    conn.execute(SQL["begin"])
    conn.execute(SQL["set_application_id"])
    for name in ("schema", "projections", "indexes", "public"):
        for statement in script(name):
            conn.execute(statement)
    conn.execute(
        SQL["insert_run"], (run_id, owner, SCHEMA_VERSION, config_sha256, now_us)
    )
    extra_setup(conn)
    conn.execute(SQL["commit"])


def open_for_writing(
    conn: sqlite3.Connection, path: Path, *, owner: str, now_us: int
) -> OpenedLog:
    """Check the log's end, update its projections, and become its writer.

    Raises:
        NewerLog: it holds events of a later siftlog.
        CorruptLog: its last commit has changed.
    """
    position = ready(conn, path)
    run_id, _epoch, config_sha256, created_us = conn.execute(SQL["run"]).fetchone()
    conn.execute(SQL["begin"])
    (epoch,) = conn.execute(SQL["take_over"], (owner,)).fetchone()
    writer = os.urandom(16)
    conn.execute(SQL["insert_writer"], (epoch, writer, now_us))
    conn.execute(SQL["commit"])
    first = genesis(run_id, config_sha256, created_us)
    return OpenedLog(
        run_id=run_id,
        config_sha256=config_sha256,
        epoch=epoch,
        writer=writer,
        position=position,
        genesis=None if is_union(conn) else first,
    )


def ready(conn: sqlite3.Connection, path: Path) -> Position:
    """Check a log's end and update its projections; return its end.

    Raises:
        NewerLog: it holds events of a later siftlog.
        CorruptLog: its last commit has changed.
    """
    prepare(conn, path)
    _check_kinds(conn, path)
    run_id, _epoch, config_sha256, created_us = conn.execute(SQL["run"]).fetchone()
    position = _end_of(conn, path, genesis(run_id, config_sha256, created_us))
    _update(conn, position.seq)
    return position


def _update(conn: sqlite3.Connection, end_seq: int) -> None:
    """Fold the events that a killed writer had not folded into its tables yet."""
    applied = tables.applied_seq(conn)
    if applied is None:
        rebuild(conn)
    elif applied < end_seq:
        conn.execute(SQL["begin"])
        try:
            for _ in fold_between(conn, conn, applied, end_seq):
                pass
            conn.execute(SQL["commit"])
        except BaseException:
            conn.execute(SQL["rollback"])
            raise


def catch_up(path: Path) -> None:
    """Write the projections that a killed writer left behind, unless one is at work.

    Readers then see the run as of its last event. If the log is damaged or
    may not be written, it stays unchanged, and is read as of a moment before.
    """
    with suppress(StoreError, OSError, sqlite3.Error), ExitStack() as opened:
        lock = WriterLock(path.with_suffix(".lock"))
        lock.acquire()
        opened.callback(lock.release)
        check(path, accept_loss=False)
        ready(opened.enter_context(closing(connect(path))), path)


def _check_kinds(conn: sqlite3.Connection, path: Path) -> None:
    """Refuse to write to a log that holds events of a later siftlog."""
    for name, _id, version in conn.execute(SQL["kinds"]).fetchall():
        event_class = KINDS.get(name)
        if event_class is not None and version > event_class.VERSION:
            raise NewerLog(
                f"{path} holds {name!r} events of version {version}, known up to "
                f"{event_class.VERSION}: upgrade siftlog; it can still be read"
            )


def check(path: Path, *, accept_loss: bool) -> LogEnd:
    """Check a log with a reader, before it is opened for writing.

    Raises:
        EventsLost: acknowledged events are missing, and that was not accepted.
        NewerLog: it holds events of a later siftlog.
        StoreError: the log is damaged, or cannot be read.
    """
    end = check_end(path, accept_loss=accept_loss)
    if not end.is_closed:
        with open_reader(path) as reader:
            _check_kinds(reader, path)
            check_tail(reader, path)
    return end


def check_tail(conn: sqlite3.Connection, path: Path) -> None:
    """Check everything that a WAL may have held when its writer died.

    A truncated WAL that was partly copied into the database leaves a mix of old and new
    pages. So the links of the last commits must hold, and the tasks must reflect their
    events, as far as these were folded. Takes a fraction of a second for a log of any
    length.

    Args:
        conn: a reader, so that a damaged WAL is not modified.
        path: the log, for the message.

    Raises:
        CorruptLog: events have changed, or tasks do not fit them.
    """
    run_id, _epoch, config_sha256, created_us = conn.execute(SQL["run"]).fetchone()
    links = conn.execute(SQL["links_back"], (TAIL_COMMITS + 1,)).fetchall()
    if len(links) <= TAIL_COMMITS:
        links.append((0, genesis(run_id, config_sha256, created_us)))
    weight = 0
    recent: list[EventRow] = []  #: from the end of the log on
    for (end_seq, head), (before_seq, before) in pairwise(links):
        if weight > TAIL_BYTES:
            break
        link_rows = conn.execute(SQL["link_rows"], (before_seq, end_seq)).fetchall()
        rows = [EventRow._make(row) for row in link_rows]
        if link_of_stored(before, rows) != head:
            raise _changed(path, f"events {before_seq + 1} to {end_seq}")
        weight += sum(len(row.facts) + len(row.body or b"") for row in rows)
        recent += [row._replace(body=None) for row in reversed(rows)]
    visible = _visible_events(conn, recent)
    numbers = json.dumps(list(visible))
    stored = dict(conn.execute(SQL["latest_events"], (numbers,)).fetchall())
    wrong = [task for task, seq in visible.items() if stored.get(task) != seq]
    if wrong:
        raise _changed(path, f"task {min(wrong)}")


def _visible_events(
    conn: sqlite3.Connection, recent: Iterable[EventRow]
) -> dict[int, int | None]:
    """Return the last event that each task's row should show; None: none of its own.

    Args:
        conn: a reader.
        recent: the last events of the log, the latest first.
    """
    applied = tables.applied_seq(conn)
    if applied is None:
        applied = tables.last_seq(conn)  # as every writer of that version kept it
    visible: dict[int, int | None] = {}
    for row in recent:
        if row.task is not None and row.seq > applied:
            visible[row.task] = row.prev
        elif row.task is not None:
            visible.setdefault(row.task, row.seq)
    # an event that is not folded either: the one before it is not among these
    return {task: seq for task, seq in visible.items() if (seq or 0) <= applied}


def _changed(path: Path, subject: str) -> CorruptLog:
    return CorruptLog(
        f"{path} was changed or damaged near its end ({subject}): see 'siftlog "
        "verify', then restore a copy of the run's folder"
    )


def _end_of(conn: sqlite3.Connection, path: Path, first: bytes) -> Position:
    """Return the end of the log; its last link must be valid."""
    tail = conn.execute(SQL["tail"]).fetchone()
    links = conn.execute(SQL["last_links"]).fetchall()
    seq, ts_us = tail or (0, 0)
    last_seq, head = links[0] if links else (0, first)
    before_seq, before = links[1] if len(links) > 1 else (0, first)
    rows = conn.execute(SQL["link_rows"], (before_seq, last_seq)).fetchall()
    if seq != last_seq or (
        links and link_of_stored(before, map(EventRow._make, rows)) != head
    ):
        raise CorruptLog(
            f"{path} was changed or damaged at its end (event {seq}): see "
            "'siftlog verify', then restore a copy of the run's folder"
        )
    return Position(seq=seq, ts_us=ts_us, link=head)


def begin_heads(
    path: Path, opened: OpenedLog, open_slots: OpenSlots
) -> HeadWriter | None:
    """Return the sidecar of a log opened for writing, started at its end.

    Called after that commit, which also made durable what a killed writer had written
    but not synced. A union has no sidecar, because it is derived.
    """
    if opened.genesis is None:
        return None
    try:
        file = open_slots(heads_path(path))
    except OSError:
        return None  # the log works without it, but its end is unproven
    head_writer = HeadWriter(file, genesis=opened.genesis, epoch=opened.epoch)
    head_writer.begin(opened.position.seq, opened.position.link)
    return head_writer
