"""Encodes a range of a log as an immutable file, and names it.

SIFTSEG, format version | SHA-256 of the rest | zstd of MessagePack

A segment names its run, its log and the process that shipped it, and holds the links of
the log's chain, so a reader can check that its events are the committed ones and that
it continues the previous segment.

Pure. The same range may exist twice, in different divisions: small segments and the
larger one that combines them. A reader uses any that continues.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final, NamedTuple

import msgspec
import zstandard

from store.encoding import ZSTD_LEVEL
from store.errors import CorruptLog, ignore_progress
from store.log.integrity import link_of_stored
from store.segments.place import Place
from store.slices import Shard
from store.union.source import CommitRange, LogIdentity

FOLDER = "seg"

_NAME = re.compile(
    rf"{FOLDER}/([0-9a-f]{{32}})/"
    r"([0-9]{12})-([0-9]{12})\.([0-9]+)-([0-9]+)(\.rolled)?\.zst"
)


class LogPosition(NamedTuple):
    """Read position in a log."""

    seq: int = 0  #: the last event
    parts: int = 0  #: the last message part, by its number in the log

    def reaches(self, other: LogPosition) -> bool:
        """Return whether everything up to *other* is at or before this mark."""
        return self.seq >= other.seq and self.parts >= other.parts

    def joined(self, other: LogPosition) -> LogPosition:
        """As far as either."""
        return LogPosition(max(self.seq, other.seq), max(self.parts, other.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRange:
    """The range between two marks of a log: the name of a segment."""

    log: bytes
    start: LogPosition
    end: LogPosition
    is_rolled: bool = False  #: several segments in one

    @property
    def name(self) -> str:
        """Name of the file in a place: first and last event, then the parts."""
        events = f"{self.start.seq + 1:012}-{self.end.seq:012}"
        parts = f"{self.start.parts}-{self.end.parts}"
        rolled = ".rolled" if self.is_rolled else ""
        return f"{FOLDER}/{self.log.hex()}/{events}.{parts}{rolled}.zst"

    @classmethod
    def parse(cls, name: str) -> SegmentRange | None:
        """The span of that *name*; None: it is no segment's."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        first, last, before, parts = map(int, match.groups()[1:5])
        start, end = LogPosition(first - 1, before), LogPosition(last, parts)
        if first == 0 or start == end or not end.reaches(start):
            return None
        return cls(
            log=bytes.fromhex(match[1]), start=start, end=end, is_rolled=bool(match[6])
        )


def contiguous_from(
    spans: Iterable[SegmentRange], mark: LogPosition
) -> list[SegmentRange]:
    """Return one log's *spans* that continue from *mark* without a gap, in order.

    Of several that start at one mark, the longest is used.
    """
    waiting = sorted(
        spans, key=lambda span: (span.start, -span.end.seq, -span.end.parts)
    )
    taken: list[SegmentRange] = []
    has_grown = True
    while has_grown:
        # cuts of two kinds may cross, so that one pass need not reach the end
        has_grown = False
        for span in waiting:
            if mark.reaches(span.start) and not mark.reaches(span.end):
                taken.append(span)
                mark = mark.joined(span.end)
                has_grown = True
    return taken


def contiguous_end(led: Iterable[SegmentRange]) -> LogPosition:
    """Return the end of the contiguous segments from a log's start."""
    return reduce(LogPosition.joined, (span.end for span in led), LogPosition())


