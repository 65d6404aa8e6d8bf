"""Where a log of a split run is read from, to be merged or to be shipped.

What travels are the rows as they stand in the log, in whole commits, so that the chain
of the log can be followed wherever they arrive.
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

#: What one stretch holds of a log, but for one large commit or blob.
RANGE_ROWS = 2000
RANGE_BYTES = 4 << 20
#: Bodies travel as they are stored, but a plan is read: its tasks take in memory so
#: many times the bytes of its text.
PLAN_WEIGHT = 8
_PLANNED = NAMES[TasksPlanned]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogIdentity:
    """What tells a log from every other one, and what its chain begins with."""

    log: bytes  #: id of its first writer: 16 bytes of chance
    run_id: str
    config_sha256: bytes
    created_us: int

    @property
    def genesis(self) -> bytes:
        """What the first link of its chain follows."""
        return genesis(self.run_id, self.config_sha256, self.created_us)


class BlobRow(NamedTuple):
    """A message part as its table holds it."""

    sha256: bytes
    enc: int
    size: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRange:
    """Consecutive whole commits of a log; parts come no later than who uses them."""

    rows: Sequence[EventRow] = ()  #: may be none, where parts alone fill a stretch
    blobs: Sequence[BlobRow] = ()
    links: Sequence[tuple[int, bytes]] = ()  #: last event and link of each commit
    writers: Mapping[int, bytes] = field(default_factory=dict)  #: epoch -> writer
    blobs_upto: int = 0  #: up to here its parts have been read; a mark for the source


class UnionSource(Protocol):
    """One log of a run, as far as it can be read."""

    @property
    def identity(self) -> LogIdentity:
        """Which log it is."""
        ...

    @property
    def heartbeat(self) -> Heartbeat | None:
        """Its writer's last sign of life; None: none is known."""
        ...

    def commit_ranges(self, after: int, blobs_after: int = 0) -> Iterator[CommitRange]:
        """What follows event *after*, and the parts above the mark *blobs_after*."""
        ...

    def has_more(self, after: int, blobs_after: int) -> bool:
        """Whether there is anything to read after these marks of `stretches`."""
        ...

    def snapshot(self) -> AbstractContextManager[LocalLogSource | None]:
        """The log as it is at one moment, with projections that are of that moment.

        None: it does not lie here, or its projections are another siftlog's. Its
        writer's WAL cannot be reset for as long.
        """
        ...


class LocalLogSource:
    """A log that lies here; it may be written meanwhile."""

    def __init__(self, reader: LogReader) -> None:
        """A source over an open reader, which the caller closes.

        Raises:
            CorruptLog: nobody has opened the log for writing yet.
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
        # looked at later, so that what the events use is among them
        (most,) = self.reader.execute(UNION["last_blob"]).fetchone()
        return end_seq, most

    def has_more(self, after: int, blobs_after: int) -> bool:
        """Whether there is anything to read after these marks of `stretches`."""
        end_seq, most = self.ends()
        return end_seq > after or most > blobs_after

    def commit_ranges(self, after: int, blobs_after: int = 0) -> Iterator[CommitRange]:
        """What follows event *after*, and the parts above the mark *blobs_after*."""
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
        """The log as it is at one moment, with projections that are of that moment."""
        with read_transaction(self.reader):
            is_current = tables.projections_are_current(
                self.reader, last_seq(self.reader)
            )
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
    """A log that lies here, and is open while it is read: a run may have a thousand."""

    def __init__(self, path: Path) -> None:
        """A source of a log that holds an event, as far as it goes now.

        Raises:
            NotALog: it is still being made.
            CorruptLog: it cannot be read.
        """
        self._path = path
        # all that a look needs at once: most of its time goes into opening logs
        with open_reader(path) as reader:
            if not last_seq(reader):
                raise NotALog(f"{path} holds no event yet: wait for its shard")
            log = LocalLogSource(reader)
            self.identity, self.heartbeat = log.identity, log.heartbeat
            self._end_seq, self._blobs_upto = log.ends()

    def has_more(self, after: int, blobs_after: int) -> bool:
        """Whether there was anything to read after these marks of `stretches`."""
        return self._end_seq > after or self._blobs_upto > blobs_after

    def commit_ranges(self, after: int, blobs_after: int = 0) -> Iterator[CommitRange]:
        """What follows event *after*, and the parts above the mark *blobs_after*."""
        with open_reader(self._path) as reader:
            yield from LocalLogSource(reader).commit_ranges(after, blobs_after)

    @contextmanager
    def snapshot(self) -> Iterator[LocalLogSource | None]:
        """The log as it is at one moment, with projections that are of that moment."""
        with (
            open_reader(self._path) as reader,
            LocalLogSource(reader).snapshot() as log,
        ):
            yield log
