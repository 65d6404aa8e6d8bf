"""Adapts an application to its terminal: colours, refresh rate, clean exit.

It owns the only timer and measures its work; it does not know the screens.

On a slow terminal, as over a bad line, the refresh rate drops automatically unless the
user has chosen one.
"""

from __future__ import annotations

import asyncio
import math
import os
import platform
import signal
import sqlite3
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from rich.console import RenderableType
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Event, InputEvent
from textual.filter import LineFilter
from textual.screen import Screen
from textual.timer import Timer
from textual.worker import WorkerError

from store.clock import Clock
from store.printable import printable
from store.runs import RunFolder
from tui.render.colours import COLOUR_THEMES, NoColours, state_variables
from tui.render.format import UNKNOWN, count
from tui.render.glyphs import ASCII, Glyphs, OnlyAscii
from tui.sources.run_snapshot import RunSnapshot
from tui.terminal.typed_keys import KeyOrderApp

RATES = (0.5, 1.0, 2.0, 4.0)
"""Refreshes per second."""
USUAL = 2.0
REMOTE = 1.0
"""Default rate if every frame crosses a network."""
SLOW_S = 0.05
"""Duration of a frame from which the rate drops, by section 11 of its budget."""
MAX_FRAMES = 512
"""Number of times kept: some minutes of them."""
ENOUGH = 8
"""Minimum frames before they are judged; the first ones build the screen."""


@dataclass(slots=True)
class Timings:
    """The latest durations of an operation, in seconds."""

    taken: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_FRAMES))

    def add(self, seconds: float) -> None:
        """Record a duration."""
        self.taken.append(seconds)

    def percentile(self, share: float) -> float | None:
        """Return a percentile (nearest rank); None: no data."""
        if not self.taken:
            return None
        rank = math.ceil(share * len(self.taken))
        return sorted(self.taken)[max(0, rank - 1)]


class RefreshRate:
    """Refreshes per second: chosen by the user, or adapted to the terminal."""

    def __init__(self, chosen: float | None, environment: Mapping[str, str]) -> None:
        """Set the initial rate.

        Args:
            chosen: one of `RATES`; None: adapted to the terminal.
            environment: shows whether the terminal is remote.
        """
        is_remote = bool(environment.get("SSH_CONNECTION"))
        self._at = RATES.index(chosen or (REMOTE if is_remote else USUAL))
        self._is_chosen = chosen is not None
        self.polls = Timings()
        self.frames = Timings()

    @property
    def rate(self) -> float:
        """Refreshes per second."""
        return RATES[self._at]

    def step(self, by: int) -> None:
        """Raise or lower the rate, as chosen by the user."""
        self._at = min(len(RATES) - 1, max(0, self._at + by))
        self._is_chosen = True

    def is_relieved(self) -> bool:
        """Lower the rate if frames are slow; return whether it changed."""
        median = self.frames.percentile(0.5)
        if self._is_chosen or self.rate <= REMOTE or median is None:
            return False
        if len(self.frames.taken) < ENOUGH or median <= SLOW_S:
            return False
        self._at = RATES.index(REMOTE)
        return True


@runtime_checkable
class RefreshingScreen(Protocol):
    """A screen that is refreshed by the application's timer."""

    @property
    def is_mounted(self) -> bool:
        """True once it has begun to read."""

    def poll(self) -> None:
        """Read and show changes."""


@runtime_checkable
class FilteringScreen(Protocol):
    """A screen with a filter."""

    def filter_by(self, expression: str) -> None:
        """Apply an expression of `store.query`."""

    def open_task(self, number: int) -> None:
        """Show one task."""


_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 3
"""Time to restore the terminal; one that accepts no output is given up."""
_KILLED = 128
"""A shell's exit code for a signal, minus the signal's number."""


