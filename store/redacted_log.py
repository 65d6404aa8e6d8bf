"""Writes a copy of a log whose events say less than the originals.

The copy is a log like any other: the same events by number, time, kind, task and
attempt, under a chain of its own, with projections folded from the copied events. What
each event still says is decided by a function of the caller. Parts (texts of requests,
stored inputs) are never copied, nor are the machine and process of the writers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from store.database import SQL, LogReader, connect, copy_log
from store.encoding import Packer, unpack
from store.errors import IllegalMove, StoreError
from store.log import opening
from store.log.integrity import EventRow, genesis, link
from store.log.projections import rebuild
from store.log.writer import KindIds, insert_events

PAGE = 500
"""Commits read at a time."""

NO_CONFIG = bytes(32)
"""Takes the place of the hash of a run's configuration."""


@dataclass(frozen=True, slots=True)
class EventContent:
    """Content of a stored event: the JSON of its fields, and its payload."""

    facts: bytes
    payload: bytes | None  #: uncompressed; None: none


RedactEvent: TypeAlias = Callable[[EventRow, EventContent], EventContent]
"""Returns what the copy of an event says; the row's stored body is not to be used."""


def stored_events(
    reader: LogReader,
) -> Iterator[tuple[int, list[tuple[EventRow, EventContent]]]]:
    """Yield every commit: its last event, and its events with their content."""
    after = 0
    while page := reader.execute(SQL["links"], (after, PAGE)).fetchall():
        ends = [end for end, _ in page]
        rows = map(EventRow._make, reader.execute(SQL["link_rows"], (after, ends[-1])))
        row = next(rows, None)
        for end in ends:
            commit = []
            while row is not None and row.seq <= end:
                commit.append((row, _content(reader, row)))
                row = next(rows, None)
            yield end, commit
        after = ends[-1]


def _content(reader: LogReader, row: EventRow) -> EventContent:
    if not row.enc:
        return EventContent(row.facts, None)
    data = row.body
    encoding, length = row.enc, row.blen
    if data is None:  # adopted from the parent run
        encoding, length, data = reader.execute(SQL["payload"], (row.seq,)).fetchone()
    return EventContent(row.facts, unpack(encoding, data, length))


def stored_event(reader: LogReader, seq: int) -> tuple[EventRow, EventContent] | None:
    """Return one event with its content; None: the log has no such event."""
    row = reader.execute(SQL["link_rows"], (seq - 1, seq)).fetchone()
    if row is None:
        return None
    event = EventRow._make(row)
    return event, _content(reader, event)


def write_redacted_log(
    reader: LogReader,
    target: Path,
    *,
    run_id: str,
    redact: RedactEvent,
    progress: Callable[[str], None],
) -> None:
    """Write the copy of a log; equal logs and functions give equal bytes.

    Args:
        reader: of the log.
        target: the new file.
        run_id: of the copy.
        redact: returns what each event says in the copy.
        progress: called with a line on the progress.

    Raises:
        StoreError: the log is merged from several that answered a task twice.
    """
    draft = target.with_name(f"{target.name}.draft")
    with closing(connect(draft)) as conn:
        *_, created_us = reader.execute(SQL["run"]).fetchone()
        opening.create(
            conn,
            draft,
            run_id=run_id,
            owner="",
            config_sha256=NO_CONFIG,
            now_us=created_us,
        )
        conn.execute(SQL["synchronous_normal"])
        head = genesis(run_id, NO_CONFIG, created_us)
        conn.execute(SQL["begin"])
        for row in reader.execute(SQL["all_writers"]).fetchall():
            conn.execute(SQL["insert_writer"], row)
        _copy_events(reader, conn, head, redact, progress)
        conn.execute(SQL["commit"])
        try:
            rebuild(conn)
        except IllegalMove as error:
            raise StoreError(
                f"{reader.path} is merged from logs that answered a task twice, which "
                "one log cannot say: bundle the run without --redact"
            ) from error
    copy_log(draft, target, progress)
    for path in draft.parent.glob(f"{draft.name}*"):
        path.unlink()


def _copy_events(
    reader: LogReader,
    conn: sqlite3.Connection,
    head: bytes,
    redact: RedactEvent,
    progress: Callable[[str], None],
) -> None:
    kinds, packer = KindIds(conn), Packer()
    for last_seq, commit in stored_events(reader):
        rows = []
        for row, content in commit:
            redacted = redact(row, content)
            if redacted.payload is None:
                encoding, body, length = 0, None, 0
            else:
                encoding, body = packer.pack(redacted.payload)
                length = len(redacted.payload)
            rows.append(
                row._replace(facts=redacted.facts, enc=encoding, blen=length, body=body)
            )
        insert_events(conn, rows, kinds)
        head = link(head, rows)
        conn.execute(SQL["insert_link"], (last_seq, head))
        progress(f"{last_seq:,} events redacted")
