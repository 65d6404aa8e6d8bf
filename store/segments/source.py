"""Reads logs from their segments, to merge, survey or compact them.

Only the contiguous part of a log is read; the rest is reported and skipped: a missing
or damaged segment hides later segments of its log, nothing else.

A survey works on machines without a local log, such as a login node. It reads the
listing, the last segment and the end record of each log.

A live shard combines its own segments from its log. A dead one leaves up to 255 small
segments, and a run with many interrupted shards accumulates thousands, which make file
servers and listings slow. Compacting combines them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

from store.errors import CorruptLog, ignore_progress
from store.log.interface import Heartbeat
from store.segments.place import Place
from store.segments.segment import (
    FOLDER,
    ROLLED_BYTES,
    LogPosition,
    Segment,
    SegmentOrigin,
    SegmentRange,
    commits_after,
    complete_logs,
    contiguous_end,
    contiguous_from,
    decode_segment,
    encode_segment,
    joined_commits,
)
from store.slices import ALL, Shard, Slices, left_by
from store.union.source import CommitRange, LogIdentity

_T = TypeVar("_T")


class SegmentSource:
    """One log in a place, as far as it can be read."""

    def __init__(
        self,
        place: Place,
        spans: list[SegmentRange],
        notify: Callable[[str], None] = ignore_progress,
    ) -> None:
        """Create a source over the *spans* of one log.

        Args:
            place: the place of the segments.
            spans: the segments of one log, at least one.
            notify: called for each unreadable segment.

        Raises:
            PlaceAway: the place cannot be read.
            CorruptLog: no segment can be read.
        """
        self._place = place
        self._log = spans[0].log
        self._spans = spans
        self._unread: set[SegmentRange] = set()
        self._notify = notify
        self.origin, recorded_us, self.last_kind = self._latest()
        origin = self.origin
        self.identity: LogIdentity = origin.log
        self.shard: Shard | None = origin.shard  #: its planned slices
        self.heartbeat = Heartbeat(at_us=recorded_us, pid=origin.pid, host=origin.host)

    @property
    def spans(self) -> tuple[SegmentRange, ...]:
        """Content of the latest listing."""
        return tuple(self._spans)

    @property
    def mark(self) -> LogPosition:
        """End of the contiguous readable segments."""
        read = (span for span in self._spans if span not in self._unread)
        return contiguous_end(contiguous_from(read, LogPosition()))

    def commit_ranges(self, after: int, blobs_after: int = 0) -> Iterator[CommitRange]:
        """Yield rows after event *after*, and parts above the mark *blobs_after*.

        Raises:
            PlaceAway: the place cannot be read.
        """
        mark, link = LogPosition(after, blobs_after), None
        while span := next(iter(contiguous_from(self._spans, mark)), None):
            segment = self._tried(_segment, span)
            if segment is None:
                self._spans = self._list_spans()
                continue
            has_link = segment.end.seq >= mark.seq
            if has_link and link is not None and segment.link_at(mark.seq) != link:
                self._notify(
                    f"{span.name} does not follow on from the events before it, as if "
                    "a log had been copied and both were written: it is read up to "
                    f"event {mark.seq}; find out which of the two is the run's"
                )
                return
            yield commits_after(segment.stretch, mark.seq)
            link = segment.link if has_link else link
            mark = mark.joined(segment.end)
        ahead = [span.start.seq for span in self._spans if not mark.reaches(span.end)]
        if ahead:
            self._notify(
                f"{self._place.address} lacks what follows event {mark.seq} of log "
                f"{self._log.hex()}, though there is more after event {min(ahead)}: "
                f"it is read up to event {mark.seq}; ship that log once more"
            )

    def has_more(self, after: int, blobs_after: int) -> bool:
        """Return whether anything is new after these marks of `commit_ranges`."""
        return next(iter(self.commit_ranges(after, blobs_after)), None) is not None

    def snapshot(self) -> AbstractContextManager[None]:
        """Segments hold events only."""
        return nullcontext()

    def _latest(self) -> _Provenance:
        """The last segment that can be read."""
        led = contiguous_from(self._spans, LogPosition())
        for span in (*reversed(led), *self._spans):
            provenance = self._tried(_provenance, span)
            if provenance is not None:
                return provenance
        raise CorruptLog(
            f"{self._place.address} holds no sound segment of log {self._log.hex()}: "
            "ship that log once more"
        )

    def _tried(
        self, read: Callable[[Place, SegmentRange], _T], span: SegmentRange
    ) -> _T | None:
        """Return the rows of a segment; None if it is gone or damaged."""
        if span in self._unread:
            return None
        try:
            return read(self._place, span)
        except FileNotFoundError:
            pass  # rolled up since it was listed
        except CorruptLog as error:
            self._notify(str(error))
        self._unread.add(span)
        return None

    def _list_spans(self) -> list[SegmentRange]:
        """Return the current segments, except unreadable ones."""
        spans = map(
            SegmentRange.parse, self._place.names(f"{FOLDER}/{self._log.hex()}")
        )
        return [span for span in spans if span and span not in self._unread]


def _segment(place: Place, span: SegmentRange) -> Segment:
    data = place.get(span.name)
    if data is None:
        raise FileNotFoundError(span.name)
    return decode_segment(data, span, place.address)


class _Provenance(NamedTuple):
    """Origin of a segment."""

    origin: SegmentOrigin
    at_us: int
    last_kind: str | None  #: kind of its last event; None: it has parts only


@lru_cache(maxsize=1024)
def _provenance(place: Place, span: SegmentRange) -> _Provenance:
    """Return the origin of a segment; cached, since it never changes.

    A monitor polls every few seconds, mostly for known segments.
    """
    segment = _segment(place, span)
    rows = segment.stretch.rows
    return _Provenance(segment.origin, segment.made_us, rows[-1].kind if rows else None)


def sources(
    place: Place, notify: Callable[[str], None] = ignore_progress
) -> list[SegmentSource]:
    """Return the logs in a place, by their ids.

    Args:
        place: the place of the segments.
        notify: called with a sentence for each unreadable file, which is skipped.

    Raises:
        PlaceAway: the place cannot be read.
    """
    spans = []
    for name in place.names(FOLDER):
        span = SegmentRange.parse(name)
        if span is None:
            notify(f"{place.address}/{name} is no segment, and is passed over")
        else:
            spans.append(span)
    segment_sources = []
    # sorted by name, hence by log
    for _, of_log in groupby(spans, attrgetter("log")):
        try:
            segment_sources.append(SegmentSource(place, list(of_log), notify))
        except CorruptLog as error:
            notify(str(error))
    return segment_sources


_ENDED: Final = "ended"
_STOPPED: Final[Mapping[str | None, str]] = {
    "run_drained": "drained",
    "run_cancelled": "cancelled",
}
"""State by the last event, for a log without a process and with open work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedLog:
    """One log, as far as it was uploaded."""

    log: str  #: its id, in hex
    run_id: str
    slices: Slices  #: its planned slices
    events: int  #: events that are contiguous from its start
    host: str  #: of who carried the last of them
    carried_us: int  #: when; microseconds since 1970 UTC
    state: str  #: state at that event: "ended", "drained", "cancelled" or "open"

    @property
    def has_ended(self) -> bool:
        """Whether it has finished its plan."""
        return self.state == _ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSurvey:
    """The logs in a place."""

    logs: tuple[ShippedLog, ...]  #: by the first of their slices

    @property
    def missing(self) -> Slices:
        """Slices that no log plans yet."""
        return left_by(log.slices for log in self.logs)

    @property
    def unfinished(self) -> Slices:
        """Slices unfinished in every log."""
        return left_by(log.slices for log in self.logs if log.has_ended)


