"""Proves that a log is whole: a hash chain, and a sidecar of its heads.

link = SHA-256(previous link, then for each row: header, kind, facts, stored body)

The header is fixed-width and holds the lengths of what follows it, so that no two
different rows give the same bytes. The first link follows the run's identity. Triggers
stop accidents; the chain shows edits, and its last link can be published.

A write-ahead log that is deleted or damaged leaves a database that is sound and older:
nothing in it shows that it was longer. So after each commit, and before acknowledging
it, the writer records the seq and chain link of the last event in a file next to the
log, `log.heads`. Opening the log compares them.

The record is written after COMMIT, with `synchronous=FULL`: even after a power cut it
never names an event that is not durable. It is not synced while the log is written, so
it may be behind, torn or lost; then the end of the log is unproven, but the log is as
usable as before. Two slots are written in turn, a page of the disk apart, so
that a torn write destroys one of them at most.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from store.database import SQL, LogReader, open_reader, unreadable
from store.errors import CorruptLog, EventsLost, NoSuchRun, NotALog

#: seq, ts_us, epoch, version, task, attempt, prev, encoding, body length, and the
#: lengths of kind, facts and stored body; absent numbers are -1, which no real one is.
_HEADER = struct.Struct("<12q")


class EventRow(NamedTuple):
    """An event as stored in its table, with the name of its kind."""

    seq: int
    ts_us: int
    epoch: int
    kind: str
    ver: int
    task: int | None
    attempt: int | None
    prev: int | None  #: the task's event before this one
    enc: int
    blen: int
    facts: bytes
    body: bytes | None  #: as stored


def genesis(run_id: str, config_sha256: bytes, created_us: int) -> bytes:
    """Return the hash that precedes the first link."""
    identity = f"siftlog\0{run_id}\0{created_us}\0".encode()
    return hashlib.sha256(identity + config_sha256).digest()


def link(previous: bytes, rows: Iterable[EventRow]) -> bytes:
    """Return the chain link of the commit that holds *rows*."""
    parts = [previous]
    # unpacked once: a row is read a dozen times for each link it is in
    for (
        seq,
        ts_us,
        epoch,
        kind,
        ver,
        task,
        attempt,
        prev,
        enc,
        blen,
        facts,
        body,
    ) in rows:
        name = kind.encode()
        stored = body or b""
        parts += (
            _HEADER.pack(
                seq,
                ts_us,
                epoch,
                ver,
                -1 if task is None else task,
                -1 if attempt is None else attempt,
                -1 if prev is None else prev,
                enc,
                blen,
                len(name),
                len(facts),
                len(stored),
            ),
            name,
            facts,
            stored,
        )
    return hashlib.sha256(b"".join(parts)).digest()


def link_of_stored(previous: bytes, stored: Iterable[EventRow]) -> bytes:
    """Return the link that rows read from a log should have.

    Raises:
        CorruptLog: a row is not a valid event.
    """
    try:
        return link(previous, stored)
    except (struct.error, TypeError, AttributeError) as error:
        raise CorruptLog(
            f"the log holds a row that is no event ({error}): see 'siftlog verify', "
            "then restore a copy of the run's folder"
        ) from error


SLOT_BYTES: Final = 4096
"""Distance between slots: no disk tears data that lies in two of its pages."""
LINE_BYTES: Final = 320
"""Size of a record, padded, so a shorter one overwrites a longer one completely."""
_SLOTS: Final = 2
_READ_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHead:
    """The end of a log at one of its commits."""

    log: str  #: start of its chain, in hex: identifies the log
    epoch: int  #: which opening of the log wrote it
    seq: int  #: last event that was acknowledged; 0: none yet
    link: str  #: of the commit that ends with it, in hex
    closed: bool = False  #: the writer closed the log properly, with an empty WAL


_DECODER = msgspec.json.Decoder(LogHead)


def heads_path(log: Path) -> Path:
    """Return the path of the sidecar of the log at *log*."""
    return log.with_suffix(".heads")


class SlotFile(Protocol):
    """The file of a sidecar, as the writer uses it."""

    def write(self, offset: int, data: bytes) -> None:
        """Write at an offset, without waiting for the disk."""
        ...

    def sync(self) -> None:
        """Wait until the disk has it."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


OpenSlots: TypeAlias = Callable[[Path], SlotFile]
"""Opens a sidecar for writing, and creates it if it is missing."""


