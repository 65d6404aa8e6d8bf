"""Runs the monitor on a replay: the same screens, with keys to move in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.actions import SkipAction
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from store.errors import NoSuchMoment
from store.printable import printable
from store.runs import RunFolder
from store.time_travel import parse_moment
from tui.app import Monitor
from tui.render.format import count, percent, utc
from tui.render.glyphs import Glyphs
from tui.replay import Replay, format_speed
from tui.run_screens import COMMANDS, COMPARE, RUN_SCREENS, MonitorSources
from tui.sources.command import CommandAnswers, CommandRunner
from tui.sources.headline import ChildHeadline
from tui.terminal.shell import FilteringScreen, RefreshRate
from tui.widgets.filter_field import FilterField
from tui.widgets.panel import TextBlock


class ReplayBar(TextBlock):
    """Shows the state of a replay."""

    DEFAULT_CSS = """
    ReplayBar {
      dock: top; height: 1; padding: 0 1;
      background: $state-waiting; color: $background; text-style: bold;
    }
    """

    def __init__(self, replay: Replay, glyphs: Glyphs) -> None:
        super().__init__("replay", glyphs)
        self._replay = replay

    def on_mount(self) -> None:
        """Draw the bar."""
        self.redraw()

    def on_resize(self, event: events.Resize) -> None:
        """Redraw for the new width."""
        del event
        self.redraw()

    def redraw(self) -> None:
        """Draw the current state."""
        self.say(Content(printable(replay_line(self._replay))))


def replay_line(replay: Replay) -> str:
    """Describe a replay's state and position."""
    span, at_us = replay.playhead.span, replay.moment.at_us
    whole_us = span.end_us - span.begin_us
    share = (at_us - span.begin_us) / whole_us if whole_us else 1.0
    return (
        f"REPLAY {_replay_state(replay)} · {utc(at_us)} · {percent(share)} · "
        f"event {count(replay.moment.seq)} of {count(replay.reel.last)}"
    )


def _replay_state(replay: Replay) -> str:
    if replay.failure:
        return f"stopped: {replay.failure}"
    speed = format_speed(replay.playhead.speed)
    if replay.is_seeking:
        return "seeking"
    if replay.is_over:
        return "at the end"
    return f"paused ({speed})" if replay.playhead.is_paused else speed


class ReplayHeadline(ChildHeadline):
    """Scores the answers up to the displayed moment."""

    def __init__(
        self,
        past: Replay,
        folder: RunFolder,
        child: CommandRunner,
        answers: CommandAnswers,
    ) -> None:
        super().__init__(folder, child, answers)
        self._past = past

    @property
    def command(self) -> tuple[str, ...]:
        """The arguments of the command."""
        return (*super().command, "--at", str(self._past.moment.seq))


_ELSEWHERE = {COMPARE.name, COMMANDS.name}
"""Screens about other runs, or about current commands."""
SOON_S = 0.05
MINUTE_S = 60
SPAN_S = 600


