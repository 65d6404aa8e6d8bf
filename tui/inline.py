"""One run in eight lines under the prompt, until it ends or somebody leaves.

Textual draws under the prompt on Unix only.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from store.clock import Clock
from store.printable import printable
from tui.drawing.glyphs import Glyphs
from tui.drawing.room import Room
from tui.drawing.run.brief import LINES, brief
from tui.drawing.words import farewell
from tui.sources.run import Source
from tui.sources.sight import Snapshot, Trouble
from tui.terminal.pace import Pace
from tui.terminal.shell import Shell
from tui.widgets.panel import TextBlock


class InlineScreen(Screen[None]):
    """Eight lines about a run."""

    def __init__(self, source: Source, glyphs: Glyphs) -> None:
        super().__init__()
        self._source = source
        self._glyphs = glyphs
        self._said = TextBlock("brief", glyphs)
        self.snapshot: Snapshot | None = None  #: what was seen last

    def compose(self) -> ComposeResult:
        """Nothing but the lines."""
        yield self._said

    def on_unmount(self) -> None:
        """Let go of the log."""
        self._source.close()

    def on_resize(self) -> None:
        """Lines are as long as the terminal is wide."""
        self.look()

    def look(self) -> None:
        """Look, and leave when there is nothing more to see."""
        sight = self._source.look()
        if isinstance(sight, Trouble):
            self.app.exit(return_code=1, message=printable(f"{sight.sentence}."))
            return
        self.snapshot = sight
        room = Room(width=self.size.width, height=LINES, glyphs=self._glyphs)
        self._said.say(brief(sight, room))
        if sight.is_ended:
            # once the last figures are on the screen, where they stay
            self.call_after_refresh(self.app.exit, "")


class InlineMonitor(Shell):
    """Watches one run without taking the terminal away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "detach", "Detach", id="inline.detach")
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        source: Source,
        clock: Clock,
        *,
        glyphs: Glyphs,
        theme: str,
        pace: Pace | None = None,
    ) -> None:
        """A monitor that has not begun.

        Args:
            source: looks at the run.
            clock: what looks and frames are timed by.
            glyphs: the signs that the terminal can show.
            theme: its colours.
            pace: how often to look; None: as usual.
        """
        super().__init__(clock, glyphs=glyphs, theme=theme, pace=pace, has_mouse=False)
        self._shown = InlineScreen(source, glyphs)

    def on_mount(self) -> None:
        """Show the run."""
        self.push_screen(self._shown)

    def action_detach(self) -> None:
        """Leave; say once that the run does not."""
        self.exit(farewell(self._shown.snapshot))
