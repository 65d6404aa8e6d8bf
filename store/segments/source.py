"""A log as its segments hold it, to be merged like one that lies here.

Read is what leads on without a gap. What does not is told and left alone: a segment
that is missing or damaged hides what follows it in its log, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeVar

from store.errors import CorruptLog
from store.segments.place import Place
from store.segments.segment import Origin, Segment, beyond, decode
from store.segments.span import FOLDER, Mark, Span, end_of, leading_on
from store.shard import Shard
from store.status import Heartbeat
from store.union.source import LogIdentity, Stretch
from store.verify import silent

_T = TypeVar("_T")


class SegmentSource:
    """One log in a place, as far as it can be read."""

    def __init__(
        self, place: Place, spans: list[Span], tell: Callable[[str], None] = silent
    ) -> None:
        """The source over the *spans* of one log.

        Args:
            place: where they are kept.
            spans: what there is; of one log, and at least one.
            tell: hears of each segment that cannot be read.

        Raises:
            PlaceAway: the place cannot be read.
            CorruptLog: none of the segments can.
        """
        self._place = place
        self._log = spans[0].log
        self._spans = spans
        self._unread: set[Span] = set()
        self._tell = tell
        self.origin, made_us, self.last_kind = self._latest()
        origin = self.origin
        self.identity: LogIdentity = origin.log
        self.shard: Shard | None = origin.shard  #: what it plans
        self.heartbeat = Heartbeat(at_us=made_us, pid=origin.pid, host=origin.host)

    @property
    def spans(self) -> tuple[Span, ...]:
        """What there was when it was listed last."""
        return tuple(self._spans)

    @property
    def mark(self) -> Mark:
        """How far its segments lead without a gap, but for what cannot be read."""
        read = (span for span in self._spans if span not in self._unread)
        return end_of(leading_on(read, Mark()))

    def stretches(self, after: int, blobs_after: int = 0) -> Iterator[Stretch]:
        """What follows event *after*, and the parts above the mark *blobs_after*.

        Raises:
            PlaceAway: the place cannot be read.
        """
        mark, link = Mark(after, blobs_after), None
        while span := next(iter(leading_on(self._spans, mark)), None):
            segment = self._tried(_segment, span)
            if segment is None:
                self._spans = self._listed()
                continue
            has_link = segment.end.seq >= mark.seq
            if has_link and link is not None and segment.link_at(mark.seq) != link:
                self._tell(
                    f"{span.name} does not follow on from the events before it, as if "
                    "a log had been copied and both were written: it is read up to "
                    f"event {mark.seq}; find out which of the two is the run's"
                )
                return
            yield beyond(segment.stretch, mark.seq)
            link = segment.link if has_link else link
            mark = mark.joined(segment.end)
        ahead = [span.start.seq for span in self._spans if not mark.reaches(span.end)]
        if ahead:
            self._tell(
                f"{self._place.address} lacks what follows event {mark.seq} of log "
                f"{self._log.hex()}, though there is more after event {min(ahead)}: "
                f"it is read up to event {mark.seq}; ship that log once more"
            )

    def has_more(self, after: int, blobs_after: int) -> bool:
        """Whether there is anything to read after these marks of `stretches`."""
        return next(iter(self.stretches(after, blobs_after)), None) is not None

    def held(self) -> AbstractContextManager[None]:
        """Segments hold events alone."""
        return nullcontext()

    def _latest(self) -> _Made:
        """The last segment that can be read."""
        led = leading_on(self._spans, Mark())
        for span in (*reversed(led), *self._spans):
            made = self._tried(_made, span)
            if made is not None:
                return made
        raise CorruptLog(
            f"{self._place.address} holds no sound segment of log {self._log.hex()}: "
            "ship that log once more"
        )

    def _tried(self, read: Callable[[Place, Span], _T], span: Span) -> _T | None:
        """What is read of a segment; None where it is no more, or not sound."""
        if span in self._unread:
            return None
        try:
            return read(self._place, span)
        except FileNotFoundError:
            pass  # rolled up since it was listed
        except CorruptLog as error:
            self._tell(str(error))
        self._unread.add(span)
        return None

    def _listed(self) -> list[Span]:
        """What there is now, but for what could not be read."""
        found = map(Span.named, self._place.names(f"{FOLDER}/{self._log.hex()}"))
        return [span for span in found if span and span not in self._unread]


def _segment(place: Place, span: Span) -> Segment:
    data = place.get(span.name)
    if data is None:
        raise FileNotFoundError(span.name)
    return decode(data, span, place.address)


class _Made(NamedTuple):
    """Who made a segment, and when."""

    origin: Origin
    at_us: int
    last_kind: str | None  #: of the event that it ends with; None: it has parts alone


@lru_cache(maxsize=1024)
def _made(place: Place, span: Span) -> _Made:
    """Of a segment; remembered, since it never changes.

    A monitor looks every few seconds, and mostly at what it has seen before.
    """
    segment = _segment(place, span)
    rows = segment.stretch.rows
    return _Made(segment.origin, segment.made_us, rows[-1].kind if rows else None)


def sources(place: Place, tell: Callable[[str], None] = silent) -> list[SegmentSource]:
    """The logs in a place, by their ids.

    Args:
        place: where segments are kept.
        tell: hears a sentence on whatever cannot be read, and is passed over.

    Raises:
        PlaceAway: the place cannot be read.
    """
    spans = []
    for name in place.names(FOLDER):
        span = Span.named(name)
        if span is None:
            tell(f"{place.address}/{name} is no segment, and is passed over")
        else:
            spans.append(span)
    found = []
    # by name, hence by log
    for _, of_log in groupby(spans, attrgetter("log")):
        try:
            found.append(SegmentSource(place, list(of_log), tell))
        except CorruptLog as error:
            tell(str(error))
    return found
