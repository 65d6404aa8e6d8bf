"""One event on a screen of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tui.drawing.glyphs import Glyphs
from tui.drawing.tables.event_columns import plain, task_number_of
from tui.lists.ring import EventLine
from tui.terminal.keeping import copied, copy
from tui.widgets.event_pane import EventPane
from tui.widgets.key_line import KeyLine
from tui.widgets.panel import TooSmall
from tui.widgets.text_view import TextView


class EventScreen(Screen[None]):
    """An event with all of its facts; it is what it is, so nothing is looked at."""

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
        open_task: Callable[[int], None],
    ) -> None:
        super().__init__()
        self._line = line
        self._pane = pane
        self._glyphs = glyphs
        self._open_task = open_task

    def compose(self) -> ComposeResult:
        """The event and its keys."""
        yield self._pane
        yield TooSmall(self._glyphs)
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Read it."""
        self._pane.show(self._line)
        self.query_one(TextView).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """An event without a task leads to none."""
        del parameters
        return action != "task" or task_number_of(self._line) is not None

    def action_task(self) -> None:
        """Everything about the task that the event is about."""
        number = task_number_of(self._line)
        if number is not None:
            self._open_task(number)

    async def action_write(self) -> None:
        """Keep it in a file of the current folder."""
        await self._pane.write(self._line)

    def action_copy(self) -> None:
        """Copy it as a line."""
        problem = copy(self.app, plain(self._line))
        self.notify(problem or copied("line"), timeout=2, markup=False)

    def action_back(self) -> None:
        """To where one came from."""
        self.dismiss()