class _File:
    """A `SlotFile` of the operating system."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)

    def write(self, offset: int, data: bytes) -> None:
        os.pwrite(self._descriptor, data, offset)

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def open_slots(path: Path) -> SlotFile:
    """Open the sidecar at *path* for writing."""
    return _File(path)


class HeadWriter:
    """Records the head of one log after each commit; used by the writer's thread only.

    The commit is durable by then, so a sidecar that cannot be written causes no
    failure: it falls behind, and later events are unproven.
    """

    def __init__(self, file: SlotFile, *, genesis: bytes, epoch: int) -> None:
        self._file: SlotFile | None = file
        self._log = genesis.hex()
        self._epoch = epoch
        self._next_slot = 0

    def begin(self, seq: int, link: bytes) -> None:
        """Start from the end of a log that was just opened for writing.

        Both slots are written: records of an earlier writer about lost events, or about
        another log, are void once the loss was accepted.
        """
        for _ in range(_SLOTS):
            self.note(seq, link)
        self._try(lambda file: file.sync())

    def note(self, seq: int, link: bytes, *, closed: bool = False) -> None:
        """Record the commit that ends with event *seq*."""
        line = _encoded(self._log, self._epoch, seq, link, closed=closed)
        offset = self._next_slot * SLOT_BYTES
        self._next_slot = (self._next_slot + 1) % _SLOTS
        if self._file is not None:
            try:
                self._file.write(offset, line)
            except OSError:
                self.close()

    def end(self, seq: int, link: bytes) -> None:
        """Record that the log was closed properly, and close the file."""
        self.note(seq, link, closed=True)
        self._try(lambda file: file.sync())
        self.close()

    def close(self) -> None:
        """Close the file without a write; harmless when repeated."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _try(self, act: Callable[[SlotFile], None]) -> None:
        if self._file is not None:
            try:
                act(self._file)
            except OSError:
                self.close()


def _encoded(log: str, epoch: int, seq: int, link: bytes, *, closed: bool) -> bytes:
    """Encode a record: JSON, its CRC-32, padding and a newline."""
    # formatted by hand: a fifth of the time of an encoder, and it runs after every
    # commit
    record = b'{"log":"%s","epoch":%d,"seq":%d,"link":"%s","closed":%s}' % (
        log.encode(),
        epoch,
        seq,
        link.hex().encode(),
        b"true" if closed else b"false",
    )
    line = b"%s %08x" % (record, zlib.crc32(record))
    return line.ljust(LINE_BYTES - 1) + b"\n"


def _decoded(line: bytes) -> LogHead | None:
    """Return the record in a slot; None if it is torn or was never written."""
    record, _, check = line.rstrip(b"\0\n ").rpartition(b" ")
    if check != b"%08x" % zlib.crc32(record):
        return None
    try:
        return _DECODER.decode(record)
    except msgspec.DecodeError:
        return None


