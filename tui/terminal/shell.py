"""Adapts an application to its terminal: colours, refresh rate, a clean end.

It owns the one timer, and times what it does; which screens there are is not its
business.

A terminal that is slow to write to, as over a bad line, is looked at less often by
itself; a person who has chosen a pace keeps it. Knows neither a clock nor a screen.
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
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

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
from store.runs import RunFolder
from tui.render.colours import COLOUR_THEMES, NoColours, state_variables
from tui.render.format import UNKNOWN, count
from tui.render.glyphs import ASCII, Glyphs, OnlyAscii
from tui.sources.run_snapshot import RunSnapshot

RATES = (0.5, 1.0, 2.0, 4.0)
"""Looks a second."""
USUAL = 2.0
REMOTE = 1.0
"""Where every frame crosses a network."""
SLOW_S = 0.05
"""A frame that takes longer makes the monitor slower, by section 11 of its budget."""
MAX_FRAMES = 512
"""Times kept: some minutes of them."""
ENOUGH = 8
"""Frames before they are judged; the first ones build the screen."""


@dataclass(slots=True)
class Timings:
    """The latest of the times that something took, in seconds."""

    taken: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_FRAMES))

    def add(self, seconds: float) -> None:
        """Once more."""
        self.taken.append(seconds)

    def percentile(self, share: float) -> float | None:
        """The time that *share* of them did not pass (nearest rank); None: no time."""
        if not self.taken:
            return None
        rank = math.ceil(share * len(self.taken))
        return sorted(self.taken)[max(0, rank - 1)]


class RefreshRate:
    """Looks a second: chosen by a person, or fitting to the terminal."""

    def __init__(self, chosen: float | None, environment: Mapping[str, str]) -> None:
        """A pace to begin with.

        Args:
            chosen: one of `RATES`; None: as the terminal allows.
            environment: says whether it is a remote one.
        """
        is_remote = bool(environment.get("SSH_CONNECTION"))
        self._at = RATES.index(chosen or (REMOTE if is_remote else USUAL))
        self._is_chosen = chosen is not None
        self.polls = Timings()
        self.frames = Timings()

    @property
    def rate(self) -> float:
        """Looks a second."""
        return RATES[self._at]

    def step(self, by: int) -> None:
        """More often or less, because a person wants so."""
        self._at = min(len(RATES) - 1, max(0, self._at + by))
        self._is_chosen = True

    def is_relieved(self) -> bool:
        """Whether frames took so long that it has just become slower."""
        median = self.frames.percentile(0.5)
        if self._is_chosen or self.rate <= REMOTE or median is None:
            return False
        if len(self.frames.taken) < ENOUGH or median <= SLOW_S:
            return False
        self._at = RATES.index(REMOTE)
        return True


@runtime_checkable
class RefreshingScreen(Protocol):
    """A screen that is told when to look again; it owns no timer."""

    def poll(self) -> None:
        """Look, and show what has changed."""


@runtime_checkable
class FilteringScreen(Protocol):
    """A screen that can be told what to let through."""

    def filter_by(self, expression: str) -> None:
        """Let through what an expression of `store.query` does."""

    def open_task(self, number: int) -> None:
        """Show one of them."""


_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 3
"""For a terminal to be set right; one that takes nothing more is given up."""
_KILLED = 128
"""A shell's exit code of what a signal ended, less the signal's number."""


class TerminalApp(App[str]):
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
        theme: str = COLOUR_THEMES[0].name,
        pace: RefreshRate | None = None,
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
        for palette in COLOUR_THEMES:
            self.register_theme(palette.theme())
        self.theme = theme
        self.pace = pace or RefreshRate(None, {})
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
            for signal_number in _ENDINGS:
                # not the loop's own: it may be waiting for a terminal that is stuck
                signal.signal(signal_number, partial(self._end, loop))

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
        self._timer = self.set_interval(1 / self.pace.rate, self._poll)

    def _poll(self) -> None:
        """The uppermost screen that shows something alive looks again."""
        if self.pace.is_relieved():
            self.keep_pace()
            self._notify_pace("this terminal is slow; ")
        for screen in reversed(self.screen_stack):
            if isinstance(screen, RefreshingScreen):
                begun = self._clock.monotonic()
                screen.poll()
                self.pace.polls.add(self._clock.monotonic() - begun)
                return

    async def on_event(self, event: Event) -> None:
        """Keys after the one that leaves find no screen any more."""
        if not (self._exit and isinstance(event, InputEvent)):
            await super().on_event(event)

    def action_rate(self, by: int) -> None:
        """Look more often, or less."""
        self.pace.step(by)
        self.keep_pace()
        self._notify_pace()

    def _notify_pace(self, reason: str = "") -> None:
        notice = f"{reason}{self.pace.rate:g} looks a second"
        self.notify(notice, timeout=2, markup=False)

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
    """A line for each fact; none of them tells what a run is about.

    Args:
        app: the monitor.
        folder: of the run that is watched.
        seen: that run.
        is_read_only: whether it was told to offer nothing that changes a run.
    """
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
        "refresh": f"{app.pace.rate:g} looks a second",
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
    """Half of the latest times, and nearly all of them."""
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
    """A screen that can say which tasks a retry would be about."""

    @property
    def task_filter(self) -> str:
        """A filter; empty: the failed ones."""
        ...