class ReplayMonitor(Monitor):
    """Watches one run in its past; commands are disabled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # freezing a screen would stop only its figures; here time itself stops
        Binding("space", "pause", "Pause", id="replay.pause", priority=True),
        Binding("plus", "speed(1)", "Faster", id="replay.faster"),
        Binding("minus", "speed(-1)", "Slower", id="replay.slower"),
        Binding("full_stop", "step(1)", "Next event", show=False, id="replay.next"),
        Binding("comma", "step(-1)", "Event before", show=False, id="replay.before"),
        Binding(
            "right_square_bracket",
            f"skip({MINUTE_S})",
            "A minute on",
            show=False,
            id="replay.on",
        ),
        Binding(
            "left_square_bracket",
            f"skip(-{MINUTE_S})",
            "A minute back",
            show=False,
            id="replay.earlier",
        ),
        Binding(
            "right_curly_bracket",
            f"skip({SPAN_S})",
            "Ten minutes on",
            show=False,
            id="replay.far-on",
        ),
        Binding(
            "left_curly_bracket",
            f"skip(-{SPAN_S})",
            "Ten minutes back",
            show=False,
            id="replay.far-earlier",
        ),
        Binding(
            "less_than_sign", "first", "To the beginning", show=False, id="replay.first"
        ),
        Binding(
            "greater_than_sign", "last", "To the end", show=False, id="replay.last"
        ),
    ]

    def __init__(
        self,
        sources: MonitorSources,
        past: Replay,
        *,
        glyphs: Glyphs,
        theme: str,
        pace: RefreshRate | None = None,
        has_mouse: bool = True,
    ) -> None:
        """Create the monitor.

        Args:
            sources: sources of the screens, for the past.
            past: the replay.
            glyphs: the characters that the terminal supports.
            theme: the initial theme.
            pace: the refresh rate; None: the default.
            has_mouse: whether the application handles the mouse.
        """
        super().__init__(
            sources,
            glyphs=glyphs,
            run=past.run,
            theme=theme,
            pace=pace,
            has_mouse=has_mouse,
        )
        self._past = past
        self._generation = past.reel.generation

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable actions that lead to other runs, or to the present."""
        if action in {"ask", "runs"}:
            return False
        if action == "go" and parameters[0] in _ELSEWHERE:
            return False
        return super().check_action(action, parameters)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the commands of the palette, with the run's turning points."""
        yield from super().get_system_commands(screen)
        for seq, at_us, kind in self._past.reel.turns:
            yield SystemCommand(
                f"To {kind.replace('_', ' ')}, event {seq}",
                f"At {utc(at_us)}",
                partial(self._then, partial(self._past.seek_event, seq)),
            )

    def commands_for(self, typed: str) -> Iterable[SystemCommand]:
        """Yield the commands that typed words name, including moments."""
        yield from super().commands_for(typed)
        try:
            moment = parse_moment(typed)
        except NoSuchMoment:
            return
        label = f"event {typed}" if moment.seq is not None else typed
        do = partial(self._then, partial(self._past.seek_named, typed))
        yield SystemCommand(f"To {label}", "Go to this moment of the run", do)

    def runs_offered(self) -> list[RunFolder]:
        """Return no runs: they have other time ranges."""
        return []

    def _poll(self) -> None:
        self._past.drive()
        if self._generation != self._past.reel.generation:
            self._generation = self._past.reel.generation
            self._begin_anew()
        with self._past.reel.still:
            super()._poll()
        self._show_replay_bar()
        refusal = self._past.taken_refusal()
        if refusal:
            self.notify(printable(f"{refusal}."), severity="error", markup=False)

    def _begin_anew(self) -> None:
        """Recreate the screens after going back in time."""
        here = next(
            (
                entry
                for entry in RUN_SCREENS
                if self.is_screen_installed(entry.name)
                and self.get_screen(entry.name) in self.screen_stack
            ),
            None,
        )
        if here is None:
            self._show(self._past.run)
            return
        fields = self.get_screen(here.name).query(FilterField)
        typed = [field.value for field in fields]
        self._show(self._past.run)
        screen: object = self._go(here)
        if isinstance(screen, FilteringScreen) and typed:
            screen.filter_by(typed[0])

    def _show_replay_bar(self) -> None:
        """Show the replay's position on the current screen."""
        screen = self.screen
        if isinstance(screen, ModalScreen):
            return
        bars = screen.query(ReplayBar)
        if bars:
            bars.first().redraw()
        else:
            screen.add_class("-replay")
            screen.mount(ReplayBar(self._past, self._glyphs))

    def _then(self, command: Callable[[], None]) -> None:
        """Run a request, and show at once that it is running."""
        command()
        self._follow()

    def _follow(self) -> None:
        """Refresh until a requested position is reached, without waiting for a tick."""
        self._poll()
        if self._past.is_seeking:
            self.set_timer(SOON_S, self._follow)

    def action_pause(self) -> None:
        """Pause the log's time or continue; in a field it is a space."""
        if isinstance(self.focused, Input):
            raise SkipAction
        self._then(self._past.pause)

    def action_speed(self, by: int) -> None:
        """Change the speed."""
        self._then(partial(self._past.faster, by))

    def action_step(self, by: int) -> None:
        """Move by an event."""
        self._then(partial(self._past.step, by))

    def action_skip(self, seconds: int) -> None:
        """Move by a time."""
        self._then(partial(self._past.skip, seconds))

    def action_first(self) -> None:
        """Move to the first event."""
        self._then(partial(self._past.seek_event, 1))

    def action_last(self) -> None:
        """Move to the last event."""
        self._then(partial(self._past.seek_event, self._past.reel.last))

    def action_detach(self) -> None:
        """Quit without a message."""
        self.exit("")


def past_sources(runs_dir: Path, past: Replay) -> MonitorSources:
    """Return the sources of a replay's screens: the past log, with its time."""
    return replace(
        MonitorSources.of(runs_dir, past.clock, is_read_only=True),
        headline=partial(ReplayHeadline, past),
    )