def survey(
    place: Place, notify: Callable[[str], None] = ignore_progress
) -> PlaceSurvey:
    """Survey the content of a place.

    Args:
        place: the place of the segments.
        notify: called with a sentence for each unreadable file, which is skipped.

    Raises:
        PlaceAway: the place cannot be read.
    """
    ends = {done.log: done.last_seq for done in complete_logs(place, notify)}
    logs = [_carried(source, ends) for source in sources(place, notify)]
    return PlaceSurvey(
        logs=tuple(sorted(logs, key=lambda log: (log.slices.ranges, log.log)))
    )


def _carried(source: SegmentSource, ends: dict[str, int]) -> ShippedLog:
    log, events = source.identity.log.hex(), source.mark.seq
    # one that was gone on with since has not
    has_ended = ends.get(log) == events
    return ShippedLog(
        log=log,
        run_id=source.identity.run_id,
        slices=ALL if source.shard is None else Slices.parse(source.shard.slices),
        events=events,
        host=source.heartbeat.host,
        carried_us=source.heartbeat.at_us,
        state=_ENDED if has_ended else _STOPPED.get(source.last_kind, "open"),
    )


FEWEST: Final = 2
"""Minimum number of small segments for compacting: rewriting one saves nothing."""


def compact(place: Place, source: SegmentSource) -> int:
    """Combine many segments into a few; delete the small ones afterwards.

    Safe with concurrent readers and with a process that still uploads the log, because
    any division is valid. Segments after a gap and unreadable ones are left alone.

    Returns:
        The number of small segments removed.

    Raises:
        PlaceAway: the place refused.
        CorruptLog: a large one is damaged, or the log has two continuations; then none
            is removed.
    """
    small = [span for span in source.spans if not span.is_rolled]
    if len(small) < FEWEST:
        return 0
    start, link = LogPosition(), source.identity.genesis
    for span in contiguous_from((s for s in source.spans if s.is_rolled), start):
        start, link = start.joined(span.end), _stored_segment(place, span).link
    for commits in joined_commits(
        source.commit_ranges(start.seq, start.parts), ROLLED_BYTES
    ):
        segment = Segment(
            origin=source.origin,
            made_us=source.heartbeat.at_us,
            start=start,
            link_before=link,
            stretch=commits,
        )
        span, data = segment.span(is_rolled=True), encode_segment(segment)
        # whether it follows on, before others are removed for it
        decode_segment(data, span, place.address)
        place.put_new(span.name, data)
        start, link = segment.end, segment.link
    covered = [span for span in small if start.reaches(span.end)]
    for span in covered:
        place.remove(span.name)
    return len(covered)


def _stored_segment(place: Place, span: SegmentRange) -> Segment:
    data = place.get(span.name)
    return decode_segment(b"" if data is None else data, span, place.address)
