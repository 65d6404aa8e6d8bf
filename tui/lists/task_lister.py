"""Brings a list of tasks into its table: step by step, afresh, and what it lacks."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace

from store.query import Query
from store.views import Order, Step
from tui.lists.matches import next_match
from tui.lists.pages import PAGE
from tui.lists.task_list import TaskList
from tui.sources.task_lines import TaskLine
from tui.sources.tasks import Names, TaskSource
from tui.widgets.table import PagedTable

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
        self.sought = self.list  #: the last list that had a filter
        self._source = source
        self._table = table
        self._say = say
        self._seen = 0

    def begin(self, query: Query, expression: str, order: Order) -> None:
        """Another list; `fill` reads it."""
        self.list = TaskList(
            query=query, expression=expression, order=order, total=self.names.total
        )
        if query.terms:
            self.sought = self.list

    async def fill(self) -> None:
        """Show the list as it grows."""
        listed, after, is_first = self.list, None, True
        while True:
            limit = PAGE if is_first else STEP
            step = await self._step(listed, after, limit)
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
        listed = replace(
            self.list, found=0, is_whole=False, seq=0, new=frozenset(), is_least=False
        )
        numbers, seq = await self._all(listed)
        whole = Step(numbers=numbers, after=None, seq=seq)
        self._table.exchange(numbers)
        self.list = replace(listed.stepped(whole), total=self.names.total)
        self._say()

    async def look(self) -> bool:
        """See whether anything has happened; if so, read what is in view again."""
        seq = await self._source.last_seq()
        if seq == self._seen:
            return False
        since, self._seen = self._seen, seq
        self.names = await self._source.names()
        self._table.expire()
        listed = self.list
        since = max(since, listed.seq)
        changed = await self._source.changed(listed.query, since)
        if listed.query is self.list.query:
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
        by_number = replace(self.sought, order=Order.NUMBER)
        numbers, _ = await self._all(by_number)
        table = self._table
        # a list of a million takes a while to be gone through
        position = await asyncio.to_thread(
            next_match, table.numbers, numbers, table.cursor, step
        )
        if position is not None:
            table.go_to(position)
        return position is not None

    async def _all(self, listed: TaskList) -> tuple[Sequence[int], int]:
        """A list to its end, and the log's last event when it was begun."""
        numbers: array[int] = array("q")
        seq, after = 0, None
        while True:
            step = await self._step(listed, after, STEP)
            seq = seq or step.seq
            if step.after is None and not numbers:
                return step.numbers, seq
            numbers.extend(step.numbers)
            if step.after is None:
                return numbers, seq
            after = step.after

    async def _step(
        self, listed: TaskList, after: tuple[int, int] | None, limit: int
    ) -> Step:
        return await self._source.list_tasks(listed.query, listed.order, after, limit)
