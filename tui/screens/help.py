"""The keys of a screen, from its bindings themselves: it cannot be wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui.drawing.glyphs import Glyphs
from tui.drawing.keys import Key, help_lines
from tui.drawing.only_ascii import drawn
from tui.screens.modal import Modal


class HelpScreen(Modal[None]):
    """A list of keys over the screen that they belong to."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "Close", id="help.close"),
        Binding("j", "scroll(1)", "Down", show=False, id="help.down"),
        Binding("k", "scroll(-1)", "Up", show=False, id="help.up"),
    ]

    def __init__(self, keys: Iterable[Key], glyphs: Glyphs) -> None:
        super().__init__()
        self._text = drawn(glyphs, "\n".join(help_lines(keys)))

    def compose(self) -> ComposeResult:
        """The keys, and what they do."""
        with VerticalScroll(id="help") as box:
            box.border_title = "keys"
            box.border_subtitle = "esc closes"
            yield Static(self._text, markup=False)

    def action_scroll(self, by: int) -> None:
        """Read on, where the window is lower than the list."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)
