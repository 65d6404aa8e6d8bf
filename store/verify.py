"""Verifies a log: its bytes, projections and schema.

The chain proves that no event was changed, the hashes prove the same for message parts,
and a second fold of all events proves the projections. Nothing is written; a live run
is checked up to the event that was last when the check started.

A foreign view, trigger or index is code that SQLite runs when the log is read: a view
named `run` may never end. So the schema is checked first, from the one table that
cannot be replaced.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from pathlib import Path

import msgspec

from store.database import (
    DERIVED,
    SQL,
    UNION,
    LogReader,
    is_union,
    read_only,
    unreadable,
)
from store.encoding import event_of, unpack
from store.errors import CorruptLog, IllegalMove, ignore_progress
from store.events import (
    KINDS,
    AttemptStarted,
    Event,
    ScoringRecorded,
    TasksPlanned,
    UnknownEvent,
)
from store.forked import adopted_bodies
from store.log.integrity import EventRow, genesis, link_of_stored
from store.log.projections import fold_between, refold
from store.printable import one_line
from store.redacted_log import NO_CONFIG
from store.statements import script
from store.tables import applied_seq, last_seq
from store.task import planned_tasks

PAGE = 200
KNOWN_PARTS = 4_096  #: remembered as present: requests have instructions in common


class _Message(msgspec.Struct):
    parts: tuple[str, ...] = ()


class _Schema(msgspec.Struct):
    sha256: str


class _Request(msgspec.Struct):
    """The hashes in a stored request, which stand for its texts."""

    messages: tuple[_Message, ...] = ()
    schema: _Schema | None = None
    texts: tuple[str, ...] = ()
    query: str | None = None
    documents: tuple[str, ...] = ()

    def hashes(self) -> Iterator[str]:
        for message in self.messages:
            yield from message.parts
        yield from (*self.texts, *self.documents)
        if self.schema is not None:
            yield self.schema.sha256
        if self.query is not None:
            yield self.query


_REQUESTS = msgspec.json.Decoder(_Request)


def _named_parts(event: Event | UnknownEvent, body: bytes) -> Iterator[str]:
    """Yield the hashes of the blobs that an event and its payload name."""
    match event:
        case AttemptStarted() if body:
            yield from _REQUESTS.decode(body).hashes()
        case ScoringRecorded():
            yield from (one.sha256 for one in event.inputs if one.kept)
            if event.definitions:  # else of a version that did not store it
                yield event.digest
        case _:
            pass


#: The projections, as they are compared: by their statements `rows_*`.
TABLES = (
    "task",
    "run_state",
    "pause",
    "counts",
    "minute",
    "lane",
    "reply_tally",
    "latency_hist",
    "limiter",
    "error_class",
    "failure",
    "reason",
    "counter",
    "mark",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFault:
    """A difference between the log and its expected content."""

    what: str  #: "file", "event", "chain", "blob" or "projection"
    where: str  #: such as "event 17" or "table counts, row 3"
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The checked parts, and the first fault of each."""

    events: int
    commits: int
    blobs: int
    unknown: int  #: events of kinds or versions that this siftlog does not know
    projections_compared: bool  #: False if the run continued meanwhile
    faults: tuple[LogFault, ...]

    @property
    def is_sound(self) -> bool:
        """Whether no fault was found."""
        return not self.faults


class _Fault(Exception):
    def __init__(self, what: str, where: str, message: str) -> None:
        super().__init__(message)
        self.fault = LogFault(what=what, where=where, message=message)


def verify(
    conn: sqlite3.Connection, progress: Callable[[str], None] = ignore_progress
) -> VerifyReport:
    """Check the whole log behind a reader; takes as long as reading it all.

    Args:
        conn: a reader.
        progress: called with a line on the progress every few events.
    """
    check = _Check(conn, progress)
    for part in (
        check.file,
        check.events,
        check.blobs,
        check.adopted,
        check.projections,
    ):
        try:
            part()
        except _Fault as raised:
            check.faults.append(raised.fault)
        except (sqlite3.DatabaseError, CorruptLog) as error:
            forked = conn.forked if isinstance(conn, LogReader) else None
            reason = (forked and forked.failure) or error
            check.faults.append(
                # SQLite quotes what it cannot decode, line ends included
                LogFault(
                    what="file", where=part.__name__, message=one_line(str(reason))
                )
            )
    return VerifyReport(
        events=check.seq,
        commits=check.commits,
        blobs=check.blob_count,
        unknown=check.unknown,
        projections_compared=check.compared,
        faults=tuple(check.faults),
    )


