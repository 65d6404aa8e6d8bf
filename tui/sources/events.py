"""Reads events: ranges of the log, its end, and a window of lines.

Pure: knows neither a screen nor a database. Lines come from both ends, are kept up to a
number, and what is too much goes from the other end. The ring knows between which
events everything was looked at, so that whoever reads on leaves nothing out and reads
nothing twice.
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
    """Where the log ends at a moment."""

    seq: int  #: its last event
    phase: str  #: kind of the last event that began or ended work
    is_alive: bool  #: a process of this machine holds the log


class EventSource(Protocol):
    """Where the Events screen reads: a log, or a test's list.

    Whoever cancels a question thereby stops it.
    """

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    async def tip(self) -> Tip:
        """Where the log ends now.

        Raises:
            StoreError: the log is gone, or is another file by now.
        """
        ...

    async def find(
        self, query: EventQuery, seqs: SeqRange, *, limit: int, is_backward: bool
    ) -> EventMatches:
        """The next events of a stretch that a filter lets through."""
        ...

    async def names(self) -> Names:
        """What filters can name."""
        ...

    async def body(self, event: RecordedEvent) -> str:
        """The payload beside an event, as a person reads it; it may hold anything."""
        ...

    def close(self) -> None:
        """Let go of the log."""
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
        """Where the log ends now."""
        # asked before reading: what a dying writer committed last is not missed
        is_alive = self._folder.is_alive()
        seq, phase_ = await self._quick.ask(_end)
        return Tip(seq=seq, phase=phase_, is_alive=is_alive)

    async def find(
        self, query: EventQuery, seqs: SeqRange, *, limit: int, is_backward: bool
    ) -> EventMatches:
        """The next events of a stretch that a filter lets through."""
        return await self._slow.ask(
            find_events, query, seqs, limit=limit, is_backward=is_backward
        )

    async def names(self) -> Names:
        """What filters can name."""
        return await self._quick.ask(names_of)

    async def body(self, event: RecordedEvent) -> str:
        """The payload beside an event, as a person reads it."""
        is_request = isinstance(event.event, AttemptStarted)
        return await self._quick.ask(body_text, event.seq, is_request=is_request)

    def close(self) -> None:
        """Let go of the log."""
        self._quick.close()
        self._slow.close()


def _end(conn: sqlite3.Connection) -> tuple[int, str]:
    return last_seq(conn), phase(conn)


LINES = 2_000
"""Lines that a ring keeps."""
_US_PER_DAY = 86_400 * US_PER_S
_SHARES = (1, 2, 5)
"""One line of so many is shown, or ten, a hundred ... times as many: figures that hold
still while a rate trembles."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event as a line of the tail."""

    recorded: RecordedEvent
    day: str  #: the date in UTC, where the line above is of another; else empty


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWindow:
    """Lines, ascending, and the stretch of the log that they were found in.

    Example::

        ring = Ring.at(812_000)
        ring = ring.with_older(events, 811_000).with_newer(others, 813_000)
    """

    lines: tuple[EventLine, ...]
    searched: SeqRange  #: all that fits in it is a line, unless it is sampled
    is_sampled: bool = False  #: lines were left out, since there were too many
    size: int = LINES

    @classmethod
    def at(cls, seq: int, *, size: int = LINES) -> Self:
        """Between an event and the next one; nothing has been looked at."""
        return cls(lines=(), searched=SeqRange(seq + 1, seq), size=size)

    @property
    def older(self) -> SeqRange:
        """What comes before."""
        return SeqRange(1, self.searched.first - 1)

    def newer(self, last: int) -> SeqRange:
        """What comes after, in a log that ends with event *last*."""
        return SeqRange(self.searched.last + 1, last)

    def with_older(self, events: Sequence[RecordedEvent], first: int) -> Self:
        """With lines before; everything from event *first* on was looked at."""
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
        """With lines after; everything up to event *last* was looked at."""
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
    """A date in UTC.

    >>> day_of(1_767_225_600_000_000)
    '2026-01-01'
    """
    return datetime.fromtimestamp(at_us // US_PER_S, UTC).strftime("%Y-%m-%d")


def _lines(events: Sequence[RecordedEvent]) -> tuple[EventLine, ...]:
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


def sampling_interval(total: float, room: float) -> int:
    """The smallest round number such that one of so many fits into a room.

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
    """One of so many events, the last of them among them."""
    return events[::-1][::share][::-1]
