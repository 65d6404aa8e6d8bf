"""Shows the events of a run as its log grows, and single events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input, Static

from store.query import parse_event_query
from tui.render.event_text import event_line
from tui.render.format import utc
from tui.render.glyphs import Glyphs
from tui.run_screens import WatchedRun
from tui.screens.base import PANE_COLUMNS, FilteredScreen
from tui.screens.tasks import TaskScreen
from tui.sources.event_tail import EventTail, EventTailReader
from tui.sources.events import EventLine
from tui.sources.filters import FilterMemory
from tui.sources.tasks import TaskSource
from tui.terminal.export import copied, copy_text
from tui.widgets.events import (
    EventPane,
    EventTable,
    event_columns,
    plain,
    task_number_of,
)
from tui.widgets.filter_field import EVENTS, FilterField
from tui.widgets.keys import KeyLine
from tui.widgets.panel import TextLine, TooSmall
from tui.widgets.table import PagedTable
from tui.widgets.text_view import TextView


class EventScreen(Screen[None]):
    """An event with all of its fields; it never changes, so it is not polled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "task", "Its task", id="event.task"),
        Binding("w", "write", "Write to file", id="event.write"),
        Binding("y", "copy", "Copy line", id="event.copy"),
        Binding("escape,h,left", "back", "Back", id="event.back"),
    ]

    def __init__(
        self,
        line: EventLine,
        pane: EventPane,
        glyphs: Glyphs,
        open_task: Callable[[EventLine], None],
    ) -> None:
        super().__init__()
        self._line = line
        self._pane = pane
        self._glyphs = glyphs
        self._open_task = open_task

    def compose(self) -> ComposeResult:
        """Yield the event and its keys."""
        yield self._pane
        yield TooSmall(self._glyphs)
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Read the event."""
        self._pane.show(self._line)
        self.query_one(TextView).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the task's key for an event without a task."""
        del parameters
        return action != "task" or task_number_of(self._line) is not None

    def action_task(self) -> None:
        """Open the event's task."""
        self._open_task(self._line)

    async def action_write(self) -> None:
        """Write it to a file in the current folder."""
        await self._pane.write(self._line)

    def action_copy(self) -> None:
        """Copy it as a line."""
        problem = copy_text(self.app, plain(self._line))
        self.notify(problem or copied("line"), timeout=2, markup=False)

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()