class _Check:
    """The parts of a verification and their intermediate results."""

    def __init__(
        self, conn: sqlite3.Connection, progress: Callable[[str], None]
    ) -> None:
        self._conn = conn
        self._progress = progress
        self.faults: list[LogFault] = []
        self.seq = self.commits = self.blob_count = self.unknown = 0
        self.compared = False
        self._missing_part: LogFault | None = None
        self._has_part = lru_cache(KNOWN_PARTS)(self._look_for_part)

    def file(self) -> None:
        """Check SQLite's own structure."""
        (check_result,) = self._conn.execute(SQL["quick_check"]).fetchone()
        if check_result != "ok":
            raise _Fault("file", "log.db", " ".join(check_result.split()))

    def events(self) -> None:
        """Every link of the chain, and that every event can be read."""
        run_id, _epoch, config_sha256, created_us = self._conn.execute(
            SQL["run"]
        ).fetchone()
        head = genesis(run_id, config_sha256, created_us)
        has_parts = config_sha256 != NO_CONFIG  # else it is redacted
        # merged events keep their times, which ascend in their own log
        times: defaultdict[int, int] = defaultdict(int)
        for end_seq, stored, rows in self._links():
            for expected, row in enumerate(rows, self.seq + 1):
                whose = min(row.epoch, 0)
                if row.seq != expected or row.ts_us <= times[whose]:
                    raise _Fault(
                        "event", f"event {expected}", "missing, or out of order"
                    )
                times[whose] = row.ts_us
                self._readable(row, has_parts=has_parts)
            head = link_of_stored(head, rows)
            if head != stored or not rows or rows[-1].seq != end_seq:
                raise _Fault(
                    "chain",
                    f"events {self.seq + 1} to {end_seq}",
                    "changed since they were committed",
                )
            self.seq = end_seq
            self.commits += 1
            self._progress(f"{self.seq:,} events checked")
        (loose,) = self._conn.execute(SQL["unchained"]).fetchone()
        if loose is not None:
            raise _Fault("chain", f"event {loose}", "stands outside of every commit")

    def _links(self) -> Iterator[tuple[int, bytes, list[EventRow]]]:
        """Every link with its events; one query a page, as many links are short."""
        after = 0
        while page := self._conn.execute(SQL["links"], (after, PAGE)).fetchall():
            last_seq_of_page = page[-1][0]
            events = map(
                EventRow._make,
                self._conn.execute(SQL["link_rows"], (after, last_seq_of_page)),
            )
            event = next(events, None)
            for end_seq, stored in page:
                rows = []
                while event is not None and event.seq <= end_seq:
                    rows.append(event)
                    event = next(events, None)
                yield end_seq, stored, rows
            after = last_seq_of_page

    def _readable(self, row: EventRow, *, has_parts: bool) -> None:
        try:
            # a missing one is of an adopted answer, or breaks the chain
            body = b"" if row.body is None else unpack(row.enc, row.body, row.blen)
            event = event_of(row.kind, row.ver, row.facts)
            if isinstance(event, TasksPlanned):
                planned_tasks(body)
            if has_parts:
                self._find_parts(row.seq, _named_parts(event, body))
        except (ValueError, KeyError, TypeError) as error:
            raise _Fault("event", f"event {row.seq}", str(error)) from error
        if not isinstance(event, UnknownEvent):
            return
        known = KINDS.get(row.kind)
        if known is not None and row.ver < known.VERSION:
            lost = f"version {row.ver} of {row.kind} cannot be read any more"
            raise _Fault("event", f"event {row.seq}", lost)
        self.unknown += 1

    def _find_parts(self, seq: int, hashes: Iterator[str]) -> None:
        """Note the first blob that an event names and the log lacks."""
        if self._missing_part is not None:
            return
        for sha256 in hashes:
            if not self._has_part(sha256):
                missing = f"is missing, and event {seq} names it"
                self._missing_part = LogFault(
                    what="blob", where=sha256, message=missing
                )
                return

    def _look_for_part(self, sha256: str) -> bool:
        key = (bytes.fromhex(sha256),)
        return self._conn.execute(SQL["has_part"], key).fetchone() is not None

    def blobs(self) -> None:
        """Every blob against its hash, and that those which events name are there."""
        if self._missing_part is not None:
            self.faults.append(self._missing_part)
        after = 0
        while page := self._conn.execute(SQL["blobs_page"], (after, PAGE)).fetchall():
            for number, sha256, encoding, size, data in page:
                after = number
                try:
                    content = unpack(encoding, data, size)
                except ValueError as error:
                    raise _Fault("blob", sha256.hex(), str(error)) from error
                if hashlib.sha256(content).digest() != sha256:
                    raise _Fault("blob", sha256.hex(), "is not what its hash says")
                if len(content) != size:  # of one that is not compressed
                    lengths = f"has {len(content)} bytes where its row says {size}"
                    raise _Fault("blob", sha256.hex(), lengths)
                self.blob_count += 1

    def adopted(self) -> None:
        """Bodies that a fork adopted against their hashes in the chain."""
        for answer in adopted_bodies(self._conn):
            if not answer.is_genuine:
                raise _Fault(
                    "event",
                    f"event {answer.seq}",
                    "its answer has changed in the parent run since it was adopted",
                )

    def projections(self) -> None:
        """The stored projections against a second fold of all events."""
        if self.faults:
            return  # unreadable events cannot be folded
        with closing(sqlite3.connect("", isolation_level=None)) as fresh:
            # SQLite's own 2 MiB take almost twice as long for a million events
            fresh.execute(SQL["writer_cache"])
            fresh.execute(SQL["begin"])
            for statement in script("schema"):
                fresh.execute(statement)
            applied = applied_seq(self._conn)
            end_seq = last_seq(self._conn)
            # a writer folds its last events later, and a killed one did not
            visible = end_seq if applied is None else min(applied, end_seq)
            try:
                refold(self._conn, fresh, self._folded, visible)
                difference = self._difference(fresh)
                is_compared = applied == visible == applied_seq(self._conn)
                for seq in fold_between(self._conn, fresh, visible, end_seq):
                    self._folded(seq)
            except (IllegalMove, CorruptLog) as error:
                raise _Fault("projection", "fold", str(error)) from error
            if is_compared:  # else the run continued, or an older siftlog wrote it
                self.compared = True
                self.faults += difference

    def _folded(self, seq: int) -> None:
        self._progress(f"{seq:,} of {self.seq:,} events folded again")

    def _tables(self) -> list[tuple[str, str]]:
        """The projections and the statements that read them, in order."""
        tables = [(table, SQL[f"rows_{table}"]) for table in TABLES]
        if is_union(self._conn):
            tables += [(table, UNION[f"rows_{table}"]) for table in DERIVED]
        return tables

    def _difference(self, fresh: sqlite3.Connection) -> list[LogFault]:
        for table, statement in self._tables():
            pairs = zip_longest(self._conn.execute(statement), fresh.execute(statement))
            for number, (stored, folded) in enumerate(pairs, 1):
                if stored != folded:
                    return [
                        LogFault(
                            what="projection",
                            where=f"table {table}, row {number}",
                            message=f"stored {stored}, but the events say {folded}",
                        )
                    ]
        return []


