"""The monitor: which screen is in front, how often it looks, and what leaves it.

It reads and never writes; there is one timer, and it belongs to the application.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.timer import Timer

from store.runs import RunFolder, list_runs
from tui import offers
from tui.drawing.glyphs import Glyphs
from tui.drawing.palette import PALETTES, state_variables
from tui.places import PLACES, TASKS, Place
from tui.screens.help import HelpScreen
from tui.screens.looking import Looking
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.screens.tasks import TasksScreen
from tui.watched import Sources, Watched

RATES = (0.5, 1.0, 2.0, 4.0)
"""Looks a second."""


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
        *(
            Binding(place.key, f"go('{place.name}')", place.title, id=place.name)
            for place in PLACES
        ),
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
        self._watched: Watched | None = None
        self._first = run
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
        if self._watched is not None:
            remembered = self._sources.filters.filters
            yield from offers.filters(remembered, self._list_tasks)
        yield from super().get_system_commands(screen)

    def on_mount(self) -> None:
        """The list of runs, and before it the run that was named."""
        self.push_screen(RunsScreen(self._sources.listing, self._glyphs))
        if self._first is not None:
            self._show(self._first)
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
        """Watch a run; the screens about another one go."""
        self.action_runs()
        for place in PLACES:
            if self.is_screen_installed(place.name):
                screen = self.get_screen(place.name)
                self.uninstall_screen(screen)
                screen.remove()
        self._watched = Watched(
            folder=folder, sources=self._sources, glyphs=self._glyphs
        )
        self.push_screen(RunScreen(self._sources.run(folder), self._glyphs))

    def on_runs_screen_opened(self, message: RunsScreen.Opened) -> None:
        """Show the run that was chosen."""
        self._show(message.folder)

    def on_run_screen_tasks_wanted(self, message: RunScreen.TasksWanted) -> None:
        """List those tasks of the run that is shown."""
        self._list_tasks(message.expression)

    def _list_tasks(self, expression: str) -> None:
        """The tasks of the run that is shown, as far as a filter lets them through."""
        screen = self._go(TASKS)
        if isinstance(screen, TasksScreen):
            screen.filter_by(expression)

    def action_go(self, name: str) -> None:
        """To one of the places; from the list of runs, to that of the run there."""
        if isinstance(self.screen, RunsScreen):
            folder = self.screen.current
            if folder is None:
                return
            if self._watched is None or self._watched.folder != folder:
                self._show(folder)
            else:
                self.push_screen(RunScreen(self._sources.run(folder), self._glyphs))
        self._go(next(place for place in PLACES if place.name == name))

    def _go(self, place: Place) -> Screen[Any] | None:
        """Before the run's own screen comes that of a place, made if need be."""
        if self._watched is None:
            return None
        if not self.is_screen_installed(place.name):
            self.install_screen(place.make(self._watched), place.name)
        screen = self.get_screen(place.name)
        if self.screen is not screen:
            self.action_run()
            self.push_screen(screen)
        return screen

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
