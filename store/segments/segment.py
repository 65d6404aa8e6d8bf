"""A segment: a stretch of one log as a file that never changes.

    SIFTSEG, format version | SHA-256 of the rest | zstd of MessagePack

It says by itself which log of which run it is from and who carried it, and holds the
links of the log's chain, so that whoever reads it sees that its events are those that
were committed, and that it follows on from the segment before it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
import zstandard

from store.chain import link_again
from store.codec import ZSTD_LEVEL
from store.errors import CorruptLog
from store.segments.span import Mark, Span
from store.shard import Shard
from store.union.source import LogIdentity, Stretch

_FORMAT = b"SIFTSEG\x01"
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whose events a segment holds, and who carried them."""

    log: LogIdentity
    shard: Shard | None  #: what the log plans; None: a whole run
    host: str
    pid: int
    siftlog_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of a log, and what stands before it."""

    origin: Origin
    made_us: int  #: microseconds since 1970 UTC
    start: Mark
    link_before: bytes  #: of the commit that ends at `start`
    stretch: Stretch

    @property
    def end(self) -> Mark:
        """How far who has read it has read."""
        rows = self.stretch.rows
        return Mark(
            rows[-1].seq if rows else self.start.seq,
            max(self.start.parts, self.stretch.blobs_upto),
        )

    @property
    def link(self) -> bytes:
        """Of its last commit: what the next segment has before it."""
        links = self.stretch.links
        return links[-1][1] if links else self.link_before

    def link_at(self, seq: int) -> bytes | None:
        """Of the commit that ends with event *seq*; None: none in it does."""
        if seq == self.start.seq:
            return self.link_before
        return dict(self.stretch.links).get(seq)

    def span(self, *, is_rolled: bool = False) -> Span:
        """What it is kept as."""
        return Span(
            log=self.origin.log.log,
            start=self.start,
            end=self.end,
            is_rolled=is_rolled,
        )


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Segment)


def encode(segment: Segment) -> bytes:
    """The file of a segment."""
    packed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(
        _ENCODER.encode(segment)
    )
    return _FORMAT + hashlib.sha256(packed).digest() + packed


def decode(data: bytes, span: Span, address: str) -> Segment:
    """The segment in a file that is kept as *span* in the place at *address*.

    Raises:
        CorruptLog: it is not what was written, not of this format, or not of this span.
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


def _refused(path: str, why: str) -> CorruptLog:
    return CorruptLog(
        f"{path} is no sound segment ({why}): delete it, and ship the log it is from "
        "once more"
    )


def _check_chain(segment: Segment, path: str) -> None:
    stretch = segment.stretch
    rows, at, head = stretch.rows, 0, segment.link_before
    if segment.start.seq == 0 and head != segment.origin.log.genesis:
        raise _refused(path, "it does not begin as its run does")
    if [row.seq for row in rows] != list(
        range(segment.start.seq + 1, segment.end.seq + 1)
    ):
        raise _refused(path, "events are missing in it")
    if {row.epoch for row in rows} != set(stretch.writers):
        raise _refused(path, "it does not name its writers")
    for last, link in stretch.links:
        end = last - segment.start.seq
        head = link_again(head, rows[at:end])
        if head != link:
            raise _refused(path, f"event {last} is not what was committed")
        at = end
    if at != len(rows):
        raise _refused(path, f"event {rows[at].seq} stands outside of every commit")


def beyond(stretch: Stretch, seq: int) -> Stretch:
    """What of a stretch follows event *seq*, the end of a commit."""
    at = bisect_right(stretch.rows, seq, key=lambda row: row.seq)
    rows = stretch.rows[at:]
    epochs = {row.epoch for row in rows}
    return Stretch(
        rows=rows,
        blobs=stretch.blobs,
        links=[link for link in stretch.links if link[0] > seq],
        writers={e: w for e, w in stretch.writers.items() if e in epochs},
        blobs_upto=stretch.blobs_upto,
    )


def weight(stretch: Stretch) -> int:
    """Bytes of its facts, bodies and parts, as the log stores them."""
    return sum(len(row.facts) + len(row.body or b"") for row in stretch.rows) + sum(
        len(blob.data) for blob in stretch.blobs
    )


def joined(stretches: Iterable[Stretch], most: int) -> Iterator[Stretch]:
    """Neighbouring stretches in one, as far as they weigh less than *most* bytes."""
    held: list[Stretch] = []
    held_bytes = 0
    for stretch in stretches:
        size = weight(stretch)
        if held and held_bytes + size > most:
            yield _one(held)
            held, held_bytes = [], 0
        held.append(stretch)
        held_bytes += size
    if held:
        yield _one(held)


def _one(stretches: list[Stretch]) -> Stretch:
    return Stretch(
        rows=[row for stretch in stretches for row in stretch.rows],
        blobs=[blob for stretch in stretches for blob in stretch.blobs],
        links=[link for stretch in stretches for link in stretch.links],
        writers={e: w for stretch in stretches for e, w in stretch.writers.items()},
        blobs_upto=max(stretch.blobs_upto for stretch in stretches),
    )