_SCRIPTS = ("schema", "projections", "indexes", "union", "public")
_COMMENT = re.compile(r"--[^\n]*")
_MAKING = re.compile(r"\bCREATE\s.*", re.DOTALL)
_COMPUTED = re.compile(r"\bVIRTUAL\b|\bGENERATED\b|\bAS\s*\(|\bCHECK\b", re.IGNORECASE)
"""Words of a table that has code in it; an older siftlog's tables have none of them."""


def check_schema(path: Path) -> None:
    """Refuse a log whose schema has anything that siftlog does not create.

    Raises:
        CorruptLog: it has such a thing, or cannot be read.
    """
    conn = read_only(path)
    try:
        conn.execute(SQL["trusted_schema"])
        rows = conn.execute(SQL["schema"]).fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    finally:
        conn.close()
    for kind, name, sql in rows:
        if not _is_schema_object(kind, sql):
            raise CorruptLog(
                f"{path.name} holds the {kind} {name!r}, which siftlog does not make: "
                "it is not read any further, for such a thing can run code"
            )


def _is_schema_object(kind: str, sql: str | None) -> bool:
    if sql is None:
        return kind == "index"  # of a PRIMARY KEY or UNIQUE, made by SQLite
    if _plain(sql) in _schema_statements():
        return True
    # columns may be missing in an older siftlog's tables
    return kind == "table" and not _COMPUTED.search(_plain(sql))


@cache
def _schema_statements() -> frozenset[str]:
    """The statements that make the schema of a log, or of a union of logs."""
    statements = (statement for name in _SCRIPTS for statement in script(name))
    matches = (_MAKING.search(_COMMENT.sub("", statement)) for statement in statements)
    return frozenset(_plain(match[0]) for match in matches if match)


def _plain(sql: str) -> str:
    """A statement without comments, its blanks alike."""
    return " ".join(_COMMENT.sub("", sql).split()).rstrip("; ")
