"""Moves the tail of a log: to its ends, around an event, on by a page, and with time.

The thin shell between a source and what is shown. It reads step by step, so that a
search may be stopped at any time and says how far it has come; whoever calls it sees to
it that one thing is read at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from store.clock import Clock
from store.event_query import EventQuery
from store.events import Recorded
from store.views import Stretch
from tui.lists.ring import LINES, Ring, one_of, thinned
from tui.lists.tail import Tail
from tui.sources.events import EventSource, Tip

PAGE = 500
"""Events read at once: some screens."""
SEARCH = 1_000_000
"""Events that are looked at without being asked to: some tenths of a second, up to one
for what has to be looked for in texts."""
RATE = 50.0
"""New events a second that anybody can follow; of more, one of so many is shown."""
LONGEST_S = 10.0
"""Longer ago nobody has looked: what has come since is not a rate."""


class TailReader:
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
        self.tail = Tail(
            query=EventQuery(),
            ring=Ring.at(0),
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
        found, rest = await self._collect(
            tail.query, stretch, limit=LINES, is_backward=True
        )
        self.notice()
        if self.tail.ring is not ring or not self.tail.wants_feed:
            return False
        self._fed_s = now_s
        total = len(found) * len(stretch) / (len(stretch) - len(rest))
        share = one_of(total, RATE * since_s) if 0 < since_s < LONGEST_S else 1
        if len(rest) and share == 1:
            # too much has come while nobody looked: the lines begin anew
            ring = Ring.at(rest.last)
        ring = ring.with_newer(
            thinned(found, share), tail.tip.seq, is_sampled=share > 1
        )
        self.tail = replace(self.tail, ring=ring, share=share)
        return True

    async def to_end(self) -> None:
        """The last events of the log as it is now."""
        tip = await self._source.tip()
        self._fed_s = self._clock.monotonic()
        ring = Ring.at(tip.seq)
        self.tail = replace(self.tail, tip=tip, ring=ring, has_left=False)
        await self.read_on(is_backward=True)
        self.tail = replace(self.tail, is_loading=False)

    async def to_beginning(self) -> None:
        """The first events."""
        self.tail = replace(self.tail, ring=Ring.at(0))
        await self.read_on(is_backward=False)
        self.tail = replace(self.tail, is_loading=False)

    async def around(self, seq: int) -> None:
        """The events on both sides of one."""
        self.tail = replace(self.tail, ring=Ring.at(seq))
        await self.read_on(is_backward=True)
        await self.read_on(is_backward=False)
        self.tail = replace(self.tail, is_loading=False)

    async def read_on(self, *, is_backward: bool, most: int | None = SEARCH) -> None:
        """More lines at one end; what was read stays, wherever it is stopped.

        Args:
            is_backward: whether at the older end.
            most: events to look at; None: as many as it takes.
        """
        looked = fit = 0
        while fit < PAGE and (most is None or looked < most):
            tail, ring = self.tail, self.tail.ring
            stretch = ring.older if is_backward else ring.newer(tail.tip.seq)
            if not len(stretch):
                break
            found = await self._source.find(
                tail.query, stretch, limit=PAGE - fit, is_backward=is_backward
            )
            fit += len(found.events)
            looked += len(stretch) - len(found.rest)
            if is_backward:
                ring = ring.with_older(found.events, found.rest.last + 1)
            else:
                ring = ring.with_newer(found.events, found.rest.first - 1)
            self.tail = replace(self.tail, ring=ring)
            self._report(found.rest, tail.query, is_backward=is_backward)
        self.tail = replace(self.tail, reached=None)

    async def seek(self, seq: int, *, is_backward: bool) -> int | None:
        """The next event that fits what was sought; None: the log has none there.

        The whole log is searched, since a person has asked for it; it can be stopped.
        """
        if self.tail.query == self.sought:
            return await self._next_line(seq, is_backward=is_backward)
        stretch = Stretch(1, seq - 1)
        if not is_backward:
            stretch = Stretch(seq + 1, self.tail.tip.seq)
        found, _ = await self._collect(
            self.sought, stretch, limit=1, is_backward=is_backward
        )
        if not found:
            return None
        looked = self.tail.ring.looked
        is_here = looked.first <= found[0].seq <= looked.last
        if not is_here or self.tail.ring.is_sampled:
            await self.around(found[0].seq)
        return found[0].seq

    async def _next_line(self, seq: int, *, is_backward: bool) -> int | None:
        """Where every line fits: the next one, which may have to be read."""
        found = self._neighbour(seq, is_backward=is_backward)
        if found is None:
            await self.read_on(is_backward=is_backward, most=None)
            found = self._neighbour(seq, is_backward=is_backward)
        return found

    def _neighbour(self, seq: int, *, is_backward: bool) -> int | None:
        seqs = [line.recorded.seq for line in self.tail.ring.lines]
        if is_backward:
            return max((each for each in seqs if each < seq), default=None)
        return min((each for each in seqs if each > seq), default=None)

    async def _collect(
        self, query: EventQuery, stretch: Stretch, *, limit: int, is_backward: bool
    ) -> tuple[list[Recorded], Stretch]:
        """Events of a stretch, ascending, and what of it was not looked at."""
        events: list[Recorded] = []
        rest = stretch
        while len(rest) and len(events) < limit:
            found = await self._source.find(
                query, rest, limit=limit - len(events), is_backward=is_backward
            )
            rest = found.rest
            if is_backward:
                events = [*found.events, *events]
            else:
                events += found.events
            self._report(rest, query, is_backward=is_backward)
        self.tail = replace(self.tail, reached=None)
        return events, rest

    def _report(self, rest: Stretch, query: EventQuery, *, is_backward: bool) -> None:
        """How far a search has come; what reads only some pages is none."""
        if len(rest) and query.terms:
            reached = rest.last + 1 if is_backward else rest.first - 1
            self.tail = replace(self.tail, reached=reached)
            self._say()
