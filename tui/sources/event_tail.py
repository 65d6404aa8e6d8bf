"""Follows the tail of a log: the displayed events, and how they change.

Connects a source with the display. It reads in steps, so that a search can be stopped
at any time and reports its progress; the caller ensures that one read runs at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from store.clock import Clock
from store.document import plural
from store.events import RecordedEvent
from store.query import EventQuery
from store.read.history import SeqRange
from tui.render.format import count
from tui.sources.events import (
    LINES,
    EventSource,
    EventWindow,
    Tip,
    sampling_interval,
    thinned,
)

ENDED: Mapping[str, str] = {
    "run_finished": "the run has finished: no further events",
    "run_cancelled": "the run was cancelled: no further events",
    "run_drained": "the run was drained: no further events until it is resumed",
}
"""Description of a run by the kind of its last phase event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTail:
    """A filter, the matching lines, and whether new ones are followed."""

    query: EventQuery
    expression: str = ""  #: the filter as typed
    window: EventWindow
    tip: Tip
    is_loading: bool = True  #: nothing was read for this filter yet
    is_following: bool = True
    has_left: bool = False  #: following stopped when the cursor left the bottom
    frozen_at: int | None = None  #: the log's last event when it was frozen
    share: int = 1  #: one of this many new events is shown
    reached: int | None = None  #: position of a running search

    @property
    def has_gaps(self) -> bool:
        """Whether lines were omitted that are missed when following has stopped."""
        return self.window.is_sampled and not self.is_following

    @property
    def wants_feed(self) -> bool:
        """Whether new events should be shown now."""
        is_behind = len(self.window.newer(self.tip.seq)) > 0
        return (
            self.is_following
            and self.frozen_at is None
            and not self.is_loading
            and is_behind
        )

    def toggled(self) -> EventTail:
        """Start or stop following; a frozen tail always continues."""
        return replace(
            self,
            is_following=not self.is_following or self.frozen_at is not None,
            has_left=False,
            frozen_at=None,
            share=1,
        )

    def left(self) -> EventTail:
        """Stop following, because the cursor left the bottom."""
        return replace(self, is_following=False, has_left=True, share=1)

    def frozen(self) -> EventTail:
        """Freeze or continue."""
        at = self.tip.seq if self.frozen_at is None else None
        return replace(self, frozen_at=at)

    @property
    def heading(self) -> str:
        """Describe the number of displayed and of all events."""
        total = plural(self.tip.seq, "event")
        if self.query.terms and not self.is_loading:
            total = f"{self._fitting} of {total}"
        share = f"showing 1 of {count(self.share)}" if self.share > 1 else ""
        is_live = self.is_following and self.frozen_at is None and not self._ended
        mode = "following" if is_live else ""
        return " · ".join(filter(None, (share, mode, total)))

    @property
    def _fitting(self) -> str:
        """Describe the number of matches in the searched range."""
        searched = self.window.searched
        is_whole = searched.first <= 1 and searched.last >= self.tip.seq
        line_count = count(len(self.window.lines))
        return line_count if is_whole else f"{line_count} found so far,"

    @property
    def foot(self) -> str:
        """Describe current activity and its key; empty if there is none."""
        if self.reached is not None:
            return f"searching, at event {count(self.reached)} …: esc stops"
        if self.frozen_at is not None:
            missed = self.tip.seq - self.frozen_at
            return f"FROZEN, {plural(missed, 'event')} since: space continues"
        return " · ".join(filter(None, (self._searched, self._follow)))

    @property
    def _follow(self) -> str:
        """Describe whether new events are shown, and how many are not."""
        if self.is_following or self._ended:
            return self._ended
        newer = len(self.window.newer(self.tip.seq))
        news = f"{count(newer)} newer" if newer else ""
        left = "the cursor left the bottom" if self.has_left else ""
        reason = " · ".join(filter(None, (left, news)))
        return f"{reason}: f follows" if reason else ""

    @property
    def _ended(self) -> str:
        if self.tip.is_alive:
            return ""
        return ENDED.get(self.tip.phase, "no process works on the run")

    @property
    def _searched(self) -> str:
        """Describe how far back the filter was searched."""
        older = self.window.older
        if not self.query.terms or self.is_loading or not len(older):
            return ""
        return f"searched back to event {count(older.last + 1)}: N continues"

    @property
    def emptiness(self) -> str:
        """Describe why there is no line and the next step; empty if there is one."""
        if self.window.lines:
            return ""
        if self.is_loading or self.reached is not None:
            return "Looking for events …"
        if not self.query.terms:
            return "Nothing is recorded yet: events appear here as soon as they are."
        keys = "x clears the filter, / changes it"
        if not len(self.window.older):
            return f"No event fits {self.expression}: {keys}."
        since = count(self.window.searched.first)
        return (
            f"No event from {since} on fits {self.expression}: N searches on, {keys}."
        )


