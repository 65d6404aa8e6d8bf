"""Opens the labelling screen: as an application of its own, or over the monitor."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jobs.cli.label_folders import author_name
from jobs.kit.labels.desk import LabelSelection, SessionDesk, open_desk
from jobs.kit.labels.session import LabelSession
from store.clock import Clock, SystemClock
from store.runs import RunFolder
from tui.labelling.focus import FocusClock
from tui.labelling.screen import LabelScreen
from tui.options import resolve_theme
from tui.render.glyphs import Glyphs, glyphs_for
from tui.terminal.shell import TerminalApp


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


def label_screen(
    folder: RunFolder, items: tuple[str, ...], clock: Clock, glyphs: Glyphs
) -> LabelScreen:
    """Create the screen for a run; it loads the run's data when it is shown.

    The author and the folder of labels are those of `siftlog label`: SIFTLOG_AUTHOR or
    the user, and SIFTLOG_LABELS or that of the run.

    Args:
        folder: of the run.
        items: keys of items; empty: those of the latest draw, or all.
        clock: of the monitor.
        glyphs: the characters that the terminal supports.
    """
    focus = FocusClock(clock)
    shared = os.environ.get("SIFTLOG_LABELS")
    labels = Path(shared) if shared else folder.labels
    # a list of tasks shows their values: a label from there is no blind one
    selection = LabelSelection(
        items=items, continues_draw=True, is_assisted=bool(items)
    )

    @asynccontextmanager
    async def opened() -> AsyncIterator[LabelSession]:
        author = author_name(os.environ.get("SIFTLOG_AUTHOR"))
        async with (
            open_desk(folder, labels, selection) as desk,
            desk.session(author, focus) as session,
        ):
            yield session

    return LabelScreen(opened, glyphs, focus)
