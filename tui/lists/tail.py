"""How the tail of a log stands: what it shows, and what is said about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from store.event_query import EventQuery
from tui.drawing.format import count
from tui.lists.ring import Ring
from tui.sources.events import Tip

ENDED: Mapping[str, str] = {
    "run_finished": "the run has finished: nothing more will come",
    "run_cancelled": "the run was cancelled: nothing more will come",
    "run_drained": "the run was drained: nothing comes unless it is resumed",
}
"""What is to be expected of a run whose last word was of that kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """A filter, the lines that fit it, and whether new ones are shown by themselves."""

    query: EventQuery
    expression: str = ""  #: the filter as it was typed
    ring: Ring
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

    def toggled(self) -> Tail:
        """Following or not, by a person's wish; who holds it still wants to go on."""
        return replace(
            self,
            is_following=not self.is_following or self.frozen_at is not None,
            has_left=False,
            frozen_at=None,
            share=1,
        )

    def left(self) -> Tail:
        """The cursor is not at the bottom any more, and what follows would move it."""
        return replace(self, is_following=False, has_left=True, share=1)

    def frozen(self) -> Tail:
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
        looked = self.ring.looked
        is_whole = looked.first <= 1 and looked.last >= self.tip.seq
        shown = count(len(self.ring.lines))
        return shown if is_whole else f"{shown} found so far,"

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
        since = count(self.ring.looked.first)
        return (
            f"No event from {since} on fits {self.expression}: N searches on, {keys}."
        )