class TerminalApp(KeyOrderApp):
    """An application that shows runs; quitting it changes nothing."""

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
        theme: str = COLOUR_THEMES[0].name,
        pace: RefreshRate | None = None,
        has_mouse: bool = True,
    ) -> None:
        """Create the application.

        Args:
            clock: measures refreshes and frames.
            glyphs: the characters that the terminal supports.
            theme: the initial theme.
            pace: the refresh rate; None: the default.
            has_mouse: whether the application handles the mouse.
        """
        # lines are cached by their filters, so these must be constant objects
        self._no_colours = [NoColours(is_dark=is_dark) for is_dark in (False, True)]
        self._only_ascii = OnlyAscii(ASCII)
        self._glyphs = glyphs
        super().__init__()
        for palette in COLOUR_THEMES:
            self.register_theme(palette.theme())
        self.theme = theme
        self.pace = pace or RefreshRate(None, {})
        self.has_mouse = has_mouse
        self._clock = clock
        self._timer: Timer | None = None

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the colours of states for Textual's themes."""
        return dict(state_variables(self.current_theme))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters of every output line."""
        return [
            *super().get_line_filters(),
            *([self._no_colours[self.current_theme.dark]] if self.no_color else ()),
            *([self._only_ascii] if self._glyphs.plain else ()),
        ]

    def on_mount(self) -> None:
        """Start the timer and handle signals."""
        self.keep_pace()
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for signal_number in _ENDINGS:
                # not the loop's handler: the loop may be blocked by the terminal
                signal.signal(signal_number, partial(self._end, loop))

    async def on_unmount(self) -> None:
        """Wait for cancelled work before the event loop ends.

        A killed child process must still be waited for.
        """
        for worker in list(self.workers):
            with suppress(WorkerError):  # cancelled or failed
                await worker.wait()

    def _end(self, loop: asyncio.AbstractEventLoop, by: int, frame: object) -> None:
        """Restore the terminal after a signal."""
        del frame
        if not os.isatty(0):
            os._exit(_KILLED + by)  # the terminal is gone; nothing to restore
        signal.alarm(_GRACE_S)
        loop.call_soon_threadsafe(partial(self.exit, return_code=_KILLED + by))

    def keep_pace(self) -> None:
        """Restart the timer with the current rate."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(1 / self.pace.rate, self._poll)

    def _poll(self) -> None:
        """Refresh the topmost live screen."""
        if self.pace.is_relieved():
            self.keep_pace()
            self._notify_pace("this terminal is slow; ")
        for screen in reversed(self.screen_stack):
            if isinstance(screen, RefreshingScreen):
                if screen.is_mounted:  # else it begins to read by itself
                    begun = self._clock.monotonic()
                    screen.poll()
                    self.pace.polls.add(self._clock.monotonic() - begun)
                return

    async def on_event(self, event: Event) -> None:
        """Ignore keys after the one that quits."""
        if not (self._exit and isinstance(event, InputEvent)):
            await super().on_event(event)

    def action_rate(self, by: int) -> None:
        """Raise or lower the refresh rate."""
        self.pace.step(by)
        self.keep_pace()
        self._notify_pace()

    def _notify_pace(self, reason: str = "") -> None:
        notice = f"{reason}{self.pace.rate:g} refreshes per second"
        self.notify(notice, timeout=2, markup=False)

    # the only method of Textual in which a frame is drawn and written to the terminal
    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        begun = self._clock.monotonic()
        super()._display(screen, renderable)
        if renderable is not None and not (self._batch_count or self.is_headless):
            self.pace.frames.add(self._clock.monotonic() - begun)

    # Textual's shows the values of variables: texts of models, and maybe worse
    def _fatal_error(self) -> None:
        self.panic(Text(printable(traceback.format_exc())))

    def action_detach(self) -> None:
        """Quit."""
        self.exit("")


_TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "TMUX", "NO_COLOR")
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
_LONGEST = 60


def about(
    app: TerminalApp,
    folder: RunFolder | None,
    seen: RunSnapshot | None,
    *,
    is_read_only: bool,
) -> str:
    """Return diagnostic facts, one per line, without content of runs.

    Args:
        app: the monitor.
        folder: folder of the watched run.
        seen: that run.
        is_read_only: whether commands are disabled.
    """
    from importlib.metadata import version  # noqa: PLC0415 - slow to import

    size = app.size
    facts = {
        "siftlog": version("siftlog"),
        "Textual": f"{version('textual')}, Rich {version('rich')}",
        "Python": f"{platform.python_version()}, {platform.platform()}",
        "SQLite": sqlite3.sqlite_version,
        **{name: _variable(name) for name in (*_TERMINAL, *_LOCALE)},
        "remote": "yes, by ssh" if os.environ.get("SSH_CONNECTION") else "no",
        "size": f"{size.width} columns, {size.height} lines",
        "colours": app.console.color_system or "none",
        "mouse": "ours" if app.has_mouse else "the terminal's",
        "theme": app.theme,
        "refresh": f"{app.pace.rate:g} refreshes per second",
        "a look": _taken(app.pace.polls),
        "a frame": _taken(app.pace.frames),
        "--read-only": "yes" if is_read_only else "no",
        "log": _size(folder),
        "last event": count(seen.status.last_seq) if seen else UNKNOWN,
    }
    return "\n".join(f"{name:<12} {value}" for name, value in facts.items())


def _variable(name: str) -> str:
    value = os.environ.get(name)
    return "not set" if value is None else repr(value[:_LONGEST])


def _taken(timings: Timings) -> str:
    """Format the median and the 99th percentile of the latest times."""
    half, most = (timings.percentile(share) for share in (0.5, 0.99))
    if half is None or most is None:
        return "none yet"
    n = len(timings.taken)
    return f"p50 {half * 1e3:.1f} ms, p99 {most * 1e3:.1f} ms, last {n}"


def _size(folder: RunFolder | None) -> str:
    if folder is None:
        return UNKNOWN
    try:
        return f"{folder.log.stat().st_size / 1e6:,.1f} MB"
    except OSError:
        return "gone"


@runtime_checkable
class SelectingScreen(Protocol):
    """A screen that defines the tasks of a retry."""

    @property
    def task_filter(self) -> str:
        """A filter; empty: failed tasks."""
        ...


@runtime_checkable
class ItemScreen(Protocol):
    """A screen with an item of the run in front."""

    @property
    def items(self) -> tuple[str, ...]:
        """The key of the item; empty: none is chosen."""
        ...
