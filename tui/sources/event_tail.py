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
from tui.sources.events import LINES, EventSource, EventWindow, Tip, one_of, thinned

ENDED: Mapping[str, str] = {
    "run_finished": "the run has finished: nothing more will come",
    "run_cancelled": "the run was cancelled: nothing more will come",
    "run_drained": "the run was drained: nothing comes unless it is resumed",
}
"""What is to be expected of a run whose last word was of that kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTail:
    """A filter, the lines that fit it, and whether new ones are shown by themselves."""

    query: EventQuery
    expression: str = ""  #: the filter as it was typed
    ring: EventWindow
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
        return self.ring.is_sampled and not self.is_following

    @property
    def wants_feed(self) -> bool:
        """Whether there are events that should be shown by themselves."""
        is_behind = len(self.ring.newer(self.tip.seq)) > 0
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
        is_going = self.is_following and self.frozen_at is None and not self._ended
        mode = "following" if is_going else ""
        return " · ".join(filter(None, (share, mode, total)))

    @property
    def _fitting(self) -> str:
        """How many events the filter lets through, as far as they were looked at."""
        searched = self.ring.searched
        is_whole = searched.first <= 1 and searched.last >= self.tip.seq
        line_count = count(len(self.ring.lines))
        return line_count if is_whole else f"{line_count} found so far,"

    @property
    def foot(self) -> str:
        """What is going on, and the key for it; empty where nothing is to be said."""
        if self.reached is not None:
            return f"searching, at event {count(self.reached)} …: esc stops"
        if self.frozen_at is not None:
            missed = self.tip.seq - self.frozen_at
            return f"FROZEN, {count(missed)} events since: space goes on"
        return " · ".join(filter(None, (self._searched, self._follow)))

    @property
    def _follow(self) -> str:
        """Whether what is new is shown, and if not, how much there is of it."""
        if self.is_following or self._ended:
            return self._ended
        newer = len(self.ring.newer(self.tip.seq))
        news = f"{count(newer)} newer" if newer else ""
        left = "the cursor left the bottom" if self.has_left else ""
        why = " · ".join(filter(None, (left, news)))
        return f"{why}: f follows" if why else ""

    @property
    def _ended(self) -> str:
        if self.tip.is_alive:
            return ""
        return ENDED.get(self.tip.phase, "no process works on the run")

    @property
    def _searched(self) -> str:
        """How far back a filter has been looked for."""
        older = self.ring.older
        if not self.query.terms or self.is_loading or not len(older):
            return ""
        return f"searched back to event {count(older.last + 1)}: N goes on"

    @property
    def emptiness(self) -> str:
        """Why there is no line and what to do about it; empty if there is one."""
        if self.ring.lines:
            return ""
        if self.is_loading or self.reached is not None:
            return "Looking for events …"
        if not self.query.terms:
            return "Nothing is recorded yet: events appear here as soon as they are."
        keys = "x clears the filter, / changes it"
        if not len(self.ring.older):
            return f"No event fits {self.expression}: {keys}."
        since = count(self.ring.searched.first)
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
            ring=EventWindow.at(0),
            tip=Tip(seq=0, phase="", is_alive=True),
        )
        self.sought = EventQuery()  #: the last filter with terms
        self._source = source
        self._clock = clock
        self._is_at_bottom = is_at_bottom
        self._say = say
        self._fed_s = clock.monotonic()

    def filter(self, query: EventQuery, expression: str) -> None:
        """Another filter; what fits it is still to be read."""
        if query.terms:
            self.sought = query
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

    async def look(self, *, may_feed: bool) -> bool:
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
        tail, ring = self.tail, self.tail.ring
        now_s = self._clock.monotonic()
        since_s = now_s - self._fed_s
        stretch = ring.newer(tail.tip.seq)
        events, rest = await self._collect(
            tail.query, stretch, limit=LINES, is_backward=True
        )
        self.notice()
        if self.tail.ring is not ring or not self.tail.wants_feed:
            return False
        self._fed_s = now_s
        total = len(events) * len(stretch) / (len(stretch) - len(rest))
        share = one_of(total, RATE * since_s) if 0 < since_s < LONGEST_S else 1
        if len(rest) and share == 1:
            # too much has come while nobody looked: the lines begin anew
            ring = EventWindow.at(rest.last)
        ring = ring.with_newer(
            thinned(events, share), tail.tip.seq, is_sampled=share > 1
        )
        self.tail = replace(self.tail, ring=ring, share=share)
        return True

    async def to_end(self) -> None:
        """The last events of the log as it is now."""
        tip = await self._source.tip()
        self._fed_s = self._clock.monotonic()
        ring = EventWindow.at(tip.seq)
        self.tail = replace(self.tail, tip=tip, ring=ring, has_left=False)
        await self.read_on(is_backward=True)
        self.tail = replace(self.tail, is_loading=False)

    async def to_beginning(self) -> None:
        """The first events."""
        self.tail = replace(self.tail, ring=EventWindow.at(0))
        await self.read_on(is_backward=False)
        self.tail = replace(self.tail, is_loading=False)

    async def around(self, seq: int) -> None:
        """The events on both sides of one."""
        self.tail = replace(self.tail, ring=EventWindow.at(seq))
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
            tail, ring = self.tail, self.tail.ring
            stretch = ring.older if is_backward else ring.newer(tail.tip.seq)
            if not len(stretch):
                break
            matches = await self._source.find(
                tail.query, stretch, limit=PAGE - fit, is_backward=is_backward
            )
            fit += len(matches.events)
            searched_n += len(stretch) - len(matches.rest)
            if is_backward:
                ring = ring.with_older(matches.events, matches.rest.last + 1)
            else:
                ring = ring.with_newer(matches.events, matches.rest.first - 1)
            self.tail = replace(self.tail, ring=ring)
            self._report(matches.rest, tail.query, is_backward=is_backward)
        self.tail = replace(self.tail, reached=None)

    async def seek(self, seq: int, *, is_backward: bool) -> int | None:
        """The next event that fits what was sought; None: the log has none there.

        The whole log is searched, since a person has asked for it; it can be stopped.
        """
        if self.tail.query == self.sought:
            return await self._next_line(seq, is_backward=is_backward)
        stretch = SeqRange(1, seq - 1)
        if not is_backward:
            stretch = SeqRange(seq + 1, self.tail.tip.seq)
        events, _ = await self._collect(
            self.sought, stretch, limit=1, is_backward=is_backward
        )
        if not events:
            return None
        searched = self.tail.ring.searched
        is_here = searched.first <= events[0].seq <= searched.last
        if not is_here or self.tail.ring.is_sampled:
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
        seqs = [line.recorded.seq for line in self.tail.ring.lines]
        if is_backward:
            return max(
                (candidate for candidate in seqs if candidate < seq), default=None
            )
        return min((candidate for candidate in seqs if candidate > seq), default=None)

    async def _collect(
        self, query: EventQuery, stretch: SeqRange, *, limit: int, is_backward: bool
    ) -> tuple[list[RecordedEvent], SeqRange]:
        """Events of a stretch, ascending, and what of it was not looked at."""
        events: list[RecordedEvent] = []
        rest = stretch
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
