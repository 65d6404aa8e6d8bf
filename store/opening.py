"""Creating a log, and opening one for writing: what must hold before the first append.

Everything here runs on the writer's thread, under the writer's lock, and costs the
same for a log of ten events and of ten million.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from store import projections
from store.chain import EventRow, genesis, link_again
from store.connect import SCHEMA_VERSION, no_wal, open_reader
from store.errors import CorruptLog, NewerLog, StoreError
from store.events import KINDS
from store.heads import End, check_end
from store.rebuild import rebuild
from store.statements import SQL, script
from store.union.statements import is_union
from store.writer import Position

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


#: What is checked of a log whose writer died: more than a WAL holds, which is copied
#: back at 8 MiB; a commit changes eight of its pages of 8 KiB or more. A reader that
#: held an old moment may have let it grow further.
TAIL_COMMITS = 1024
TAIL_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A log that is ready to be written."""

    run_id: str
    config_sha256: bytes
    epoch: int
    position: Position
    genesis: bytes | None  #: what the chain begins with; None: of a union, derived


def prepare(conn: sqlite3.Connection, path: Path) -> None:
    """Set the connection up.

    Raises:
        StoreError: the file system cannot keep a WAL.
    """
    for pragma in _PRAGMAS:
        row = conn.execute(SQL[pragma]).fetchone()
        if pragma == "journal_mode" and row[0] != "wal":
            raise StoreError(no_wal(path, row[0]))


def _nothing(conn: sqlite3.Connection) -> None:
    del conn


def create(
    conn: sqlite3.Connection,
    path: Path,
    *,
    run_id: str,
    owner: str,
    config_sha256: bytes,
    now_us: int,
    beside: Callable[[sqlite3.Connection], None] = _nothing,
) -> None:
    """Make an empty log, whole or not at all, with what *beside* makes in it."""
    conn.execute(SQL["page_size"])
    prepare(conn, path)
    conn.execute(SQL["begin"])
    conn.execute(SQL["set_application_id"])
    for name in ("schema", "projections", "indexes"):
        for statement in script(name):
            conn.execute(statement)
    conn.execute(
        SQL["insert_run"], (run_id, owner, SCHEMA_VERSION, config_sha256, now_us)
    )
    beside(conn)
    conn.execute(SQL["commit"])


def open_for_writing(
    conn: sqlite3.Connection, path: Path, *, owner: str, now_us: int
) -> Opened:
    """Check the log's end, bring its projections up to date, and take it over.

    Raises:
        NewerLog: it holds events of a later siftlog.
        CorruptLog: its last commit is not what it was.
    """
    position = ready(conn, path)
    run_id, _epoch, config_sha256, created_us = conn.execute(SQL["run"]).fetchone()
    conn.execute(SQL["begin"])
    (epoch,) = conn.execute(SQL["take_over"], (owner,)).fetchone()
    conn.execute(SQL["insert_writer"], (epoch, os.urandom(16), now_us))
    conn.execute(SQL["commit"])
    first = genesis(run_id, config_sha256, created_us)
    return Opened(
        run_id=run_id,
        config_sha256=config_sha256,
        epoch=epoch,
        position=position,
        genesis=None if is_union(conn) else first,
    )


def ready(conn: sqlite3.Connection, path: Path) -> Position:
    """Check a log's end and bring its projections up to date; where it ends.

    Raises:
        NewerLog: it holds events of a later siftlog.
        CorruptLog: its last commit is not what it was.
    """
    prepare(conn, path)
    _check_kinds(conn, path)
    run_id, _epoch, config_sha256, created_us = conn.execute(SQL["run"]).fetchone()
    position = _end_of(conn, path, genesis(run_id, config_sha256, created_us))
    if not projections.is_current(conn, position.seq):
        rebuild(conn)
    return position


def _check_kinds(conn: sqlite3.Connection, path: Path) -> None:
    """Refuse to go on with a log that holds events of a later siftlog."""
    for name, _id, version in conn.execute(SQL["kinds"]).fetchall():
        known = KINDS.get(name)
        if known is not None and version > known.VERSION:
            raise NewerLog(
                f"{path} holds {name!r} events of version {version}, known up to "
                f"{known.VERSION}: upgrade siftlog; it can still be read"
            )


def check(path: Path, *, accept_loss: bool) -> End:
    """Check what a reader can see of a log, before it is opened for writing.

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
    """Check all that a WAL may have held when its writer died.

    A WAL that is cut short, where part of it had been copied into the database, leaves
    pages of different ages side by side. So the links of the last commits must hold,
    and the tasks of their events must have come as far as these. Takes a fraction of a
    second, for a log of any length.

    Args:
        conn: a reader, so that a damaged WAL stays as it is.
        path: the log, for the message.

    Raises:
        CorruptLog: events are not what they were, or tasks are behind them.
    """
    run_id, _epoch, config_sha256, created_us = conn.execute(SQL["run"]).fetchone()
    links = conn.execute(SQL["links_back"], (TAIL_COMMITS + 1,)).fetchall()
    if len(links) <= TAIL_COMMITS:
        links.append((0, genesis(run_id, config_sha256, created_us)))
    latest: dict[int, int] = {}
    weight = 0
    for (end_seq, head), (before_seq, before) in pairwise(links):
        if weight > TAIL_BYTES:
            break
        found = conn.execute(SQL["link_rows"], (before_seq, end_seq)).fetchall()
        rows = [EventRow._make(row) for row in found]
        if link_again(before, rows) != head:
            raise _changed(path, f"events {before_seq + 1} to {end_seq}")
        for row in rows:
            weight += len(row.facts) + len(row.body or b"")
            if row.task is not None:
                latest[row.task] = max(row.seq, latest.get(row.task, 0))
    stored = conn.execute(SQL["latest_events"], (json.dumps(list(latest)),)).fetchall()
    behind = dict(latest.items() - set(stored))
    if behind:
        raise _changed(path, f"task {min(behind)}")


def _changed(path: Path, what: str) -> CorruptLog:
    return CorruptLog(
        f"{path} was changed or damaged near its end ({what}): see 'siftlog verify', "
        "then restore a copy of the run's folder"
    )


def _end_of(conn: sqlite3.Connection, path: Path, first: bytes) -> Position:
    """Where the log ends; its last link must hold."""
    tail = conn.execute(SQL["tail"]).fetchone()
    links = conn.execute(SQL["last_links"]).fetchall()
    seq, ts_us = tail or (0, 0)
    last_seq, head = links[0] if links else (0, first)
    before_seq, before = links[1] if len(links) > 1 else (0, first)
    rows = conn.execute(SQL["link_rows"], (before_seq, last_seq)).fetchall()
    if seq != last_seq or (
        links and link_again(before, map(EventRow._make, rows)) != head
    ):
        raise CorruptLog(
            f"{path} was changed or damaged at its end (event {seq}): see "
            "'siftlog verify', then restore a copy of the run's folder"
        )
    return Position(seq=seq, ts_us=ts_us, link=head)
