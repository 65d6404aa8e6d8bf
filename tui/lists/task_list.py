"""How far a list of tasks has come, and what is said about it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from store.query import Query
from store.views import NEW, Order, Step
from tui.drawing.format import count
from tui.lists.matches import holds


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """A filter and an order, and what is known of their list so far."""

    query: Query
    expression: str = ""  #: the filter as it was typed
    order: Order = Order.NUMBER
    found: int = 0  #: numbers listed so far
    is_whole: bool = False
    seq: int = 0  #: the log's last event when the list was begun
    total: int = 0  #: tasks planned in the run
    new: frozenset[int] = frozenset()  #: tasks that fit by now and are not in it
    is_least: bool = False  #: more changed between two looks than were looked at

    def stepped(self, step: Step) -> TaskList:
        """After another step of the list."""
        return replace(
            self,
            found=self.found + len(step.numbers),
            is_whole=step.after is None,
            # what happens while it is listed counts as new
            seq=self.seq or step.seq,
        )

    def changed(self, changed: Collection[int], numbers: Sequence[int]) -> TaskList:
        """After tasks have changed that its filter lets through.

        Args:
            changed: since the last time this was asked, at most `NEW` of them.
            numbers: what is listed.
        """
        is_least = self.is_least or len(changed) >= NEW
        if self.order is Order.NUMBER:
            changed = [task for task in changed if not holds(numbers, task)]
        # in any other order it may stand elsewhere by now: a reason to read it again
        return replace(self, new=self.new | frozenset(changed), is_least=is_least)

    @property
    def news(self) -> str:
        """How many new lines there are, and the key that shows them; or nothing."""
        if not self.new or not self.is_whole:
            return ""
        what = "new" if self.order is Order.NUMBER else "changed"
        least = "≥ " if self.is_least else ""
        return f"{least}{count(len(self.new))} {what}, press r"

    @property
    def heading(self) -> str:
        """How many there are, of how many, in which order."""
        # until the first look at the run its size is not known
        of = f" of {count(self.total)}" if self.total else ""
        if self.order.is_top:
            return f"{self.order.value}{of}"
        found = count(self.found) if self.is_whole else f"≥ {count(self.found)}"
        return f"{found}{of} · {self.order.value}"

    @property
    def emptiness(self) -> str:
        """Why the table is empty and what to do about it; empty if it is not."""
        if self.found:
            return ""
        if not self.is_whole:
            return "Looking for tasks …"
        if self.expression:
            return f"No task fits {self.expression}: x clears the filter, / changes it."
        if self.order.is_top:
            return "No task has a figure to sort by yet: s chooses another order."
        return "No task is planned yet: they appear here as soon as they are."
