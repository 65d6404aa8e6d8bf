"""A text with a heading, to be read, copied or written to a file."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from tui.drawing.glyphs import Glyphs
from tui.terminal.keeping import copied, copy
from tui.widgets.key_line import KeyLine
from tui.widgets.line import TextLine
from tui.widgets.panel import TooSmall
from tui.widgets.text_view import TextView


class PageScreen(Screen[None]):
    """Shows one text; whoever makes it may exchange the text."""

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
        """The text is to be written to a file."""

        def __init__(self, what: str, text: str) -> None:
            super().__init__()
            self.what = what
            self.text = text

    def __init__(self, what: str, heading: str, text: str, glyphs: Glyphs) -> None:
        """A page.

        Args:
            what: names its file.
            heading: stands above it.
            text: what is to be read.
            glyphs: the signs that the terminal can show.
        """
        super().__init__()
        self._what = what
        self._heading = heading
        self._text = text
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        """The heading, the text, the keys."""
        yield TextLine(self._glyphs, id="head")
        yield TextView(self._glyphs)
        yield TooSmall(self._glyphs)
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Show the text; keys scroll it."""
        self.query_one("#head", TextLine).say(self._heading)
        self.query_one(TextView).focus()
        self.show(self._text)

    def show(self, text: str) -> None:
        """Show another text."""
        self._text = text
        self.query_one(TextView).show(text)

    def action_copy(self) -> None:
        """Copy the text; a terminal may refuse it, so there is `w` too."""
        said = copy(self.app, self._text)
        done = f"{copied('text')}; w writes a file"
        self.notify(said or done, timeout=3, markup=False)

    def action_write(self) -> None:
        """Write the text to a file."""
        self.post_message(self.Write(self._what, self._text))

    def action_back(self) -> None:
        """To where one came from."""
        self.app.pop_screen()
