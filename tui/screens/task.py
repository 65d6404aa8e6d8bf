"""One task on a screen of its own."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tui.drawing.format import task_name
from tui.drawing.glyphs import Glyphs
from tui.sources.tasks import TaskSource
from tui.widgets.key_line import KeyLine
from tui.widgets.panel import TooSmall
from tui.widgets.table import PagedTable
from tui.widgets.task_pane import TaskPane


class TaskScreen(Screen[None]):
    """Everything about one task; the source belongs to whoever opened it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,h,left", "back", "Back", id="task.back"),
    ]

    def __init__(self, source: TaskSource, glyphs: Glyphs, task: int) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._pane = TaskPane(source, glyphs)
        self._number = task

    def compose(self) -> ComposeResult:
        """The task and its keys."""
        yield self._pane
        yield TooSmall(self._glyphs)
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Read it."""
        self.query_one(PagedTable).focus()
        self.look()

    def look(self) -> None:
        """Read it again if anything has happened; called by the application's timer."""
        self._pane.look(self._number)

    @property
    def aim(self) -> str:
        """This task alone."""
        return f"task:{task_name(self._number)}"

    def action_back(self) -> None:
        """Out of a comparison, to the attempts, then to where one came from."""
        if not self._pane.step_back():
            self.dismiss()
