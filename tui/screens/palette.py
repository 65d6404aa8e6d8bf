"""The command palette, for keys that come in one go, as over a slow line."""

from __future__ import annotations

from textual import on
from textual.command import CommandPalette
from textual.message import Message
from textual.widgets import Input, OptionList


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

    @on(Input.Changed)
    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _once(self, message: Message) -> None:
        """What comes after a choice finds it gone, and chooses nothing again."""
        if not self.is_current:
            message.stop()
            message.prevent_default()
