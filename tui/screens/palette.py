"""The command palette, which takes what is typed together with the key that opens it."""

from __future__ import annotations

from textual.command import CommandPalette
from textual.widgets import Input


class Palette(CommandPalette):
    """Everything that can be done, to be found by typing."""

    def __init__(self) -> None:
        asked = "an action, a run, a filter, a theme, or a task as T-123"
        super().__init__(placeholder=asked, id="--command-palette")
        self._has_line = False
        self._early = ""  #: typed before its line was there

    def on_mount(self) -> None:
        """Go on with what was typed before."""
        self._has_line = True
        self.type_in(self._early)

    def type_in(self, text: str) -> None:
        """Take what was typed while the keys were not its own yet."""
        if self._has_line:
            self.query_one(Input).insert_text_at_cursor(text)
        else:
            self._early += text