class EventsScreen(FilteredScreen):
    """Follows the newest events, or shows those around the cursor."""

    DEFAULT_CSS = """
    EventsScreen #events { height: 1fr; width: 3fr; }
    EventsScreen EventPane { width: 2fr; display: none; }
    EventsScreen.-detail EventPane { display: block; }
    EventsScreen #line { display: none; }
    /* the column is narrow: the event under the cursor has a line of its own */
    EventsScreen.-small #line, EventsScreen.-middle #line { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "follow", "Follow", id="events.follow"),
        Binding("slash", "filter", "Filter", id="events.filter"),
        Binding("n", "match(1)", "Next match", show=False, id="events.next"),
        Binding("N", "match(-1)", "Match before", show=False, id="events.before"),
        Binding("x", "clear", "Clear", id="events.clear"),
        Binding("o", "task", "Task", id="events.task"),
        Binding("y", "copy", "Copy line", show=False, id="events.copy"),
        Binding("w", "write", "Write to file", show=False, id="events.write"),
        Binding("space", "freeze", "Freeze", id="events.freeze"),
        Binding("escape,h,left", "back", "Back", id="events.back"),
    ]

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__()
        self._watched = watched
        self._source = watched.sources.events(watched.folder)
        self._tasks: TaskSource | None = None
        self._reader = EventTailReader(
            self._source,
            watched.sources.clock,
            is_at_bottom=lambda: self._table.is_at_bottom,
            say=self._say,
        )
        self._memory = FilterMemory()

    def compose(self) -> ComposeResult:
        """Yield the heading, the filter, the table with details, the footer."""
        glyphs = self._watched.glyphs
        yield TextLine(glyphs, id="head")
        yield FilterField(self._memory, EVENTS, id="filter")
        yield Static(id="said", markup=False)
        with Horizontal(id="beside"):
            yield EventTable(event_columns(), glyphs, id="events")
            yield self._new_pane()
        yield TooSmall(glyphs)
        yield TextLine(glyphs, id="line")
        yield TextLine(glyphs, id="foot", is_rule=True)
        yield KeyLine(glyphs)

    def on_mount(self) -> None:
        """Start at the end."""
        self.set_focus(self._table)
        self.poll()

    def on_unmount(self) -> None:
        """Close the log."""
        self._source.close()
        if self._tasks is not None:
            self._tasks.close()

    @property
    def _table(self) -> EventTable:
        return self.query_one("#events", EventTable)

    @property
    def _field(self) -> FilterField:
        return self.query_one(FilterField)

    @property
    def _pane(self) -> EventPane:
        return self.query_one(EventPane)

    # Display

    def poll(self) -> None:
        """Check for new events; called by the application's timer."""
        if self._tail.is_loading and not self._is_at_work("read"):
            # initially, and after a failed read
            self._work(self._to_end, "read")
        if not self._is_at_work("look"):
            self._work(self._poll, "look")

    async def _poll(self) -> None:
        if await self._reader.poll(may_feed=not self._is_at_work("read")):
            self._show(is_bottom=True)
        self._say()
        self._fill_gaps()

    def _fill_gaps(self) -> None:
        """Replace a partial view by all events around the cursor."""
        if self._tail.has_gaps and not self._is_at_work("read"):
            self._work(partial(self._around, self._table.chosen or 0), "read")

    @property
    def _tail(self) -> EventTail:
        return self._reader.tail

    def _show(self, *, is_bottom: bool = False) -> None:
        """Show the loaded lines; the one under the cursor keeps its position."""
        with self.app.batch_update():
            rows = {line.recorded.seq: line for line in self._tail.window.lines}
            self._table.show(rows)
            if is_bottom:
                self._table.to_bottom()
        self._say()

    def _say(self) -> None:
        tail = self._tail
        head = f"EVENTS {self._source.run_id}"
        self.query_one("#head", TextLine).say(head, tail.heading)
        self._table.explain(tail.emptiness)
        row = self._table.row
        when = utc(row.recorded.ts_us) if row is not None else ""
        self.query_one("#line", TextLine).say(
            event_line(row.recorded.event) if row is not None else ""
        )
        self.query_one("#foot", TextLine).say(tail.foot, when)

    # Reading

    async def _to_end(self) -> None:
        await self._reader.to_end()
        self._show(is_bottom=True)
        self._field.offer(await self._source.names())

    async def _to_beginning(self) -> None:
        await self._reader.to_beginning()
        self._show()
        self._table.point_at(1)

    async def _around(self, seq: int) -> None:
        await self._reader.around(seq)
        self._show()
        self._table.point_at(seq)

    async def _read_on(self, *, is_backward: bool) -> None:
        await self._reader.read_on(is_backward=is_backward)
        self._show()

    async def _seek(self, *, is_backward: bool) -> None:
        lines = self._tail.window
        seq = self._table.chosen or self._tail.window.searched.first
        match_seq = await self._reader.seek(seq, is_backward=is_backward)
        if self._tail.window is not lines:
            self._show()
        if match_seq is None:
            way = "before" if is_backward else "after"
            self.notify(f"no match {way} this event", timeout=3, markup=False)
        else:
            self._table.point_at(match_seq)

    # Events

    @on(PagedTable.Moved, "#events")
    def _moved(self) -> None:
        self._reader.notice()
        self._say()
        self._fill_gaps()
        if self.has_class("-detail"):
            self._pane.show(self._table.row)

    @on(EventTable.EdgeNeared)
    def _neared(self, message: EventTable.EdgeNeared) -> None:
        if self._is_at_work("read"):
            return
        window = self._tail.window
        left = window.newer(self._tail.tip.seq) if message.is_last else window.older
        if len(left):
            self._work(partial(self._read_on, is_backward=not message.is_last), "read")

    @on(EventTable.EndRequested)
    def _end_requested(self, message: EventTable.EndRequested) -> None:
        self._work(self._to_end if message.is_last else self._to_beginning, "read")

    @on(PagedTable.Chosen, "#events")
    def _open(self) -> None:
        line = self._table.row
        if line is None:
            return
        if self.size.width >= PANE_COLUMNS:
            self.add_class("-detail")
            self._pane.show(line)
        else:
            glyphs, pane = self._watched.glyphs, self._new_pane()
            self.app.push_screen(EventScreen(line, pane, glyphs, self._open_task))

    def _new_pane(self) -> EventPane:
        watched = self._watched
        return EventPane(self._source.body, watched.glyphs)

    def _open_task(self, line: EventLine) -> None:
        """Open an event's task; of a failed attempt, with its reply."""
        number = task_number_of(line)
        if number is None:
            self.notify("this event is about no task alone", timeout=3, markup=False)
            return
        if self._tasks is None:
            self._tasks = self._watched.sources.tasks(self._watched.folder)
        event = line.recorded.event
        failure = getattr(event, "error", None) or getattr(event, "reask", None)
        self.app.push_screen(
            TaskScreen(self._tasks, self._watched.glyphs, number, failure=failure)
        )

    @on(FilterField.Read)
    def _filtered(self, message: FilterField.Read) -> None:
        """Show matching events around the cursor or at the end."""
        expression = message.expression
        self._reader.filter(parse_event_query(expression), expression)
        self.refresh_bindings()
        seq = self._table.chosen
        if self._tail.is_following or seq is None:
            self._work(self._to_end, "read")
        else:
            self._work(partial(self._around, seq), "read")

    @on(Input.Submitted, "#filter")
    def _entered(self) -> None:
        self.set_focus(self._table)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the filter's key in its field; clear only if there is a filter."""
        del parameters
        if action == "filter":
            return self.focused is not self._field
        return action != "clear" or bool(self._tail.expression)

    def action_filter(self) -> None:
        """Focus the filter."""
        self.set_focus(self._field)

    def action_clear(self) -> None:
        """Clear the filter, keeping the event under the cursor."""
        self._field.value = ""

    def action_follow(self) -> None:
        """Turn following on or off."""
        self._reader.tail = self._tail.toggled()
        if self._tail.is_following:
            self._work(self._to_end, "read")
        self._say()
        self._fill_gaps()

    def action_match(self, by: int) -> None:
        """Go to the next match of the filter, or of the last one."""
        if self._reader.last_query.terms:
            self._work(partial(self._seek, is_backward=by < 0), "read")
        else:
            self.notify("no search: / starts one", timeout=3, markup=False)

    def action_freeze(self) -> None:
        """Freeze the display or continue; the run is not affected."""
        self._reader.tail = self._tail.frozen()
        self._say()
        self.poll()

    def action_task(self) -> None:
        """Open the event's task."""
        if self._table.row is not None:
            self._open_task(self._table.row)

    def action_copy(self) -> None:
        """Copy the line."""
        line = self._table.row
        if line is not None:
            problem = copy_text(self.app, plain(line))
            self.notify(problem or copied("line"), timeout=2, markup=False)

    async def action_write(self) -> None:
        """Write the event to a file in the current folder."""
        line = self._table.row
        if line is not None:
            await self._pane.write(line)

    def action_back(self) -> None:
        """Stop a search, or leave the filter, the details, then the screen."""
        if self._tail.reached is not None:
            self.workers.cancel_group(self, "read")
            self._reader.stop()
            self._show()
        elif self._field.restore() or self.focused is not self._table:
            self.set_focus(self._table)
        elif self.has_class("-detail"):
            self.remove_class("-detail")
        else:
            self.app.pop_screen()