PAGE = 500
"""Events read at once: some screens."""
SEARCH = 1_000_000
"""Events searched without a request: some tenths of a second, up to one for text
searches."""
RATE = 50.0
"""New events per second that a user can follow; of more, only a sample is shown."""
LONGEST_S = 10.0
"""After a longer pause, new events are not a rate."""


class EventTailReader:
    """Keeps `tail`, and reads missing events."""

    def __init__(
        self,
        source: EventSource,
        clock: Clock,
        *,
        is_at_bottom: Callable[[], bool],
        say: Callable[[], None],
    ) -> None:
        """Start with an unread tail.

        Args:
            source: the log.
            clock: for the rate of new events.
            is_at_bottom: whether the newest line is under the cursor, and visible.
            say: called when a search has advanced.
        """
        self.tail = EventTail(
            query=EventQuery(),
            window=EventWindow.at(0),
            tip=Tip(seq=0, phase="", is_alive=True),
        )
        self.last_query = EventQuery()  #: the last filter with terms
        self._source = source
        self._clock = clock
        self._is_at_bottom = is_at_bottom
        self._say = say
        self._fed_s = clock.monotonic()

    def filter(self, query: EventQuery, expression: str) -> None:
        """Set another filter; matches are still to be read."""
        if query.terms:
            self.last_query = query
        self.tail = replace(
            self.tail,
            query=query,
            expression=expression,
            is_loading=True,
            share=1,
            reached=None,
        )

    def stop(self) -> None:
        """Stop a search at its current position."""
        self.tail = replace(self.tail, reached=None, is_loading=False)

    def notice(self) -> None:
        """Stop following if the cursor left the bottom."""
        tail = self.tail
        if tail.is_following and not tail.is_loading and not self._is_at_bottom():
            self.tail = tail.left()

    async def poll(self, *, may_feed: bool) -> bool:
        """Check for new events, and show them if followed; return whether they were.

        Args:
            may_feed: no other read is running.
        """
        tip = await self._source.tip()
        if tip != self.tail.tip:
            self.tail = replace(self.tail, tip=tip)
        self.notice()
        return may_feed and self.tail.wants_feed and await self._feed()

    async def _feed(self) -> bool:
        """Read new events; if they are too many, a sample."""
        tail, window = self.tail, self.tail.window
        now_s = self._clock.monotonic()
        since_s = now_s - self._fed_s
        seqs = window.newer(tail.tip.seq)
        events, rest = await self._collect(
            tail.query, seqs, limit=LINES, is_backward=True
        )
        self.notice()
        if self.tail.window is not window or not self.tail.wants_feed:
            return False
        self._fed_s = now_s
        total = len(events) * len(seqs) / (len(seqs) - len(rest))
        share = (
            sampling_interval(total, RATE * since_s) if 0 < since_s < LONGEST_S else 1
        )
        if len(rest) and share == 1:
            # too many events since the last refresh: start with new lines
            window = EventWindow.at(rest.last)
        window = window.with_newer(
            thinned(events, share), tail.tip.seq, is_sampled=share > 1
        )
        self.tail = replace(self.tail, window=window, share=share)
        return True

    async def to_end(self) -> None:
        """Read the last events of the log."""
        tip = await self._source.tip()
        self._fed_s = self._clock.monotonic()
        window = EventWindow.at(tip.seq)
        self.tail = replace(self.tail, tip=tip, window=window, has_left=False)
        await self.read_on(is_backward=True)
        self.tail = replace(self.tail, is_loading=False)

    async def to_beginning(self) -> None:
        """Read the first events."""
        self.tail = replace(self.tail, window=EventWindow.at(0))
        await self.read_on(is_backward=False)
        self.tail = replace(self.tail, is_loading=False)

    async def around(self, seq: int) -> None:
        """Read the events on both sides of one."""
        self.tail = replace(self.tail, window=EventWindow.at(seq))
        await self.read_on(is_backward=True)
        await self.read_on(is_backward=False)
        self.tail = replace(self.tail, is_loading=False)

    async def read_on(self, *, is_backward: bool, most: int | None = SEARCH) -> None:
        """Read more lines at one end; read lines stay if stopped.

        Args:
            is_backward: whether at the older end.
            most: maximum events to search; None: unlimited.
        """
        searched_n = fit = 0
        while fit < PAGE and (most is None or searched_n < most):
            tail, window = self.tail, self.tail.window
            seqs = window.older if is_backward else window.newer(tail.tip.seq)
            if not len(seqs):
                break
            matches = await self._source.find(
                tail.query, seqs, limit=PAGE - fit, is_backward=is_backward
            )
            fit += len(matches.events)
            searched_n += len(seqs) - len(matches.rest)
            if is_backward:
                window = window.with_older(matches.events, matches.rest.last + 1)
            else:
                window = window.with_newer(matches.events, matches.rest.first - 1)
            self.tail = replace(self.tail, window=window)
            self._report(matches.rest, tail.query, is_backward=is_backward)
        self.tail = replace(self.tail, reached=None)

    async def seek(self, seq: int, *, is_backward: bool) -> int | None:
        """Return the next event that matches the last filter; None: none.

        The whole log is searched, as the user requested it; it can be stopped.
        """
        if self.tail.query == self.last_query:
            return await self._next_line(seq, is_backward=is_backward)
        seqs = SeqRange(1, seq - 1)
        if not is_backward:
            seqs = SeqRange(seq + 1, self.tail.tip.seq)
        events, _ = await self._collect(
            self.last_query, seqs, limit=1, is_backward=is_backward
        )
        if not events:
            return None
        searched = self.tail.window.searched
        is_here = searched.first <= events[0].seq <= searched.last
        if not is_here or self.tail.window.is_sampled:
            await self.around(events[0].seq)
        return events[0].seq

    async def _next_line(self, seq: int, *, is_backward: bool) -> int | None:
        """Return the next line if all lines match, reading it if necessary."""
        neighbour = self._neighbour(seq, is_backward=is_backward)
        if neighbour is None:
            await self.read_on(is_backward=is_backward, most=None)
            neighbour = self._neighbour(seq, is_backward=is_backward)
        return neighbour

    def _neighbour(self, seq: int, *, is_backward: bool) -> int | None:
        seqs = [line.recorded.seq for line in self.tail.window.lines]
        if is_backward:
            return max(
                (candidate for candidate in seqs if candidate < seq), default=None
            )
        return min((candidate for candidate in seqs if candidate > seq), default=None)

    async def _collect(
        self, query: EventQuery, seqs: SeqRange, *, limit: int, is_backward: bool
    ) -> tuple[list[RecordedEvent], SeqRange]:
        """Return events of a range, ascending, and the range not searched."""
        events: list[RecordedEvent] = []
        rest = seqs
        while len(rest) and len(events) < limit:
            matches = await self._source.find(
                query, rest, limit=limit - len(events), is_backward=is_backward
            )
            rest = matches.rest
            if is_backward:
                events = [*matches.events, *events]
            else:
                events += matches.events
            self._report(rest, query, is_backward=is_backward)
        self.tail = replace(self.tail, reached=None)
        return events, rest

    def _report(self, rest: SeqRange, query: EventQuery, *, is_backward: bool) -> None:
        """Report the progress of a search; a plain read is none."""
        if len(rest) and query.terms:
            reached = rest.last + 1 if is_backward else rest.first - 1
            self.tail = replace(self.tail, reached=reached)
            self._say()
