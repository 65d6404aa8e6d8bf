"""Shows the tasks of a run by filter and order, and single tasks."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static

from store.printable import printable
from store.query import Query
from store.read.tasks import TaskOrder
from tui.render.errors import PROBLEMS
from tui.render.format import count
from tui.render.glyphs import Glyphs
from tui.render.layout import TableColumn
from tui.render.tasks import TITLE_ORDERS, task_columns
from tui.run_screens import WatchedRun
from tui.screens.base import PANE_COLUMNS, FilteredScreen, Modal
from tui.sources.tasks import TaskLine, TaskSource
from tui.terminal.export import copied
from tui.widgets.filter_field import TASKS, FilterField
from tui.widgets.keys import KeyLine
from tui.widgets.panel import TextLine, TooSmall
from tui.widgets.table import PagedTable
from tui.widgets.task_list import TaskLister
from tui.widgets.task_pane import Tab, TaskPane


class TaskScreen(Screen[None]):
    """Everything about one task; the caller owns the source."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,h,left", "back", "Back", id="task.back"),
    ]

    def __init__(
        self,
        source: TaskSource,
        glyphs: Glyphs,
        task: int,
        tab: Tab | None = None,
        failure: str | None = None,
    ) -> None:
        """Create the screen; *tab* and *failure* as in `TaskPane.open`."""
        super().__init__()
        self._glyphs = glyphs
        self._pane = TaskPane(source, glyphs)
        self._number, self._tab, self._failure = task, tab, failure

    def compose(self) -> ComposeResult:
        """Yield the task and its keys."""
        yield self._pane
        yield TooSmall(self._glyphs)
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Read the task."""
        self.query_one(PagedTable).focus()
        self._pane.open(self._number, self._tab, self._failure)

    def poll(self) -> None:
        """Read it again after changes; called by the application's timer."""
        self._pane.poll(self._number)

    @property
    def task_filter(self) -> str:
        """A filter for this task."""
        return f"task:{self._number}"

    @property
    def items(self) -> tuple[str, ...]:
        """The item of the task."""
        detail = self._pane.detail
        return () if detail is None else (detail.line.row.key,)

    def action_back(self) -> None:
        """Leave a comparison, go to the attempts, then back."""
        if not self._pane.step_back():
            self.dismiss()


ABOUT = {
    TaskOrder.NUMBER: "all tasks, as they were planned",
    TaskOrder.NEWEST: "all tasks, the last changed at the top",
    TaskOrder.SLOWEST: "only these, picked from all that fit",
    TaskOrder.DEAREST: "only these, picked from all that fit",
    TaskOrder.MOST_TRIED: "only these, picked from all that fit",
}
_WIDTH = max(len(order.value) for order in TaskOrder)


