"""The last line of a screen: as many keys as it has room for."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.screen import Screen

from tui.drawing.glyphs import Glyphs
from tui.drawing.keys import Key, keys_of, line_of_keys
from tui.drawing.room import MUTED
from tui.widgets.panel import TextBlock


class KeyLine(TextBlock):
    """Names keys by importance; those that lead back, on and out are never cut.

    A click on one is the key. Textual's own footer cuts what is last, and is a widget
    a key.
    """

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; background: $panel; }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__("keys", glyphs)
        self._placed: list[tuple[int, Key]] = []

    def on_mount(self) -> None:
        """Listen for other keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._tell)

    def on_unmount(self) -> None:
        """Listen no more."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def on_resize(self, event: events.Resize) -> None:
        """Another width, another choice."""
        del event
        self._tell(self.screen)

    def _tell(self, screen: Screen[object]) -> None:
        if screen is not self.screen or not self.size.width:
            return
        keys = keys_of(screen.active_bindings.values(), self.app.get_key_display)
        self._placed = line_of_keys(keys, self.size.width)
        line = Content()
        for begin, key in self._placed:
            name, about = key.names[0], f" {key.about}"
            line = Content.assemble(
                line,
                " " * (begin - line.cell_length),
                (name, "bold $accent" if key.is_enabled else MUTED),
                (about, "" if key.is_enabled else MUTED),
            )
        self.say(line)

    def on_click(self, event: events.Click) -> None:
        """Do what the key under the pointer does."""
        for begin, key in self._placed:
            if begin <= event.x < begin + len(key.words) and key.is_enabled:
                self.app.call_later(self.app.run_action, key.action, key.node)