_FORMAT = b"SIFTSEG\x01"
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOrigin:
    """The log of a segment's events, and the process that shipped them."""

    log: LogIdentity
    shard: Shard | None  #: slices planned by the log; None: a whole run
    host: str
    pid: int
    siftlog_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A range of a log, and the state before it."""

    origin: SegmentOrigin
    made_us: int  #: microseconds since 1970 UTC
    start: LogPosition
    link_before: bytes  #: of the commit that ends at `start`
    # read from files by name, as all fields are
    stretch: CommitRange

    @property
    def end(self) -> LogPosition:
        """Read position after this segment."""
        rows = self.stretch.rows
        return LogPosition(
            rows[-1].seq if rows else self.start.seq,
            max(self.start.parts, self.stretch.blobs_upto),
        )

    @property
    def link(self) -> bytes:
        """Link of its last commit, on which the next segment builds."""
        links = self.stretch.links
        return links[-1][1] if links else self.link_before

    def link_at(self, seq: int) -> bytes | None:
        """Return the link of the commit that ends with event *seq*; None: none."""
        if seq == self.start.seq:
            return self.link_before
        return dict(self.stretch.links).get(seq)

    def span(self, *, is_rolled: bool = False) -> SegmentRange:
        """Name of its file."""
        return SegmentRange(
            log=self.origin.log.log,
            start=self.start,
            end=self.end,
            is_rolled=is_rolled,
        )


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Segment)


def encode_segment(segment: Segment) -> bytes:
    """The file of a segment."""
    packed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(
        _ENCODER.encode(segment)
    )
    return _FORMAT + hashlib.sha256(packed).digest() + packed


def decode_segment(data: bytes, span: SegmentRange, address: str) -> Segment:
    """Decode the segment stored as *span* in the place at *address*.

    Raises:
        CorruptLog: it is damaged, of another format, or of another span.
    """
    path = f"{address}/{span.name}"
    head = len(_FORMAT)
    if data[:head] != _FORMAT:
        raise _refused(path, "it is cut short or of another format")
    digest, packed = data[head : head + _DIGEST], data[head + _DIGEST :]
    if hashlib.sha256(packed).digest() != digest:
        raise _refused(path, "its bytes are not those that were written")
    try:
        raw = zstandard.ZstdDecompressor().decompress(packed)
        segment = _DECODER.decode(raw)
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise _refused(path, str(error)) from error
    if segment.span(is_rolled=span.is_rolled) != span:
        raise _refused(path, "it holds other events than its name says")
    _check_chain(segment, path)
    return segment


def _refused(path: str, reason: str) -> CorruptLog:
    return CorruptLog(
        f"{path} is no sound segment ({reason}): delete it, and ship the log it is "
        "from once more"
    )


def _check_chain(segment: Segment, path: str) -> None:
    commits = segment.stretch
    rows, at, head = commits.rows, 0, segment.link_before
    if segment.start.seq == 0 and head != segment.origin.log.genesis:
        raise _refused(path, "it does not begin as its run does")
    if [row.seq for row in rows] != list(
        range(segment.start.seq + 1, segment.end.seq + 1)
    ):
        raise _refused(path, "events are missing in it")
    if {row.epoch for row in rows} != set(commits.writers):
        raise _refused(path, "it does not name its writers")
    for last, link in commits.links:
        end = last - segment.start.seq
        head = link_of_stored(head, rows[at:end])
        if head != link:
            raise _refused(path, f"event {last} is not what was committed")
        at = end
    if at != len(rows):
        raise _refused(path, f"event {rows[at].seq} stands outside of every commit")


def commits_after(commits: CommitRange, seq: int) -> CommitRange:
    """Return the part of a range after event *seq*, the end of a commit."""
    first_selected = bisect_right(commits.rows, seq, key=lambda row: row.seq)
    rows = commits.rows[first_selected:]
    epochs = {row.epoch for row in rows}
    return CommitRange(
        rows=rows,
        blobs=commits.blobs,
        links=[link for link in commits.links if link[0] > seq],
        writers={
            epoch: writer
            for epoch, writer in commits.writers.items()
            if epoch in epochs
        },
        blobs_upto=commits.blobs_upto,
    )


def commits_bytes(commits: CommitRange) -> int:
    """Bytes of its facts, bodies and parts, as the log stores them."""
    return sum(len(row.facts) + len(row.body or b"") for row in commits.rows) + sum(
        len(blob.data) for blob in commits.blobs
    )


def joined_commits(ranges: Iterable[CommitRange], most: int) -> Iterator[CommitRange]:
    """Neighbouring stretches in one, as far as they weigh less than *most* bytes."""
    pending: list[CommitRange] = []
    pending_bytes = 0
    for commits in ranges:
        size = commits_bytes(commits)
        if pending and pending_bytes + size > most:
            yield _concatenated(pending)
            pending, pending_bytes = [], 0
        pending.append(commits)
        pending_bytes += size
    if pending:
        yield _concatenated(pending)


def _concatenated(ranges: list[CommitRange]) -> CommitRange:
    return CommitRange(
        rows=[row for commits in ranges for row in commits.rows],
        blobs=[blob for commits in ranges for blob in commits.blobs],
        links=[link for commits in ranges for link in commits.links],
        writers={e: w for commits in ranges for e, w in commits.writers.items()},
        blobs_upto=max(commits.blobs_upto for commits in ranges),
    )


_FOLDER: Final = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteLog:
    """A log that was carried whole, as far as it went."""

    log: str  #: its id, in hex
    run_id: str
    shard: Shard | None  #: its planned slices; None: a whole run
    last_seq: int
    link: str  #: of its last commit, in hex

    @property
    def name(self) -> str:
        """Name of its file: a resumed log ends more than once."""
        return f"{_FOLDER}/{self.log}-{self.last_seq:012}.json"

    def encoded(self) -> bytes:
        """Encode it for storage."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"


def complete_logs(
    place: Place, notify: Callable[[str], None] = ignore_progress
) -> list[CompleteLog]:
    """Return the logs that have ended, each with its end record.

    Args:
        place: the place of the logs.
        notify: called for each unreadable file, which is skipped.

    Raises:
        PlaceAway: the place cannot be read.
    """
    last: dict[str, CompleteLog] = {}
    for name in place.names(_FOLDER):
        data = place.get(name)
        if data is None or not name.endswith(".json"):
            continue
        try:
            done = msgspec.json.decode(data, type=CompleteLog)
        except msgspec.DecodeError as error:
            notify(
                f"{place.address}/{name} does not say which log came to its end "
                f"({error}): delete it, and start that shard once more"
            )
            continue
        last[done.log] = done  # names ascend, and so do ends
    return list(last.values())


ROLLED_BYTES = 16 << 20
"""Uncompressed size limit of a combined segment: it is read as a whole."""
