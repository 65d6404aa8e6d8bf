"""The lines of the log that are at hand: a window of it, that moves and never jumps.

Pure: knows neither a screen nor a database. Lines come from both ends, are kept up to a
number, and what is too much goes from the other end. The ring knows between which
events everything was looked at, so that whoever reads on leaves nothing out and reads
nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from store.events import Recorded
from store.sums import US_PER_S
from store.views import Stretch

LINES = 2_000
"""Lines that a ring keeps."""
_US_PER_DAY = 86_400 * US_PER_S
_SHARES = (1, 2, 5)
"""One line of so many is shown, or ten, a hundred ... times as many: figures that hold
still while a rate trembles."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event as a line of the tail."""

    recorded: Recorded
    day: str  #: the date in UTC, where the line above is of another; else empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """Lines, ascending, and the stretch of the log that they were found in.

    Example::

        ring = Ring.at(812_000)
        ring = ring.with_older(events, 811_000).with_newer(others, 813_000)
    """

    lines: tuple[EventLine, ...]
    looked: Stretch  #: all that fits in it is a line, unless it is sampled
    is_sampled: bool = False  #: lines were left out, since there were too many
    size: int = LINES

    @classmethod
    def at(cls, seq: int, *, size: int = LINES) -> Self:
        """Between an event and the next one; nothing has been looked at."""
        return cls(lines=(), looked=Stretch(seq + 1, seq), size=size)

    @property
    def older(self) -> Stretch:
        """What comes before."""
        return Stretch(1, self.looked.first - 1)

    def newer(self, last: int) -> Stretch:
        """What comes after, in a log that ends with event *last*."""
        return Stretch(self.looked.last + 1, last)

    def with_older(self, events: Sequence[Recorded], first: int) -> Self:
        """With lines before; everything from event *first* on was looked at."""
        lines = _lines(events)
        joined = (*lines, *_following(lines, self.lines))
        looked = Stretch(first, self.looked.last)
        if len(joined) > self.size:
            joined = joined[: self.size]
            looked = Stretch(first, joined[-1].recorded.seq)
        return replace(self, lines=joined, looked=looked)

    def with_newer(
        self, events: Sequence[Recorded], last: int, *, is_sampled: bool = False
    ) -> Self:
        """With lines after; everything up to event *last* was looked at."""
        joined = (*self.lines, *_following(self.lines, _lines(events)))
        looked = Stretch(self.looked.first, last)
        if len(joined) > self.size:
            joined = _dated(joined[-self.size :])
            looked = Stretch(joined[0].recorded.seq, last)
        return replace(
            self,
            lines=joined,
            looked=looked,
            is_sampled=self.is_sampled or is_sampled,
        )


def day_of(at_us: int) -> str:
    """A date in UTC.

    >>> day_of(1_767_225_600_000_000)
    '2026-01-01'
    """
    return datetime.fromtimestamp(at_us // US_PER_S, UTC).strftime("%Y-%m-%d")


def _lines(events: Sequence[Recorded]) -> tuple[EventLine, ...]:
    """Lines of their own; the first of each day says which."""
    lines = []
    day: int | None = None
    for recorded in events:
        its_day = recorded.ts_us // _US_PER_DAY
        name = "" if its_day == day else day_of(recorded.ts_us)
        lines.append(EventLine(recorded, name))
        day = its_day
    return tuple(lines)


def _following(
    before: Sequence[EventLine], lines: tuple[EventLine, ...]
) -> tuple[EventLine, ...]:
    """*lines* behind others: the first says its day only where it is another."""
    if not before or not lines:
        return lines
    first = lines[0].recorded
    is_same = before[-1].recorded.ts_us // _US_PER_DAY == first.ts_us // _US_PER_DAY
    return (EventLine(first, "" if is_same else day_of(first.ts_us)), *lines[1:])


def _dated(lines: tuple[EventLine, ...]) -> tuple[EventLine, ...]:
    """*lines* without others before them: the first says its day."""
    first = lines[0].recorded
    return (EventLine(first, day_of(first.ts_us)), *lines[1:])


def one_of(total: float, room: float) -> int:
    """The smallest round number such that one of so many fits into a room.

    >>> one_of(40, 50), one_of(51, 50), one_of(1_000, 50), one_of(1_001, 50)
    (1, 2, 20, 50)
    """
    tens = 1
    while True:
        for share in _SHARES:
            if total <= share * tens * room:
                return share * tens
        tens *= 10


def thinned(events: Sequence[Recorded], share: int) -> Sequence[Recorded]:
    """One of so many events, the last of them among them."""
    return events[::-1][::share][::-1]
