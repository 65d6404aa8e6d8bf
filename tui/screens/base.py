"""Base classes of screens: modal, page of text, filtered list.

A filtered list has a heading, the filter, an error below it, a table with a detail
pane, and a footer. A failed read shows a message and does not end the monitor.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Static
from textual.worker import Worker

from store.errors import StoreError
from store.printable import printable
from tui.render.glyphs import Glyphs
from tui.terminal.export import copied, copy_text
from tui.widgets.filter_field import FilterField
from tui.widgets.keys import KeyLine
from tui.widgets.panel import TextLine, TooSmall
from tui.widgets.text_view import TextView


class Modal(ModalScreen[ScreenResultType]):
    """A modal screen that accepts only the first of several quick answers.

    Textual's would close the screen behind it with the second answer.
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Answer and close, unless that was done before."""
        return super().dismiss(result) if self.is_current else AwaitComplete()


class PageScreen(Screen[None]):
    """Shows one text, which may be replaced."""

    DEFAULT_CSS = """
    PageScreen #head { text-style: bold; }
    PageScreen TextView { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="page.copy"),
        Binding("w", "write", "Write to file", id="page.write"),
        Binding("escape,h,left", "back", "Back", id="page.back"),
    ]

    class Write(Message):
        """Requests that the text is written to a file."""

        def __init__(self, label: str, text: str) -> None:
            super().__init__()
            self.label = label
            self.text = text

    def __init__(self, label: str, heading: str, text: str, glyphs: Glyphs) -> None:
        """Create a page.

        Args:
            label: label of its file.
            heading: heading.
            text: the text.
            glyphs: the characters that the terminal supports.
        """
        super().__init__()
        self._label = label
        self._heading = heading
        self._text = text
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Yield the heading, the text, the keys."""
        yield TextLine(self._glyphs, id="head")
        yield TextView(self._glyphs)
        yield TooSmall(self._glyphs)
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Show the text, and focus it for scrolling."""
        self.query_one("#head", TextLine).say(self._heading)
        self.query_one(TextView).focus()
        self.show(self._text)

    def show(self, text: str) -> None:
        """Replace the text."""
        self._text = text
        self.query_one(TextView).show(text)

    def action_copy(self) -> None:
        """Copy the text; a terminal may refuse it, so there is `w` too."""
        problem = copy_text(self.app, self._text)
        done = f"{copied('text')}; w writes a file"
        self.notify(problem or done, timeout=3, markup=False)

    def action_write(self) -> None:
        """Write the text to a file."""
        self.post_message(self.Write(self._label, self._text))

    def action_back(self) -> None:
        """Go back."""
        self.app.pop_screen()


PANE_COLUMNS = 140
"""Width from which details open beside the table."""

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class FilteredScreen(Screen[None]):
    """Runs background work by group, and shows read errors."""

    DEFAULT_CSS = """
    FilteredScreen { background: $background; layers: base above; }
    FilteredScreen #head { text-style: bold; }
    FilteredScreen #said {
        layer: above; dock: top; offset: 0 2; display: none; height: auto;
        padding: 0 1; background: $panel; color: $state-failed; text-style: bold;
    }
    FilteredScreen #beside { height: 1fr; }
    FilteredScreen #foot { color: $state-queued; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._failing: set[str] = set()  #: groups whose last read failed

    def _is_at_work(self, group: str) -> bool:
        return any(
            worker.group == group and worker.is_running for worker in self.workers
        )

    def _work(self, work: Work, group: str) -> None:
        """Start work; cancels running work of its group."""
        safely = partial(self._safely, work, group)
        _: Worker[None] = self.run_worker(
            safely, group=group, exclusive=True, exit_on_error=False
        )

    async def _safely(self, work: Work, group: str) -> None:
        try:
            await work()
        except (StoreError, sqlite3.Error) as error:
            self._failing.add(group)
            self._complain(f"{error}.")
        else:
            if self._failing == {group}:
                self._complain("")
            self._failing.discard(group)

    def _complain(self, sentence: str, column: int | None = None) -> None:
        """Show an error under the filter; an empty sentence clears it."""
        complaint = self.query_one("#said", Static)
        mark = "" if column is None else f"{' ' * (column - 1)}^\n"
        complaint.update(f"{mark}{printable(sentence)}")
        complaint.display = bool(sentence)

    @on(FilterField.Wrong)
    def _explained(self, message: FilterField.Wrong) -> None:
        self._complain(message.sentence, message.column)
