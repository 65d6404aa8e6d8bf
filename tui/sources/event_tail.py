"""Follows the tail of a log: what is shown, and how it moves.

The thin shell between a source and what is shown. It reads step by step, so that a
search may be stopped at any time and says how far it has come; whoever calls it sees to
it that one thing is read at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from store.clock import Clock
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
"""What is to be expected of a run whose last word was of that kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTail:
    """A filter, the lines that fit it, and whether new ones are shown by themselves."""

    query: EventQuery
    expression: str = ""  #: the filter as it was typed
    window: EventWindow
    tip: Tip
    is_loading: bool = True  #: nothing has been read for this filter yet
    is_following: bool = True
    has_left: bool = False  #: it followed until the cursor left the bottom
    frozen_at: int | None = None  #: the log's last event when it was frozen
    share: int = 1  #: one of so many new events is shown
    reached: int | None = None  #: where a search that is under way has come to

    @property
    def has_gaps(self) -> bool:
        """Whether lines were left out that somebody who follows no more may miss."""
        return self.window.is_sampled and not self.is_following

    @property
    def wants_feed(self) -> bool:
        """Whether there are events that should be shown by themselves."""
        is_behind = len(self.window.newer(self.tip.seq)) > 0
        return (
            self.is_following
            and self.frozen_at is None
            and not self.is_loading
            and is_behind
        )

    def toggled(self) -> EventTail:
        """Following or not, by a person's wish; who holds it still wants to go on."""
        return replace(
            self,
            is_following=not self.is_following or self.frozen_at is not None,
            has_left=False,
            frozen_at=None,
            share=1,
        )

    def left(self) -> EventTail:
        """The cursor is not at the bottom any more, and what follows would move it."""
        return replace(self, is_following=False, has_left=True, share=1)

    def frozen(self) -> EventTail:
        """Still, or going on."""
        at = self.tip.seq if self.frozen_at is None else None
        return replace(self, frozen_at=at)

    @property
    def heading(self) -> str:
        """What is shown, of how many events."""
        total = f"{count(self.tip.seq)} events"
        if self.query.terms and not self.is_loading:
            total = f"{self._fitting} of {total}"
        share = f"showing 1 of {count(self.share)}" if self.share > 1 else ""
        is_live = self.is_following and self.frozen_at is None and not self._ended
        mode = "following" if is_live else ""
        return " · ".join(filter(None, (share, mode, total)))

    @property
    def _fitting(self) -> str:
        """How many events the filter lets through, as far as they were looked at."""
        searched = self.window.searched
        is_whole = searched.first <= 1 and searched.last >= self.tip.seq
        line_count = count(len(self.window.lines))
        return line_count if is_whole else f"{line_count} found so far,"

    @property
    def foot(self) -> str:
        """What is going on, and the key for it; empty where nothing is to be said."""
        if self.reached is not None:
            return f"searching, at event {count(self.reached)} …: esc stops"
        if self.frozen_at is not None:
            missed = self.tip.seq - self.frozen_at
            return f"FROZEN, {count(missed)} events since: space continues"
        return " · ".join(filter(None, (self._searched, self._follow)))

    @property
    def _follow(self) -> str:
        """Whether what is new is shown, and if not, how much there is of it."""
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
        """How far back a filter has been looked for."""
        older = self.window.older
        if not self.query.terms or self.is_loading or not len(older):
            return ""
        return f"searched back to event {count(older.last + 1)}: N goes on"

    @property
    def emptiness(self) -> str:
        """Why there is no line and what to do about it; empty if there is one."""
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
"""Events that are looked at without being asked to: some tenths of a second, up to one
for what has to be looked for in texts."""
RATE = 50.0
"""New events a second that anybody can follow; of more, one of so many is shown."""
LONGEST_S = 10.0
"""Longer ago nobody has looked: what has come since is not a rate."""


class EventTailReader:
    """Keeps `tail`, and reads what it lacks."""

    def __init__(
        self,
        source: EventSource,
        clock: Clock,
        *,
        is_at_bottom: Callable[[], bool],
        say: Callable[[], None],
    ) -> None:
        """A tail of which nothing has been read.

        Args:
            source: the log.
            clock: for the rate of what is new.
            is_at_bottom: whether the newest line is under the cursor, and seen.
            say: called when a search has come further.
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
        """Another filter; what fits it is still to be read."""
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
        """A search was given up where it had come to."""
        self.tail = replace(self.tail, reached=None, is_loading=False)

    def notice(self) -> None:
        """Whoever has left the bottom is not followed any more."""
        tail = self.tail
        if tail.is_following and not tail.is_loading and not self._is_at_bottom():
            self.tail = tail.left()

    async def poll(self, *, may_feed: bool) -> bool:
        """See what is new, and take it in if it is followed; say whether it was.

        Args:
            may_feed: nothing else is being read.
        """
        tip = await self._source.tip()
        if tip != self.tail.tip:
            self.tail = replace(self.tail, tip=tip)
        self.notice()
        return may_feed and self.tail.wants_feed and await self._feed()

    async def _feed(self) -> bool:
        """Take in what is new; where nobody could read it, some of it."""
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
            # too much has come while nobody looked: the lines begin anew
            window = EventWindow.at(rest.last)
        window = window.with_newer(
            thinned(events, share), tail.tip.seq, is_sampled=share > 1
        )
        self.tail = replace(self.tail, window=window, share=share)
        return True

    async def to_end(self) -> None:
        """The last events of the log as it is now."""
        tip = await self._source.tip()
        self._fed_s = self._clock.monotonic()
        window = EventWindow.at(tip.seq)
        self.tail = replace(self.tail, tip=tip, window=window, has_left=False)
        await self.read_on(is_backward=True)
        self.tail = replace(self.tail, is_loading=False)

    async def to_beginning(self) -> None:
        """The first events."""
        self.tail = replace(self.tail, window=EventWindow.at(0))
        await self.read_on(is_backward=False)
        self.tail = replace(self.tail, is_loading=False)

    async def around(self, seq: int) -> None:
        """The events on both sides of one."""
        self.tail = replace(self.tail, window=EventWindow.at(seq))
        await self.read_on(is_backward=True)
        await self.read_on(is_backward=False)
        self.tail = replace(self.tail, is_loading=False)

    async def read_on(self, *, is_backward: bool, most: int | None = SEARCH) -> None:
        """More lines at one end; what was read stays, wherever it is stopped.

        Args:
            is_backward: whether at the older end.
            most: events to look at; None: as many as it takes.
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
        """The next event that fits what was sought; None: the log has none there.

        The whole log is searched, since a person has asked for it; it can be stopped.
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
        """Where every line fits: the next one, which may have to be read."""
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
        """Events of a stretch, ascending, and what of it was not looked at."""
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
        """How far a search has come; what reads only some pages is none."""
        if len(rest) and query.terms:
            reached = rest.last + 1 if is_backward else rest.first - 1
            self.tail = replace(self.tail, reached=reached)
            self._say()
