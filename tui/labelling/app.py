"""Labels on a terminal: the labelling screen as an application of its own."""

from __future__ import annotations

import os
import sys
import termios
from typing import TYPE_CHECKING

from store.clock import Clock, SystemClock
from tui.labelling.focus import FocusClock
from tui.labelling.screen import LabelScreen
from tui.options import resolve_theme
from tui.render.glyphs import Glyphs, glyphs_for
from tui.terminal.shell import TerminalApp

if TYPE_CHECKING:
    from jobs.kit.labels.desk import SessionDesk


class LabelApp(TerminalApp):
    """Asks the questions of one session."""

    ENABLE_COMMAND_PALETTE = False
    # the sizes of the monitor's style sheet
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (80, "-small")]  # noqa: RUF012 - as textual
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (24, "-low")]  # noqa: RUF012 - likewise

    def __init__(
        self,
        desk: SessionDesk,
        author: str,
        clock: Clock,
        *,
        glyphs: Glyphs,
        theme: str,
    ) -> None:
        super().__init__(clock, glyphs=glyphs, theme=theme)
        self._desk = desk
        self._author = author

    def on_mount(self) -> None:
        """Show the screen; the application ends with it."""
        clock = FocusClock(self._clock)
        screen = LabelScreen(
            lambda: self._desk.session(self._author, clock),
            self._glyphs,
            clock,
        )
        self.push_screen(screen, lambda _: self.exit(""))


async def label_on_screen(desk: SessionDesk, author: str) -> None:
    """Run a session of an author on this terminal, until it is left."""
    app = LabelApp(
        desk,
        author,
        SystemClock(),
        glyphs=glyphs_for(os.environ),
        theme=resolve_theme(os.environ.get("TEXTUAL_THEME")),
    )
    if sys.stdin.isatty():
        # keys that a killed session has left are answers to items of its own
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    await app.run_async()
