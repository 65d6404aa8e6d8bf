"""The monitor: which screen is in front, how often it looks, and what leaves it.

It reads and never writes; there is one timer, and it belongs to the application.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.timer import Timer

from store.clock import Clock
from store.runs import RunFolder, list_runs
from tui import offers
from tui.glyphs import Glyphs
from tui.listing import FolderListing, Listing
from tui.palette import PALETTES, state_variables
from tui.screens.help import HelpScreen
from tui.screens.looking import Looking
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.screens.tasks import TasksScreen
from tui.source import RunSource, Source
from tui.task_source import LogTasks, TaskSource

RATES = (0.5, 1.0, 2.0, 4.0)
"""Looks a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the screens read: logs, or what a test has made."""

    listing: Listing
    run: Callable[[RunFolder], Source]
    tasks: Callable[[RunFolder], TaskSource]
    clock: Clock

    @classmethod
    def of(cls, runs_dir: Path, clock: Clock) -> Sources:
        """The logs of a folder's runs."""
        return cls(
            listing=FolderListing(runs_dir, clock),
            run=partial(RunSource, clock=clock),
            tasks=LogTasks,
            clock=clock,
        )


class Monitor(App[str]):
    """Watches runs; leaving it changes nothing."""

    CSS_PATH = "watch.tcss"
    TITLE = "siftlog"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as textual declares it
        (0, "-tiny"),
        (80, "-small"),
        (100, "-middle"),
        (120, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (24, "-low")]  # noqa: RUF012 - likewise
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "detach", "Detach", id="detach"),
        Binding("ctrl+c", "detach", show=False, id="interrupt", priority=True),
        Binding("colon", "command_palette", "Commands", id="commands"),
        Binding("question_mark", "help", "Help", id="help"),
        Binding("1", "runs", "Runs", show=False, id="runs"),
        Binding("2", "run", "Run", show=False, id="run"),
        Binding("plus", "rate(1)", "Look more often", show=False, id="faster"),
        Binding("minus", "rate(-1)", "Look less often", show=False, id="slower"),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False, id="suspend"),
    ]

    def __init__(
        self,
        sources: Sources,
        *,
        glyphs: Glyphs,
        run: RunFolder | None = None,
        theme: str = PALETTES[0].name,
        rate: float = 2.0,
    ) -> None:
        """A monitor that has not begun.

        Args:
            sources: where its screens read.
            glyphs: the signs that the terminal can show.
            run: the run to begin with; None: the list.
            theme: the colours to begin with.
            rate: looks a second, one of `RATES`.
        """
        super().__init__()
        for palette in PALETTES:
            self.register_theme(palette.theme())
        self.theme = theme
        self._sources = sources
        self._glyphs = glyphs
        self._folder = run
        self._rate = RATES.index(rate)
        self._timer: Timer | None = None

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of the states in themes that are not ours."""
        return dict(state_variables(self.current_theme))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the command palette offers."""
        yield from offers.runs(list_runs(self._sources.listing.runs_dir), self._show)
        if isinstance(screen, RunScreen):
            yield from offers.tasks(screen.snapshot, self._list_tasks)
        yield from super().get_system_commands(screen)

    def on_mount(self) -> None:
        """The list of runs, and before it the run that was named."""
        self.push_screen(RunsScreen(self._sources.listing, self._glyphs))
        if self._folder is not None:
            self._show(self._folder)
        self._pace()

    def _pace(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(1 / RATES[self._rate], self._look)

    def _look(self) -> None:
        """The uppermost screen that shows a run looks again."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, Looking):
                screen.look()
                return

    def _show(self, folder: RunFolder) -> None:
        self._folder = folder
        self.action_runs()
        self.push_screen(RunScreen(self._sources.run(folder), self._glyphs))

    def on_runs_screen_opened(self, message: RunsScreen.Opened) -> None:
        """Show the run that was chosen."""
        self._show(message.folder)

    def on_run_screen_tasks_wanted(self) -> None:
        """List the tasks of the run that is shown."""
        self._list_tasks("")

    def _list_tasks(self, expression: str) -> None:
        """The tasks of the run that is shown, as far as a filter lets them through."""
        if self._folder is not None:
            source, clock = self._sources.tasks(self._folder), self._sources.clock
            self.push_screen(
                TasksScreen(source, self._glyphs, clock, expression=expression)
            )

    def action_runs(self) -> None:
        """Back to the list of runs."""
        self._back_to(RunsScreen)

    def action_run(self) -> None:
        """Back to the run."""
        self._back_to(RunScreen)

    def _back_to(self, kind: type[Screen[None]]) -> None:
        """Leave what stands before a screen of that kind, where there is one."""
        if any(isinstance(screen, kind) for screen in self.screen_stack):
            while not isinstance(self.screen, kind):
                self.pop_screen()

    def action_help(self) -> None:
        """The keys of the screen in front."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen.active_bindings.values()))

    def action_rate(self, by: int) -> None:
        """Look more often, or less."""
        self._rate = min(len(RATES) - 1, max(0, self._rate + by))
        self._pace()
        self.notify(f"{RATES[self._rate]:g} looks a second", timeout=2, markup=False)

    def action_detach(self) -> None:
        """Leave; say once that the run does not."""
        screens = [s for s in self.screen_stack if isinstance(s, RunScreen)]
        shown = screens[0].snapshot if screens else None
        said = ""
        if shown is not None and not shown.is_ended:
            said = f"Detached; {shown.status.run_id} goes on."
        self.exit(said)
