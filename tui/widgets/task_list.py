"""Lists tasks in a table: stepwise, updated, with messages for an empty list."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from store.query import REJECTED, Query, parse_query
from store.read.tasks import NEW, TaskListStep, TaskOrder
from tui.render.format import count
from tui.sources.tasks import Names, TaskLine, TaskSource
from tui.widgets.scrolling import PAGE
from tui.widgets.table import PagedTable

PROBLEMS = (parse_query("state:failed"), REJECTED)
"""Filters of tasks with a problem, besides wrong answers."""


def next_match(
    numbers: Sequence[int], matches: Sequence[Sequence[int]], at: int, step: int
) -> int | None:
    """Return the next position of *numbers* that is in *matches*; None: none.

    Args:
        numbers: a list in any order.
        matches: lists of the searched numbers, each ascending.
        at: start of the search, exclusive.
        step: 1: forwards; -1: backwards.
    """
    end = len(numbers) if step > 0 else -1
    positions = range(at + step, end, step)
    wanted = [ascending for ascending in matches if len(ascending)]
    return next(
        (p for p in positions if any(holds(m, numbers[p]) for m in wanted)), None
    )


def holds(numbers: Sequence[int], number: int) -> bool:
    """Return whether an ascending list contains a number."""
    position = bisect_left(numbers, number)
    return position < len(numbers) and numbers[position] == number


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """A filter and an order, and what is known of their list so far."""

    query: Query
    expression: str = ""  #: the filter as typed
    order: TaskOrder = TaskOrder.NUMBER
    listed_n: int = 0  #: numbers listed so far
    is_whole: bool = False
    seq: int = 0  #: the log's last event when the list was started
    total: int = 0  #: tasks planned in the run
    new: frozenset[int] = frozenset()  #: matching tasks that are not in the list yet
    is_least: bool = False  #: more tasks changed than were read

    def stepped(self, step: TaskListStep) -> TaskList:
        """Return the list after another step."""
        return replace(
            self,
            listed_n=self.listed_n + len(step.numbers),
            is_whole=step.after is None,
            # what happens while it is listed counts as new
            seq=self.seq or step.seq,
        )

    def changed(self, changed: Collection[int], numbers: Sequence[int]) -> TaskList:
        """Return the list after changes of matching tasks.

        Args:
            changed: changed tasks since the last call, at most `NEW`.
            numbers: the listed tasks.
        """
        is_least = self.is_least or len(changed) >= NEW
        if self.order is TaskOrder.NUMBER:
            changed = [task for task in changed if not holds(numbers, task)]
        # in any other order its position may have changed: read it again
        return replace(self, new=self.new | frozenset(changed), is_least=is_least)

    @property
    def news(self) -> str:
        """Describe the number of new lines, and the key to show them."""
        if not self.new or not self.is_whole:
            return ""
        change = "new" if self.order is TaskOrder.NUMBER else "changed"
        least = "≥ " if self.is_least else ""
        return f"{least}{count(len(self.new))} {change}, press r"

    @property
    def heading(self) -> str:
        """Describe the number of tasks and the order."""
        # the size is unknown before the first read of the run
        of = f" of {count(self.total)}" if self.total else ""
        if self.order.is_top:
            return f"{self.order.value}{of}"
        match_count = (
            count(self.listed_n) if self.is_whole else f"≥ {count(self.listed_n)}"
        )
        return f"{match_count}{of} · {self.order.value}"

    @property
    def emptiness(self) -> str:
        """Describe why the table is empty and the next step; empty if it is not."""
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
"""Numbers per later step of a list; the first step is one page."""


class TaskLister:
    """Reads what a table lists; every step can be cancelled.

    It starts no tasks: the screen runs its coroutines one at a time.
    """

    def __init__(
        self, source: TaskSource, table: PagedTable[TaskLine], say: Callable[[], None]
    ) -> None:
        """Start with an unread list of all tasks.

        Args:
            source: the tasks.
            table: shows them.
            say: called whenever the description of the list changes.
        """
        self.list = TaskList(query=Query())
        self.names = Names(total=0)
        self.last_filtered = self.list  #: the last list that had a filter
        self._source = source
        self._table = table
        self._say = say
        self._seen = 0

    def begin(self, query: Query, expression: str, order: TaskOrder) -> None:
        """Start another list; `fill` reads it."""
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
        """Read the list again and replace it at once: rows stay in place."""
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
        """Check for changes; if there are any, read visible rows again."""
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
        """Go to the next task that matches the last filter; return whether one exists.

        Args:
            step: 1: the next one; -1: the previous one.
        """
        by_number = replace(self.last_filtered, order=TaskOrder.NUMBER)
        numbers, _ = await self._all(by_number)
        return await self._go_to_next(numbers, step=step)

    async def problem(self, step: int) -> bool:
        """Go to the next task that failed, is wrong or had a reply rejected."""
        lists = [(await self._all(TaskList(query=query)))[0] for query in PROBLEMS]
        lists.append(await self._source.wrong())
        return await self._go_to_next(*lists, step=step)

    async def _go_to_next(self, *matches: Sequence[int], step: int) -> bool:
        table = self._table
        # searching a list of a million takes a while
        position = await asyncio.to_thread(
            next_match, table.numbers, matches, table.cursor, step
        )
        if position is not None:
            table.go_to(position)
        return position is not None

    async def _all(self, task_list: TaskList) -> tuple[Sequence[int], int]:
        """Return a complete list, and the log's last event at its start."""
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