class SortMenu(Modal[TaskOrder | None]):
    """Asks for an order; None: unchanged."""

    DEFAULT_CSS = """
    SortMenu { align: center middle; background: $background 60%; }
    SortMenu OptionList {
        width: 68; max-width: 95%; height: auto; padding: 1 2;
        border: round $accent; background: $background;
        &:focus { border: round $accent; background-tint: $background 0%; }
    }
    SortMenu.-ascii OptionList { border: ascii $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,h,left,s", "dismiss", "Back", id="sort.back"),
        Binding("j", "move(1)", "Down", show=False, id="sort.down"),
        Binding("k", "move(-1)", "Up", show=False, id="sort.up"),
    ]

    def __init__(self, order: TaskOrder, glyphs: Glyphs) -> None:
        super().__init__()
        self.set_class(bool(glyphs.plain), "-ascii")
        self._order = order

    def compose(self) -> ComposeResult:
        """Yield one line for each order."""
        options = OptionList(
            *(f"{order.value:<{_WIDTH}}   {ABOUT[order]}" for order in TaskOrder),
            markup=False,
        )
        options.border_title = "Sort"
        options.border_subtitle = "enter chooses, esc goes back"
        options.highlighted = list(TaskOrder).index(self._order)
        yield options

    def action_move(self, by: int) -> None:
        """Select another line."""
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self.dismiss(list(TaskOrder)[message.option_index])


AGE_S = 5.0
"""Interval of redrawing ages without other changes."""


class TasksScreen(FilteredScreen):
    """A table of the tasks that match a filter."""

    DEFAULT_CSS = """
    TasksScreen #tasks { height: 1fr; width: 1fr; }
    TasksScreen TaskPane { width: 1fr; display: none; }
    TasksScreen.-detail TaskPane { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="tasks.filter"),
        Binding(
            "p",
            "problem(1)",
            "Problem",
            key_display="p/u",
            tooltip="Next task that failed, is wrong or had a reply rejected",
            id="tasks.problem",
        ),
        Binding(
            "u",
            "problem(-1)",
            "Problem before",
            show=False,
            tooltip="Previous task that failed, is wrong or had a reply rejected",
            id="tasks.problem_before",
        ),
        Binding("o", "item_text", "Item's text", id="tasks.text"),
        Binding("n", "match(1)", "Match", key_display="n/N", id="tasks.next"),
        Binding("N", "match(-1)", "Match before", show=False, id="tasks.before"),
        Binding("x", "clear", "Clear", id="tasks.clear"),
        Binding("asterisk", "star", "Star filter", show=False, id="tasks.star"),
        Binding("s", "sort", "Sort", id="tasks.sort"),
        Binding("r", "relist", "Show new", id="tasks.relist"),
        Binding("y", "copy", "Copy number", id="tasks.copy"),
        Binding("space", "freeze", "Freeze", id="tasks.freeze"),
        Binding("tab", "text(1)", "Next text", id="tasks.tab"),
        Binding("shift+tab", "text(-1)", "Text before", show=False, id="tasks.untab"),
        Binding("escape,h,left", "back", "Back", id="tasks.back"),
    ]

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__()
        self._first = ""  #: the initial filter
        self._row_filter = ""  #: the filter of the row that led here
        self._source = watched.sources.tasks(watched.folder)
        self._glyphs = watched.glyphs
        self._clock = watched.sources.clock
        self._memory = watched.sources.filters
        self._models: tuple[str, ...] = ()
        self._has_replicates = self._is_about_problems = False
        self._table: PagedTable[TaskLine] = PagedTable(
            self._columns(), watched.glyphs, id="tasks"
        )
        self._lister = TaskLister(self._source, self._table, self._say)
        self._ages_drawn_s = self._clock.monotonic()
        self._is_frozen = False
        self._problem: int | None = None  #: the task that `p` went to

    def compose(self) -> ComposeResult:
        """Yield the heading, the filter, the table with details, the footer."""
        yield TextLine(self._glyphs, id="head")
        yield FilterField(self._memory, TASKS, id="filter")
        yield Static(id="said", markup=False)
        with Horizontal(id="beside"):
            yield self._table
            yield TaskPane(self._source, self._glyphs)
        yield TooSmall(self._glyphs)
        yield TextLine(self._glyphs, id="foot", is_rule=True)
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Start the list."""
        self.set_focus(self._table)
        self._begin(Query(), "", TaskOrder.NUMBER)
        self._type(self._first)
        self.poll()

    def on_unmount(self) -> None:
        """Close the log."""
        self._source.close()

    def _columns(self) -> tuple[TableColumn[TaskLine], ...]:
        return task_columns(
            self._glyphs,
            self._clock,
            models=self._models,
            has_replicates=self._has_replicates,
            is_about_problems=self._is_about_problems,
        )

    @property
    def _field(self) -> FilterField:
        return self.query_one(FilterField)

    @property
    def _pane(self) -> TaskPane:
        return self.query_one(TaskPane)

    # Display

    def poll(self) -> None:
        """Check for changes; called by the application's timer."""
        if self._is_frozen:
            return
        if not any(worker.group == "look" for worker in self.workers):
            self._work(self._poll, "look")

    async def _poll(self) -> None:
        if await self._lister.poll():
            names = self._lister.names
            self._field.offer(names)
            known = names.models, names.replicates > 1
            if known != (self._models, self._has_replicates):
                self._models, self._has_replicates = known
                self._table.recolumn(self._columns())
        else:
            self._redraw_ages()

    def _redraw_ages(self) -> None:
        now = self._clock.monotonic()
        if now - self._ages_drawn_s >= AGE_S:
            self._ages_drawn_s = now
            self._table.redraw_changes()

    def _say(self) -> None:
        task_list = self._lister.list
        head = f"TASKS {self._source.run_id}"
        head += " · problems" if task_list.expression == PROBLEMS else ""
        self.query_one("#head", TextLine).say(head, task_list.heading)
        self._table.explain(task_list.emptiness)
        self._table.count_on(is_counting=not task_list.is_whole)
        numbers = self._table.numbers
        row = f"row {count(self._table.cursor + 1)}" if numbers else ""
        right = " · ".join(filter(None, (row, task_list.news)))
        self.query_one("#foot", TextLine).say(self._left_of_foot(), right)

    def _left_of_foot(self) -> str:
        """Return that the display is frozen, or the item of the chosen task."""
        if self._is_frozen:
            return "FROZEN: space continues"
        line = self._table.row
        return (
            "" if line is None else " · ".join(filter(None, (line.row.key, line.title)))
        )

    # Lists

    def _begin(self, query: Query, expression: str, order: TaskOrder) -> None:
        """Start another list, which is shown as it grows."""
        is_about_problems = "err:" in expression or "reason:" in expression
        if is_about_problems != self._is_about_problems:
            self._is_about_problems = is_about_problems
            self._table.recolumn(self._columns())
        self._lister.begin(query, expression, order)
        self._work(self._lister.fill, "list")

    # Events

    @on(PagedTable.PageRequested)
    def _read(self, message: PagedTable.PageRequested) -> None:
        if message.table is self._table:
            message.stop()
            self._work(partial(self._reading, message), "page")

    async def _reading(self, message: PagedTable.PageRequested) -> None:
        try:
            rows = await self._source.lines(message.ask.numbers)
        except BaseException:
            self._table.give_up(message.ask)
            raise
        self._table.put(message.ask, rows)

    @on(PagedTable.Moved, "#tasks")
    def _moved(self) -> None:
        self._say()
        if self.has_class("-detail"):
            self._pane.show(self._table.chosen)

    @on(PagedTable.Chosen, "#tasks")
    def _open(self, message: PagedTable.Chosen) -> None:
        self.open_task(message.number)

    def open_task(self, number: int, tab: Tab | None = None) -> None:
        """Show one task: beside the table, or in front of it.

        Args:
            number: the task.
            tab: the text to show; None: the reply if it has a problem, or the prompt.
        """
        failure = self._lister.list.query.failure
        if failure is None and number == self._problem:
            failure = ""
        if self.is_mounted and self.size.width >= PANE_COLUMNS:
            self.add_class("-detail")
            self.refresh_bindings()
            self._pane.open(number, tab, failure)
        else:
            self.app.push_screen(
                TaskScreen(self._source, self._glyphs, number, tab, failure)
            )

    @on(PagedTable.HeadClicked, "#tasks")
    def _sorted(self, message: PagedTable.HeadClicked) -> None:
        self._sort(TITLE_ORDERS.get(message.title))

    @on(FilterField.Read)
    def _filtered(self, message: FilterField.Read) -> None:
        self._begin(message.query, message.expression, self._lister.list.order)

    @on(Input.Submitted, "#filter")
    def _entered(self) -> None:
        self.set_focus(self._table)

    @property
    def task_filter(self) -> str:
        """The task in the focused pane, or all listed tasks."""
        if self._pane.is_inside(self.focused) and self._table.chosen is not None:
            return f"task:{self._table.chosen}"
        return self._lister.list.expression

    @property
    def items(self) -> tuple[str, ...]:
        """The item of the chosen task."""
        line = self._table.row
        return () if line is None else (line.row.key,)

    def filter_by(self, expression: str) -> None:
        """Filter tasks as if the expression had been typed; going back clears it."""
        self._first = self._row_filter = expression
        if self.is_mounted:
            self._type(expression)

    def _type(self, expression: str) -> None:
        self._field.value = expression
        self._field.read()

    def action_filter(self) -> None:
        """Focus the filter."""
        self.set_focus(self._field)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the filter's key in its field, where it is a character.

        The texts' keys go to the pane, if one is open.
        """
        del parameters
        if action == "text":
            return self.has_class("-detail")
        return action != "filter" or self.focused is not self._field

    def action_text(self, by: int) -> None:
        """Show another text of the open task, as its own keys do."""
        self._pane.action_tab(by)

    def action_clear(self) -> None:
        """Clear the filter."""
        self.filter_by("")

    def action_star(self) -> None:
        """Star the filter, or remove its star."""
        words = self._lister.list.expression
        if not words:
            self._notify("There is no filter to give a star: / types one.")
        elif self._memory.turn(words):
            self._notify(f"{words} has a star: up finds it in the filter, : too.")
        else:
            self._notify(f"{words} is not starred now.")

    def action_match(self, step: int) -> None:
        """Go to the next listed task that matches the last filter."""
        if self._lister.last_filtered.expression:
            self._work(partial(self._matching, step), "match")
        else:
            self._notify("No filter: / sets one.")

    async def _matching(self, step: int) -> None:
        if not await self._lister.match(step):
            direction = "after" if step > 0 else "before"
            self._notify(
                f"No task {direction} this one fits "
                f"{self._lister.last_filtered.expression}."
            )

    def action_problem(self, step: int) -> None:
        """Go to the next task that failed, is wrong or had a reply rejected."""
        self._work(partial(self._to_problem, step), "match")

    async def _to_problem(self, step: int) -> None:
        if await self._lister.problem(step):
            self._problem = self._table.chosen
        else:
            direction = "after" if step > 0 else "before"
            self._notify(
                f"No task {direction} this one failed, is wrong or had a reply "
                "rejected. The filter err:* lists failed calls too."
            )

    def action_item_text(self) -> None:
        """Show the text of the chosen task's item, with its quotes marked."""
        if self._table.chosen is not None:
            self.open_task(self._table.chosen, Tab.TEXT)

    def _notify(self, sentence: str) -> None:
        self.notify(printable(sentence), timeout=3, markup=False)

    def action_sort(self) -> None:
        """Ask for an order."""
        self.app.push_screen(
            SortMenu(self._lister.list.order, self._glyphs), self._sort
        )

    def _sort(self, order: TaskOrder | None) -> None:
        if order is not None and order is not self._lister.list.order:
            self._begin(self._lister.list.query, self._lister.list.expression, order)

    def action_relist(self) -> None:
        """Update the list; the cursor stays on its task."""
        self._work(self._lister.refresh, "list")

    def action_freeze(self) -> None:
        """Freeze the display or continue; the run is not affected."""
        self._is_frozen = not self._is_frozen
        self._say()
        self.poll()

    def action_copy(self) -> None:
        """Copy the task's number, which filters and commands accept."""
        if self._table.chosen is not None:
            number = str(self._table.chosen)
            self.app.copy_to_clipboard(number)
            self._notify(copied(number))

    def action_back(self) -> None:
        """Leave the filter, then the details, then the screen."""
        if self._field.restore() or self.focused is self._field:
            self.set_focus(self._table)
        elif self._pane.is_inside(self.focused) and self._pane.step_back():
            pass
        elif self.has_class("-detail"):
            self.remove_class("-detail")
            self.refresh_bindings()
            self.set_focus(self._table)
        else:
            if self._row_filter and self._row_filter == self._lister.list.expression:
                self.filter_by("")
            self.app.pop_screen()
