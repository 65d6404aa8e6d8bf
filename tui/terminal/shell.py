"""What every form of the monitor needs of a terminal: colours, pace, a clean end.

It owns the one timer, and times what it does; which screens there are is not its
business.
"""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Event, InputEvent
from textual.filter import LineFilter
from textual.screen import Screen
from textual.timer import Timer
from textual.worker import WorkerError

from store.clock import Clock
from store.printable import printable
from tui.drawing.glyphs import ASCII, Glyphs
from tui.drawing.no_colours import NoColours
from tui.drawing.only_ascii import OnlyAscii
from tui.drawing.palette import PALETTES, state_variables
from tui.screens.looking import Looking
from tui.terminal.pace import Pace

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 3
"""For a terminal to be set right; one that takes nothing more is given up."""
_KILLED = 128
"""A shell's exit code of what a signal ended, less the signal's number."""


class Shell(App[str]):
    """An application that looks at runs; leaving it changes nothing."""

    CSS_PATH = Path(__file__).parents[1] / "watch.tcss"
    TITLE = "siftlog"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "detach", show=False, id="interrupt", priority=True),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False, id="suspend"),
    ]

    def __init__(
        self,
        clock: Clock,
        *,
        glyphs: Glyphs,
        theme: str = PALETTES[0].name,
        pace: Pace | None = None,
        has_mouse: bool = True,
    ) -> None:
        """A shell that has not begun.

        Args:
            clock: what looks and frames are timed by.
            glyphs: the signs that the terminal can show.
            theme: the colours to begin with.
            pace: how often to look; None: as usual.
            has_mouse: whether the mouse is ours and not the terminal's.
        """
        # lines are kept by the filters they went through: always the same ones
        self._no_colours = [NoColours(is_dark=is_dark) for is_dark in (False, True)]
        self._only_ascii = OnlyAscii(ASCII)
        self._glyphs = glyphs
        super().__init__()
        for palette in PALETTES:
            self.register_theme(palette.theme())
        self.theme = theme
        self.pace = pace or Pace(None, {})
        self.has_mouse = has_mouse
        self._clock = clock
        self._timer: Timer | None = None

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of the states in themes that are not ours."""
        return dict(state_variables(self.current_theme))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What every line goes through on its way to the terminal."""
        return [
            *super().get_line_filters(),
            *([self._no_colours[self.current_theme.dark]] if self.no_color else ()),
            *([self._only_ascii] if self._glyphs.plain else ()),
        ]

    def on_mount(self) -> None:
        """Begin to look, and to listen for an end that comes from outside."""
        self.keep_pace()
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for each in _ENDINGS:
                # not the loop's own: it may be waiting for a terminal that is stuck
                signal.signal(each, partial(self._end, loop))

    async def on_unmount(self) -> None:
        """Wait for the end of what is broken off, before the loop that it needs ends.

        A child that was killed is still to be waited for.
        """
        for worker in list(self.workers):
            with suppress(WorkerError):  # as it was cancelled, or has failed
                await worker.wait()

    def _end(self, loop: asyncio.AbstractEventLoop, by: int, frame: object) -> None:
        """Leave the terminal as it was found, whoever ends this."""
        del frame
        if not os.isatty(0):
            os._exit(_KILLED + by)  # it is gone, and nothing else is to be set right
        signal.alarm(_GRACE_S)
        loop.call_soon_threadsafe(partial(self.exit, return_code=_KILLED + by))

    def keep_pace(self) -> None:
        """Look as often as it was last decided."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(1 / self.pace.rate, self._look)

    def _look(self) -> None:
        """The uppermost screen that shows something alive looks again."""
        if self.pace.is_relieved():
            self.keep_pace()
            self._tell_pace("this terminal is slow; ")
        for screen in reversed(self.screen_stack):
            if isinstance(screen, Looking):
                begun = self._clock.monotonic()
                screen.look()
                self.pace.looks.add(self._clock.monotonic() - begun)
                return

    async def on_event(self, event: Event) -> None:
        """Keys after the one that leaves find no screen any more."""
        if not (self._exit and isinstance(event, InputEvent)):
            await super().on_event(event)

    def action_rate(self, by: int) -> None:
        """Look more often, or less."""
        self.pace.step(by)
        self.keep_pace()
        self._tell_pace()

    def _tell_pace(self, why: str = "") -> None:
        said = f"{why}{self.pace.rate:g} looks a second"
        self.notify(said, timeout=2, markup=False)

    # Textual has no other place where a frame is drawn and handed to the terminal
    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        begun = self._clock.monotonic()
        super()._display(screen, renderable)
        if renderable is not None and not (self._batch_count or self.is_headless):
            self.pace.frames.add(self._clock.monotonic() - begun)

    # Textual's own shows the values of variables: texts of models, and maybe worse
    def _fatal_error(self) -> None:
        self.panic(Text(printable(traceback.format_exc())))

    def action_detach(self) -> None:
        """Leave."""
        self.exit("")
