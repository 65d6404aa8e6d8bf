"""Reads a log of a split run, for merging or shipping.

Rows are transferred as stored, in whole commits, so the chain of the log can be checked
at the destination.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from store import tables
from store.database import SQL, UNION, LogReader, open_reader, read_transaction
from store.errors import CorruptLog, NotALog
from store.events import NAMES, TasksPlanned
from store.log.integrity import EventRow, genesis
from store.log.interface import Heartbeat
from store.tables import last_seq

#: Size of one range of a log, unless a single commit or blob is larger.
RANGE_ROWS = 2000
RANGE_BYTES = 4 << 20
#: Bodies travel as they are stored, but a plan is read: its tasks take in memory so
#: many times the bytes of its text.
PLAN_WEIGHT = 8
_PLANNED = NAMES[TasksPlanned]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogIdentity:
    """Identity of a log: id and start of its chain."""

    log: bytes  #: id of its first writer: 16 bytes of chance
    run_id: str
    config_sha256: bytes
    created_us: int

    @property
    def genesis(self) -> bytes:
        """The value before the first link of its chain."""
        return genesis(self.run_id, self.config_sha256, self.created_us)


class BlobRow(NamedTuple):
    """A message part as stored in its table."""

    sha256: bytes
    enc: int
    size: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRange:
    """Consecutive whole commits of a log; parts come no later than their users."""

    rows: Sequence[EventRow] = ()  #: may be empty, if parts alone fill a range
    blobs: Sequence[BlobRow] = ()
    links: Sequence[tuple[int, bytes]] = ()  #: last event and link of each commit
    writers: Mapping[int, bytes] = field(default_factory=dict)  #: epoch -> writer
    blobs_upto: int = 0  #: up to here its parts have been read; a mark for the source


class UnionSource(Protocol):
    """One log of a run, as far as it can be read."""

    @property
    def identity(self) -> LogIdentity:
        """Identity of the log."""
        ...

    @property
    def heartbeat(self) -> Heartbeat | None:
        """The writer's last heartbeat; None: unknown."""
        ...

    def commit_ranges(self, after: int, blobs_after: int = 0) -> Iterator[CommitRange]:
        """Yield rows after event *after*, and parts above the mark *blobs_after*."""
        ...

    def has_more(self, after: int, blobs_after: int) -> bool:
        """Return whether there is anything new after these marks of `commit_ranges`."""
        ...

    def snapshot(self) -> AbstractContextManager[LocalLogSource | None]:
        """Open the log at one moment, with projections of that moment.

        None: it is not local, or its projections are of another siftlog version. The
        writer's WAL cannot be reset meanwhile.
        """
        ...


