"""Reads events: ranges of the log, its end, and a window of lines.

The window is pure: it knows neither a screen nor a database. Lines are added at both
ends up to a limit, beyond which they are dropped at the other end. The window knows the
searched range, so that further reads neither skip nor repeat events.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, Self

from store.events import AttemptStarted, RecordedEvent
from store.fold_state import US_PER_S
from store.query import EventQuery
from store.read.history import EventMatches, SeqRange, find_events
from store.runs import RunFolder
from store.tables import last_seq, phase
from tui.sources.connection import LogConnection
from tui.sources.task_texts import body_text
from tui.sources.tasks import Names, names_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """The end of the log at a time."""

    seq: int  #: its last event
    phase: str  #: kind of the last event that started or ended work
    is_alive: bool  #: a process of this machine holds the log


class EventSource(Protocol):
    """Source of events: a log, or a test's list.

    Cancelling a request stops it.
    """

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    async def tip(self) -> Tip:
        """Return the current end of the log.

        Raises:
            StoreError: the log is missing, or was replaced.
        """
        ...

    async def find(
        self, query: EventQuery, seqs: SeqRange, *, limit: int, is_backward: bool
    ) -> EventMatches:
        """Return the next matching events of a range."""
        ...

    async def names(self) -> Names:
        """Return the names for filters."""
        ...

    async def body(self, event: RecordedEvent) -> str:
        """Return the readable payload of an event; it may contain anything."""
        ...

    def close(self) -> None:
        """Close the log."""
        ...


class LogEvents:
    """The events of a run's log."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._quick = LogConnection(folder)
        self._slow = LogConnection(folder)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._folder.run_id

    async def tip(self) -> Tip:
        """Return the current end of the log."""
        # checked before reading, so that the last commit of a dying writer is not
        # missed
        is_alive = self._folder.is_alive()
        seq, phase_ = await self._quick.ask(_end)
        return Tip(seq=seq, phase=phase_, is_alive=is_alive)

    async def find(
        self, query: EventQuery, seqs: SeqRange, *, limit: int, is_backward: bool
    ) -> EventMatches:
        """Return the next matching events of a range."""
        return await self._slow.ask(
            find_events, query, seqs, limit=limit, is_backward=is_backward
        )

    async def names(self) -> Names:
        """Return the names for filters."""
        return await self._quick.ask(names_of)

    async def body(self, event: RecordedEvent) -> str:
        """Return the readable payload of an event."""
        is_request = isinstance(event.event, AttemptStarted)
        return await self._quick.ask(body_text, event.seq, is_request=is_request)

    def close(self) -> None:
        """Close the log."""
        self._quick.close()
        self._slow.close()


def _end(conn: sqlite3.Connection) -> tuple[int, str]:
    return last_seq(conn), phase(conn)


LINES = 2_000
"""Maximum lines of a window."""
_US_PER_DAY = 86_400 * US_PER_S
_SHARES = (1, 2, 5)
"""One line of this many is shown, or of ten, a hundred ... times as many: round figures
that do not change with every small change of the rate."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event as a line of the tail."""

    recorded: RecordedEvent
    day: str  #: the date in UTC, if the line above has another; else empty


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWindow:
    """Lines, ascending, and the searched range of the log.

    Example::

        window = EventWindow.at(812_000)
        window = window.with_older(events, 811_000).with_newer(others, 813_000)
    """

    lines: tuple[EventLine, ...]
    searched: SeqRange  #: all matches in it are lines, unless sampled
    is_sampled: bool = False  #: lines were omitted, because there were too many
    size: int = LINES

    @classmethod
    def at(cls, seq: int, *, size: int = LINES) -> Self:
        """Return an empty window after an event."""
        return cls(lines=(), searched=SeqRange(seq + 1, seq), size=size)

    @property
    def older(self) -> SeqRange:
        """The range before the window."""
        return SeqRange(1, self.searched.first - 1)

    def newer(self, last: int) -> SeqRange:
        """Return the range after the window, in a log that ends with *last*."""
        return SeqRange(self.searched.last + 1, last)

    def with_older(self, events: Sequence[RecordedEvent], first: int) -> Self:
        """Return the window with lines before; searched from event *first* on."""
        lines = _lines(events)
        joined = (*lines, *_following(lines, self.lines))
        searched = SeqRange(first, self.searched.last)
        if len(joined) > self.size:
            joined = joined[: self.size]
            searched = SeqRange(first, joined[-1].recorded.seq)
        return replace(self, lines=joined, searched=searched)

    def with_newer(
        self, events: Sequence[RecordedEvent], last: int, *, is_sampled: bool = False
    ) -> Self:
        """Return the window with lines after; searched up to event *last*."""
        joined = (*self.lines, *_following(self.lines, _lines(events)))
        searched = SeqRange(self.searched.first, last)
        if len(joined) > self.size:
            joined = _dated(joined[-self.size :])
            searched = SeqRange(joined[0].recorded.seq, last)
        return replace(
            self,
            lines=joined,
            searched=searched,
            is_sampled=self.is_sampled or is_sampled,
        )


def day_of(at_us: int) -> str:
    """Format a date in UTC.

    >>> day_of(1_767_225_600_000_000)
    '2026-01-01'
    """
    return datetime.fromtimestamp(at_us // US_PER_S, UTC).strftime("%Y-%m-%d")


def _lines(events: Sequence[RecordedEvent]) -> tuple[EventLine, ...]:
    """Return new lines; the first of each day has the date."""
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
    """Return *lines* after others: the first has a date only if it differs."""
    if not before or not lines:
        return lines
    first = lines[0].recorded
    is_same = before[-1].recorded.ts_us // _US_PER_DAY == first.ts_us // _US_PER_DAY
    return (EventLine(first, "" if is_same else day_of(first.ts_us)), *lines[1:])


def _dated(lines: tuple[EventLine, ...]) -> tuple[EventLine, ...]:
    """Return *lines* without others before: the first has a date."""
    first = lines[0].recorded
    return (EventLine(first, day_of(first.ts_us)), *lines[1:])


def sampling_interval(total: float, room: float) -> int:
    """Return the smallest round n such that one of n events fits.

    >>> [sampling_interval(total, 50) for total in (40, 51, 1_000, 1_001)]
    [1, 2, 20, 50]
    """
    tens = 1
    while True:
        for share in _SHARES:
            if total <= share * tens * room:
                return share * tens
        tens *= 10


def thinned(events: Sequence[RecordedEvent], share: int) -> Sequence[RecordedEvent]:
    """Return every n-th event, including the last."""
    return events[::-1][::share][::-1]