def read_head(log: Path) -> LogHead | None:
    """Return the latest record of a log's sidecar; None if none can be read.

    It may be written meanwhile: one slot is always complete, but a reader can find both
    torn.
    """
    for _ in range(_READ_ATTEMPTS):
        try:
            data = heads_path(log).read_bytes()
        except OSError:
            return None
        slots = [
            _decoded(data[at : at + LINE_BYTES])
            for at in range(0, _SLOTS * SLOT_BYTES, SLOT_BYTES)
        ]
        heads = [head for head in slots if head is not None]
        if heads:
            return max(heads, key=lambda head: (head.epoch, head.seq, head.closed))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The end of a log."""

    seq: int
    ts_us: int
    link: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """Result of comparing the end of a log with the acknowledged events."""

    log: Path
    events: int  #: in the log
    acknowledged: int | None = None
    """Acknowledged events; None: unproven, because no sidecar can be read."""
    is_last_changed: bool = False  #: the last acknowledged event exists but differs
    is_closed: bool = False  #: it was closed properly
    reason: str = ""  #: what seems to be damaged, or why the end is unproven

    @property
    def missing_events(self) -> int:
        """Number of acknowledged events that are missing."""
        return max(0, (self.acknowledged or 0) - self.events)

    @property
    def lost_events(self) -> int:
        """Minimum number of events that are missing or changed."""
        return self.missing_events or int(self.is_last_changed)

    @property
    def has_loss(self) -> bool:
        """Whether acknowledged events are missing or changed."""
        return self.missing_events > 0 or self.is_last_changed

    def refuse_loss(self) -> None:
        """Raise `EventsLost` if acknowledged events are missing or changed."""
        if self.has_loss:
            run = self.log.parent.name
            next_step = _advice(self.log, is_empty=not self.events)
            raise EventsLost(f"{run}: {self.sentence}: {next_step}")

    @property
    def sentence(self) -> str:
        """Describe what is missing; if nothing is, up to where the log is proven."""
        name = self.log.name
        if self.acknowledged is None:
            return f"whether events are missing at the end of {name} is unproven: " + (
                self.reason
            )
        if self.is_last_changed:
            return (
                f"event {self.acknowledged:,} of {name}, the last one "
                f"acknowledged, has changed ({self.reason})"
            )
        if self.missing_events:
            return (
                f"{name} ends with event {self.events:,}, but {self.acknowledged:,} "
                f"were acknowledged: {self.missing_events:,} are missing "
                f"({self.reason})"
            )
        return f"all {self.acknowledged:,} acknowledged events are in {name}"


def compare_end(log: Path) -> LogEnd:
    """Compare the end of the log at *log* with its sidecar; a few reads at any size.

    Nothing is written, and the result is correct for a log that is being written: its
    sidecar is read first and is never ahead of it.

    Raises:
        EventsLost: a log with acknowledged events cannot be read at all.
        StoreError: it cannot be read, and no acknowledged event is known.
    """
    head = read_head(log)
    try:
        with open_reader(log) as reader:
            try:
                return _end_of(reader, head)
            except (TypeError, ValueError, AttributeError) as error:
                raise unreadable(log, error) from error  # values of wrong types
    except (CorruptLog, NotALog, NoSuchRun) as error:
        if head is None or not head.seq:
            raise
        raise EventsLost(
            f"{log} cannot be read, in which {head.seq:,} events were acknowledged "
            f"({error}; {_damage(log, head)}): {_advice(log, is_empty=True)}"
        ) from error


def check_end(log: Path, *, accept_loss: bool = False) -> LogEnd:
    """Compare the end of a log with its sidecar, before anything is added to it.

    Args:
        log: an existing log.
        accept_loss: continue although acknowledged events are missing.

    Raises:
        EventsLost: they are missing, and that was not accepted.
        StoreError: the log cannot be read.
    """
    end = compare_end(log)
    if not accept_loss:
        end.refuse_loss()
    return end


def check_absent(log: Path) -> None:
    """Refuse to create a log in place of one with acknowledged events.

    Raises:
        EventsLost: such a log is missing or cannot be read.
    """
    head = read_head(log)
    if head is None or not head.seq:
        return
    if log.exists():
        compare_end(log)
    else:
        raise EventsLost(
            f"{log} is missing, with {head.seq:,} acknowledged events: "
            f"restore it, or delete {heads_path(log)} to start over"
        )


def _end_of(reader: LogReader, head: LogHead | None) -> LogEnd:
    """Compare the log behind a reader with its sidecar, read before."""
    log, sidecar = reader.path, heads_path(reader.path)
    tail = reader.execute(SQL["tail"]).fetchone()
    events = 0 if tail is None else int(tail[0])
    if head is None:
        problem = "cannot be read" if sidecar.exists() else "is not there"
        return LogEnd(log=log, events=events, reason=f"{sidecar.name} {problem}")
    run_id, _epoch, config_sha256, created_us = reader.execute(SQL["run"]).fetchone()
    is_same = genesis(run_id, config_sha256, created_us).hex() == head.log
    row = reader.execute(SQL["link_at"], (head.seq,)).fetchone()
    is_present = head.seq == 0 or (row is not None and row[0].hex() == head.link)
    reason = "" if is_present else _damage(log, head)
    if is_present and events < head.seq:
        # not an older copy, which would also lack the commit of the missing events
        reason = f"{log.name} is damaged"
    return LogEnd(
        log=log,
        events=events,
        acknowledged=head.seq,
        is_last_changed=not is_same or (events >= head.seq and not is_present),
        is_closed=head.closed,
        reason=reason
        if is_same
        else f"{sidecar.name} is of another log than {log.name}",
    )


def _damage(log: Path, head: LogHead) -> str:
    """Describe which file seems to be damaged, for messages."""
    wal = log.with_name(f"{log.name}-wal")
    if head.closed:
        return f"{log.name} is damaged, or an older copy"
    if not wal.exists() or not wal.stat().st_size:
        return f"{wal.name} is gone, or {log.name} is an older copy"
    return f"{wal.name} is damaged or cut short"


def _advice(log: Path, *, is_empty: bool) -> str:
    run, sidecar = log.parent.name, heads_path(log).name
    if is_empty:  # no start remains to continue from
        return (
            "restore the files of the log from a copy, or delete "
            f"{log.name} and {sidecar} in {log.parent} to start over"
        )
    return (
        f"see 'siftlog verify {run}', then restore the files of the log from a copy, "
        "or continue without these events and perhaps pay for their answers again: "
        f"siftlog resume {run} --accept-loss"
    )