class LocalLogSource:
    """A local log; it may be written meanwhile."""

    def __init__(self, reader: LogReader) -> None:
        """Create a source over an open reader, which the caller closes.

        Raises:
            CorruptLog: the log was never opened for writing.
        """
        self.reader = reader
        run_id, _epoch, config_sha256, created_us = reader.execute(
            SQL["run"]
        ).fetchone()
        first = reader.execute(UNION["first_writer"]).fetchone()
        if first is None:
            raise CorruptLog(
                f"{reader.path} was created but never written: delete it "
                "and start the shard again"
            )
        self.identity = LogIdentity(
            log=first[0],
            run_id=run_id,
            config_sha256=config_sha256,
            created_us=created_us,
        )

    @property
    def heartbeat(self) -> Heartbeat | None:
        """Its writer's last sign of life."""
        row = self.reader.execute(SQL["heartbeat"]).fetchone()
        if row is None:
            return None
        return Heartbeat(at_us=row[0], pid=row[1], host=row[2])

    def ends(self) -> tuple[int, int]:
        """The last event that there is, and the last part."""
        end_seq, _ = self.reader.execute(UNION["last_link"]).fetchone() or (0, b"")
        # read later, so that it includes everything the events use
        (most,) = self.reader.execute(UNION["last_blob"]).fetchone()
        return end_seq, most

    def has_more(self, after: int, blobs_after: int) -> bool:
        """Return whether there is anything new after these marks of `commit_ranges`."""
        end_seq, most = self.ends()
        return end_seq > after or most > blobs_after

    def commit_ranges(self, after: int, blobs_after: int = 0) -> Iterator[CommitRange]:
        """Yield rows after event *after*, and parts above the mark *blobs_after*."""
        reader = self.reader
        end_seq, most = self.ends()
        writers = dict(reader.execute(UNION["writers"]).fetchall())
        while blobs_after < most:
            blob_rows = reader.execute(
                UNION["blobs_after"], (blobs_after, most, RANGE_BYTES)
            ).fetchall()
            blobs_after = blob_rows[-1][0]
            yield CommitRange(
                blobs=[BlobRow(*row[1:]) for row in blob_rows], blobs_upto=blobs_after
            )
        while after < end_seq:
            links = reader.execute(
                UNION["links_after"], (after, end_seq, RANGE_ROWS)
            ).fetchall()
            rows = self._fitting(after, [seq for seq, _ in links])
            after = rows[-1].seq
            epochs = {row.epoch for row in rows}
            yield CommitRange(
                rows=rows,
                links=[link for link in links if link[0] <= after],
                writers={e: writers[e] for e in sorted(epochs) if e in writers},
                blobs_upto=blobs_after,
            )

    @contextmanager
    def snapshot(self) -> Iterator[LocalLogSource | None]:
        """Open the log at one moment, with projections of that moment."""
        with read_transaction(self.reader):
            is_current = tables.projections_are_current(self.reader)
            yield self if is_current else None

    def _fitting(self, after: int, ends: Sequence[int]) -> list[EventRow]:
        """The rows of the commits that fit a stretch; those of the first always do.

        Args:
            after: the event before them.
            ends: the last event of each of the commits that follow.
        """
        ends = [end for end in ends if end - after <= RANGE_ROWS] or ends[:1]
        rows: list[EventRow] = []
        weight = 0
        with closing(
            self.reader.execute(SQL["link_rows"], (after, ends[-1]))
        ) as cursor:
            for row in map(EventRow._make, cursor):
                weight += _weight(row)
                if weight > RANGE_BYTES and row.seq > ends[0]:
                    last = max(end for end in ends if end < row.seq)
                    return rows[: last - after]
                rows.append(row)
        return rows


def _weight(row: EventRow) -> int:
    """About how many bytes an event takes where it is merged."""
    if row.kind == _PLANNED:
        return row.blen * PLAN_WEIGHT
    return len(row.facts) + len(row.body or b"")


class LocalLogFile:
    """A local log that is opened only while it is read: a run may have a thousand."""

    def __init__(self, path: Path) -> None:
        """Create a source of a log that holds an event, up to its current end.

        Raises:
            NotALog: it is still being created.
            CorruptLog: it cannot be read.
        """
        self._path = path
        # everything needed at once: opening logs takes most of the time
        with open_reader(path) as reader:
            if not last_seq(reader):
                raise NotALog(f"{path} holds no event yet: wait for its shard")
            log = LocalLogSource(reader)
            self.identity, self.heartbeat = log.identity, log.heartbeat
            self._end_seq, self._blobs_upto = log.ends()

    def has_more(self, after: int, blobs_after: int) -> bool:
        """Return whether anything is new after these marks of `commit_ranges`."""
        return self._end_seq > after or self._blobs_upto > blobs_after

    def commit_ranges(self, after: int, blobs_after: int = 0) -> Iterator[CommitRange]:
        """Yield rows after event *after*, and parts above the mark *blobs_after*."""
        with open_reader(self._path) as reader:
            yield from LocalLogSource(reader).commit_ranges(after, blobs_after)

    @contextmanager
    def snapshot(self) -> Iterator[LocalLogSource | None]:
        """Open the log at one moment, with projections of that moment."""
        with (
            open_reader(self._path) as reader,
            LocalLogSource(reader).snapshot() as log,
        ):
            yield log
