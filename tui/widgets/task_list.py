"""Lists tasks in a table: step by step, afresh, and what it lacks."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from store.query import Query
from store.read.tasks import NEW, TaskListStep, TaskOrder
from tui.render.format import count
from tui.sources.tasks import Names, TaskLine, TaskSource
from tui.widgets.scrolling import PAGE
from tui.widgets.table import PagedTable


def next_match(
    numbers: Sequence[int], matches: Sequence[int], at: int, step: int
) -> int | None:
    """The next position of *numbers* that stands in *matches*; None: there is none.

    Args:
        numbers: a list in any order.
        matches: what is looked for, ascending.
        at: where the search begins; that position itself is passed over.
        step: 1: towards the end; -1: towards the beginning.
    """
    end = len(numbers) if step > 0 else -1
    positions = range(at + step, end, step)
    return next((p for p in positions if holds(matches, numbers[p])), None)


def holds(numbers: Sequence[int], number: int) -> bool:
    """Whether an ascending list has a number."""
    position = bisect_left(numbers, number)
    return position < len(numbers) and numbers[position] == number


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """A filter and an order, and what is known of their list so far."""

    query: Query
    expression: str = ""  #: the filter as it was typed
    order: TaskOrder = TaskOrder.NUMBER
    listed_n: int = 0  #: numbers listed so far
    is_whole: bool = False
    seq: int = 0  #: the log's last event when the list was begun
    total: int = 0  #: tasks planned in the run
    new: frozenset[int] = frozenset()  #: tasks that fit by now and are not in it
    is_least: bool = False  #: more changed between two looks than were looked at

    def stepped(self, step: TaskListStep) -> TaskList:
        """After another step of the list."""
        return replace(
            self,
            listed_n=self.listed_n + len(step.numbers),
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
        if self.order is TaskOrder.NUMBER:
            changed = [task for task in changed if not holds(numbers, task)]
        # in any other order it may stand elsewhere by now: a reason to read it again
        return replace(self, new=self.new | frozenset(changed), is_least=is_least)

    @property
    def news(self) -> str:
        """How many new lines there are, and the key that shows them; or nothing."""
        if not self.new or not self.is_whole:
            return ""
        change = "new" if self.order is TaskOrder.NUMBER else "changed"
        least = "≥ " if self.is_least else ""
        return f"{least}{count(len(self.new))} {change}, press r"

    @property
    def heading(self) -> str:
        """How many there are, of how many, in which order."""
        # until the first look at the run its size is not known
        of = f" of {count(self.total)}" if self.total else ""
        if self.order.is_top:
            return f"{self.order.value}{of}"
        match_count = (
            count(self.listed_n) if self.is_whole else f"≥ {count(self.listed_n)}"
        )
        return f"{match_count}{of} · {self.order.value}"

    @property
    def emptiness(self) -> str:
        """Why the table is empty and what to do about it; empty if it is not."""
        if self.listed_n:
            return ""
        if not self.is_whole:
            return "Looking for tasks …"
        if self.expression:
            return f"No task fits {self.expression}: x clears the filter, / changes it."
        if self.order.is_top:
            return "No task has a figure to sort by yet: s chooses another order."
        return "No task is planned yet: they appear here as soon as they are."


STEP = 10_000
"""Numbers of a list's later steps; the first is one page, at once."""


class TaskLister:
    """Reads what a table lists; whoever awaits it may stop it at any time.

    It starts nothing by itself: the screen runs one of its coroutines after another.
    """

    def __init__(
        self, source: TaskSource, table: PagedTable[TaskLine], say: Callable[[], None]
    ) -> None:
        """A list of everything, of which nothing has been read.

        Args:
            source: where the tasks are.
            table: shows them.
            say: called whenever something is to be said of the list.
        """
        self.list = TaskList(query=Query())
        self.names = Names(total=0)
        self.last_filtered = self.list  #: the last list that had a filter
        self._source = source
        self._table = table
        self._say = say
        self._seen = 0

    def begin(self, query: Query, expression: str, order: TaskOrder) -> None:
        """Another list; `fill` reads it."""
        self.list = TaskList(
            query=query, expression=expression, order=order, total=self.names.total
        )
        if query.terms:
            self.last_filtered = self.list

    async def fill(self) -> None:
        """Show the list as it grows."""
        task_list, after, is_first = self.list, None, True
        while True:
            limit = PAGE if is_first else STEP
            step = await self._step(task_list, after, limit)
            self.list = self.list.stepped(step)
            if is_first:
                self._table.relist(step.numbers)
            else:
                self._table.extend(step.numbers)
            self._say()
            if step.after is None:
                return
            after, is_first = step.after, False

    async def refresh(self) -> None:
        """The same list as it is now, exchanged at once: its rows stay in place."""
        task_list = replace(
            self.list,
            listed_n=0,
            is_whole=False,
            seq=0,
            new=frozenset(),
            is_least=False,
        )
        numbers, seq = await self._all(task_list)
        whole = TaskListStep(numbers=numbers, after=None, seq=seq)
        self._table.exchange(numbers)
        self.list = replace(task_list.stepped(whole), total=self.names.total)
        self._say()

    async def poll(self) -> bool:
        """See whether anything has happened; if so, read what is in view again."""
        seq = await self._source.last_seq()
        if seq == self._seen:
            return False
        since, self._seen = self._seen, seq
        self.names = await self._source.names()
        self._table.expire()
        task_list = self.list
        since = max(since, task_list.seq)
        changed = await self._source.changed(task_list.query, since)
        if task_list.query is self.list.query:
            self.list = replace(
                self.list.changed(changed, self._table.numbers),
                total=self.names.total,
            )
        self._say()
        return True

    async def match(self, step: int) -> bool:
        """Go to the next task that the last filter lets through; whether there is one.

        Args:
            step: 1: the next one; -1: the one before.
        """
        by_number = replace(self.last_filtered, order=TaskOrder.NUMBER)
        numbers, _ = await self._all(by_number)
        table = self._table
        # a list of a million takes a while to be gone through
        position = await asyncio.to_thread(
            next_match, table.numbers, numbers, table.cursor, step
        )
        if position is not None:
            table.go_to(position)
        return position is not None

    async def _all(self, task_list: TaskList) -> tuple[Sequence[int], int]:
        """A list to its end, and the log's last event when it was begun."""
        numbers: array[int] = array("q")
        seq, after = 0, None
        while True:
            step = await self._step(task_list, after, STEP)
            seq = seq or step.seq
            if step.after is None and not numbers:
                return step.numbers, seq
            numbers.extend(step.numbers)
            if step.after is None:
                return numbers, seq
            after = step.after

    async def _step(
        self, task_list: TaskList, after: tuple[int, int] | None, limit: int
    ) -> TaskListStep:
        return await self._source.list_tasks(
            task_list.query, task_list.order, after, limit
        )
