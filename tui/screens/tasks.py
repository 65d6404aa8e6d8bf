"""The tasks of a run: any number of them, by filter and order."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Input, Static
from textual.worker import Worker

from store.errors import QueryError, StoreError
from store.printable import printable
from store.query import Query, parse_query
from store.views import Order
from tui.drawing.format import count
from tui.drawing.task_columns import TITLE_ORDERS, task_columns, task_name
from tui.screens.completion import Completion
from tui.screens.task import TaskScreen
from tui.screens.task_list import TaskList
from tui.sources.tasks import Names, TaskLine
from tui.watched import Watched
from tui.widgets.line import Line
from tui.widgets.pages import PAGE
from tui.widgets.panel import TooSmall
from tui.widgets.table import Table
from tui.widgets.task_pane import TaskPane

DEBOUNCE_S = 0.15
STEP = 10_000
"""Numbers of a list's later steps; the first is one page, at once."""
AGE_S = 5.0
"""How often ages are drawn anew while nothing else happens."""
PANE_COLUMNS = 140
"""From this width on a task opens beside the table."""

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class TasksScreen(Screen[None]):
    """The tasks that a filter lets through, as a table."""

    DEFAULT_CSS = """
    TasksScreen { background: $background; }
    TasksScreen #head { text-style: bold; }
    TasksScreen #filter {
        height: 1; border: none; padding: 0 1; background: $panel;
    }
    TasksScreen { layers: base above; }
    TasksScreen #said {
        layer: above; dock: top; offset: 0 2; display: none; height: auto;
        padding: 0 1; background: $panel; color: $state-failed; text-style: bold;
    }
    TasksScreen #tasks { height: 1fr; width: 1fr; }
    TasksScreen #beside { height: 1fr; }
    TasksScreen TaskPane { width: 1fr; display: none; }
    TasksScreen.-detail TaskPane { display: block; }
    TasksScreen #foot { color: $state-queued; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="tasks.filter"),
        Binding("x", "clear", "Clear filter", id="tasks.clear"),
        Binding("s", "sort", "Sort", id="tasks.sort"),
        Binding("r", "relist", "Show new", id="tasks.relist"),
        Binding("y", "copy", "Copy id", id="tasks.copy"),
        Binding("space", "freeze", "Freeze", id="tasks.freeze"),
        Binding("escape,h,left", "back", "Back", id="tasks.back"),
    ]

    def __init__(self, watched: Watched) -> None:
        super().__init__()
        self._first = ""  #: the filter to begin with
        self._source = watched.sources.tasks(watched.folder)
        self._glyphs = watched.glyphs
        self._clock = watched.sources.clock
        self._list = TaskList(query=Query())
        self._names = Names(total=0)
        self._seen = 0
        self._drawn = self._clock.monotonic()
        self._debounce: Timer | None = None
        self._completion = Completion()
        self._is_frozen = False
        self._failing: set[str] = set()  #: what could not be read the last time

    def compose(self) -> ComposeResult:
        """The heading, the filter, the table with a task beside it, the foot."""
        yield Line(self._glyphs, id="head")
        yield Input(
            self._first,
            id="filter",
            placeholder="filter: state:failed stage:judge latency>5s -model:m ...",
            compact=True,
            select_on_focus=False,
            suggester=self._completion,
        )
        yield Static(id="said", markup=False)
        with Horizontal(id="beside"):
            columns = task_columns(self._glyphs, self._clock)
            yield Table(columns, self._glyphs, id="tasks")
            yield TaskPane(self._source, self._glyphs)
        yield TooSmall(self._glyphs)
        yield Line(self._glyphs, id="foot", is_rule=True)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to list."""
        self._table.focus()
        self._begin(Query(), "", Order.NUMBER)
        self._changed(self._first)
        self.look()

    def on_unmount(self) -> None:
        """Let go of the log."""
        self._source.close()

    @property
    def _table(self) -> Table[TaskLine]:
        return self.query_one("#tasks", Table)

    @property
    def _pane(self) -> TaskPane:
        return self.query_one(TaskPane)

    # What is shown

    def look(self) -> None:
        """See whether anything has happened; called by the application's timer."""
        if self._is_frozen:
            return
        if not any(worker.group == "look" for worker in self.workers):
            self._work(self._look, "look")

    async def _look(self) -> None:
        seq = await self._source.last_seq()
        if seq == self._seen:
            self._redraw_ages()
            return
        since, self._seen = self._seen, seq
        self._names = await self._source.names()
        self._completion.names = self._names
        self._table.expire()
        listed = self._list
        since = max(since, listed.seq)
        changed = await self._source.changed(listed.query, since)
        if listed.query is self._list.query:
            self._list = replace(
                self._list.changed(changed, self._table.numbers),
                total=self._names.total,
            )
        self._say()

    def _redraw_ages(self) -> None:
        now = self._clock.monotonic()
        if now - self._drawn >= AGE_S:
            self._drawn = now
            self._table.refresh()

    def _say(self) -> None:
        listed = self._list
        head = f"TASKS {self._source.run_id}"
        self.query_one("#head", Line).say(head, listed.heading)
        self._table.explain(listed.emptiness)
        numbers = self._table.numbers
        row = f"row {count(self._table.cursor + 1)}" if numbers else ""
        right = " · ".join(filter(None, (row, listed.news)))
        frozen = "FROZEN: space goes on" if self._is_frozen else ""
        self.query_one("#foot", Line).say(frozen, right)

    # Lists

    def _filter(self, expression: str) -> None:
        try:
            query = parse_query(expression)
        except QueryError as error:
            self._complain(f"{error}.")
            return
        self._complain("")
        self._begin(query, expression.strip(), self._list.order)

    def _begin(self, query: Query, expression: str, order: Order) -> None:
        """Another list, shown as it grows."""
        self._list = TaskList(
            query=query,
            expression=expression,
            order=order,
            total=self._names.total,
        )
        self._work(partial(self._listing, self._list), "list")

    async def _listing(self, listed: TaskList) -> None:
        after, limit, is_first = None, PAGE, True
        while True:
            step = await self._source.list_tasks(
                listed.query, listed.order, after, limit
            )
            self._list = self._list.stepped(step)
            if is_first:
                self._table.relist(step.numbers)
            else:
                self._table.extend(step.numbers)
            self._say()
            if step.after is None:
                return
            after, limit, is_first = step.after, STEP, False

    async def _relisting(self, listed: TaskList) -> None:
        """The same list as it is now, exchanged at once: its rows stay in place."""
        numbers: array[int] = array("q")
        after = None
        while True:
            step = await self._source.list_tasks(
                listed.query, listed.order, after, STEP
            )
            listed = listed.stepped(step)
            if step.after is None and not numbers:
                self._table.exchange(step.numbers)
                break
            numbers.extend(step.numbers)
            if step.after is None:
                self._table.exchange(numbers)
                break
            after = step.after
        self._list = replace(listed, total=self._names.total)
        self._say()

    def _work(self, work: Work, group: str) -> None:
        safely = partial(self._safely, work, group)
        _: Worker[None] = self.run_worker(
            safely, group=group, exclusive=True, exit_on_error=False
        )

    async def _safely(self, work: Work, group: str) -> None:
        """A log that cannot be read is a sentence, and no end of the monitor."""
        try:
            await work()
        except (StoreError, sqlite3.Error) as error:
            self._failing.add(group)
            self._complain(f"{error}.")
        else:
            if self._failing == {group}:
                self._complain("")
            self._failing.discard(group)

    def _complain(self, sentence: str) -> None:
        """Say what is wrong, under the filter; an empty sentence: nothing is."""
        said = self.query_one("#said", Static)
        said.update(printable(sentence))
        said.display = bool(sentence)

    # What happens

    @on(Table.Wanted)
    def _read(self, message: Table.Wanted) -> None:
        if message.table is self._table:
            message.stop()
            self._work(partial(self._reading, message), "page")

    async def _reading(self, message: Table.Wanted) -> None:
        try:
            rows = await self._source.lines(message.ask.numbers)
        except BaseException:
            self._table.give_up(message.ask)
            raise
        self._table.put(message.ask, rows)

    @on(Table.Moved, "#tasks")
    def _moved(self) -> None:
        self._say()
        if self.has_class("-detail"):
            self._pane.show(self._table.chosen)

    @on(Table.Chosen, "#tasks")
    def _open(self, message: Table.Chosen) -> None:
        self.open_task(message.number)

    def open_task(self, number: int) -> None:
        """Show everything about one task: beside the table, or before it."""
        if self.is_mounted and self.size.width >= PANE_COLUMNS:
            self.add_class("-detail")
            self._pane.show(number)
        else:
            self.app.push_screen(TaskScreen(self._source, self._glyphs, number))

    @on(Table.HeadClicked, "#tasks")
    def _sorted(self, message: Table.HeadClicked) -> None:
        order = TITLE_ORDERS.get(message.title)
        if order is not None:
            self._begin(self._list.query, self._list.expression, order)

    @on(Input.Changed, "#filter")
    def _typed(self, message: Input.Changed) -> None:
        if self._debounce is not None:
            self._debounce.stop()
        expression = message.value
        self._debounce = self.set_timer(DEBOUNCE_S, lambda: self._changed(expression))

    def _changed(self, expression: str) -> None:
        if expression.strip() == self._list.expression:
            self._complain("")
        else:
            self._filter(expression)

    @on(Input.Submitted, "#filter")
    def _entered(self, message: Input.Submitted) -> None:
        self._changed(message.value)
        self._table.focus()

    @property
    def aim(self) -> str:
        """The task beside the table while one is in it, or all that are listed."""
        if self._pane.is_inside(self.focused) and self._table.chosen is not None:
            return f"task:{task_name(self._table.chosen)}"
        return self._list.expression

    def filter_by(self, expression: str) -> None:
        """Show other tasks, as if the filter had been typed."""
        self._first = expression
        if self.is_mounted:
            self.query_one("#filter", Input).value = expression

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one("#filter", Input).focus()

    def action_clear(self) -> None:
        """Show everything again."""
        self.query_one("#filter", Input).value = ""

    def action_sort(self) -> None:
        """The next order."""
        orders = list(Order)
        order = orders[(orders.index(self._list.order) + 1) % len(orders)]
        self._begin(self._list.query, self._list.expression, order)

    def action_relist(self) -> None:
        """Show the list as it is now; the cursor stays on its task."""
        fresh = TaskList(
            query=self._list.query,
            expression=self._list.expression,
            order=self._list.order,
        )
        self._work(partial(self._relisting, fresh), "list")

    def action_freeze(self) -> None:
        """Let nothing change by itself, or go on; the run goes on all the time."""
        self._is_frozen = not self._is_frozen
        self._say()
        self.look()

    def action_copy(self) -> None:
        """Copy the task's name."""
        if self._table.chosen is not None:
            name = task_name(self._table.chosen)
            self.app.copy_to_clipboard(name)
            self.notify(f"{name} copied", timeout=2, markup=False)

    def action_back(self) -> None:
        """Leave the filter, then the task beside, then the screen."""
        if self.focused is not self._table and not self._pane.is_inside(self.focused):
            self._table.focus()
        elif self.has_class("-detail"):
            self.remove_class("-detail")
            self._table.focus()
        else:
            self.app.pop_screen()
