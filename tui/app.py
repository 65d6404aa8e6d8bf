"""The monitor application: its screens and the navigation between them.

It only reads runs; `tui.terminal.shell` handles the terminal, and
`tui.control.key_bindings` commands to a run.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from store.printable import printable
from store.runs import RunFolder, list_runs
from tui.control.key_bindings import TerminalControlApp
from tui.render.colours import COLOUR_THEMES
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.render.headline import headline_by_model
from tui.render.sentences import farewell
from tui.run_screens import (
    RUN_SCREENS,
    TASKS,
    MonitorSources,
    RunScreenEntry,
    WatchedRun,
)
from tui.screens import palette
from tui.screens.base import PageScreen
from tui.screens.palette import HelpScreen, MonitorPalette, PaletteCommands
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.terminal.export import copied, file_name, picture_of, save_text, text_of
from tui.terminal.shell import FilteringScreen, ItemScreen, RefreshRate, about
from tui.widgets.headline import HeadlinePanel
from tui.widgets.keys import keys_of


class Monitor(TerminalControlApp):
    """Watches runs; quitting it changes nothing."""

    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {PaletteCommands}  # noqa: RUF012 - as textual declares it
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - likewise
        (0, "-tiny"),
        (80, "-small"),
        (100, "-middle"),
        (120, "-wide"),
        (150, "-broad"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (24, "-low")]  # noqa: RUF012 - likewise
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "q",
            "detach",
            "Quit",
            tooltip="The run continues",
            id="detach",
        ),
        Binding("colon,ctrl+p", "command_palette", "Commands", id="commands"),
        Binding("question_mark", "help", "Help", id="help"),
        Binding("1", "runs", "Runs", show=False, id="runs"),
        Binding("2", "run", "Run", show=False, id="run"),
        *(
            Binding(
                entry.key,
                f"go('{entry.name}')",
                entry.title,
                show=entry.is_in_key_line,
                tooltip=entry.about,
                id=entry.name,
            )
            for entry in RUN_SCREENS
        ),
        Binding(
            "l",
            "label",
            "Label",
            tooltip="Label the task's item, or the items of the run",
            id="label",
        ),
        Binding("plus", "rate(1)", "Look more often", show=False, id="faster"),
        Binding("minus", "rate(-1)", "Look less often", show=False, id="slower"),
    ]

    def __init__(
        self,
        sources: MonitorSources,
        *,
        glyphs: Glyphs,
        run: RunFolder | None = None,
        theme: str = COLOUR_THEMES[0].name,
        pace: RefreshRate | None = None,
        has_mouse: bool = True,
    ) -> None:
        """Create the monitor.

        Args:
            sources: data sources of the screens.
            glyphs: the characters that the terminal supports.
            run: the initial run; None: the list.
            theme: the initial theme.
            pace: the refresh rate; None: the default.
            has_mouse: whether the application handles the mouse.
        """
        super().__init__(
            sources.clock, glyphs=glyphs, theme=theme, pace=pace, has_mouse=has_mouse
        )
        self._sources = sources
        self._watched: WatchedRun | None = None
        self._first = run

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the commands of the palette."""
        keys = keys_of(screen.active_bindings.values(), self.get_key_display)
        yield from palette.key_commands(self, keys)
        if self._watched is not None:
            yield from palette.task_commands(self.seen, self._list_tasks)
            yield SystemCommand(
                "Export answers", "How to write them as a file", self.action_export
            )
            yield SystemCommand(
                "Copy the report's path", "A page for a browser", self.action_report
            )
        yield from palette.run_commands(self.runs_offered(), self._show)
        if self._watched is not None:
            remembered = self._sources.filters.filters
            yield from palette.filter_commands(remembered, self._list_tasks)
        yield from self.keyless()
        yield SystemCommand(
            "Screenshot", "As SVG and as text, in this folder", self.action_capture
        )
        yield SystemCommand(
            "About", "Versions, terminal, timings: for a report", self.action_about
        )
        yield SystemCommand(
            "Signs: all that there are" if self._glyphs.plain else "Signs: ASCII only",
            "Draw with other signs",
            self.action_signs,
        )
        palettes = (palette.name for palette in COLOUR_THEMES)
        terminal = (name for name in self.available_themes if name.startswith("ansi"))
        names = (*palettes, *sorted(terminal))
        yield from palette.theme_commands(self.available_themes, names, self._use_theme)

    def commands_for(self, typed: str) -> Iterable[SystemCommand]:
        """Yield the commands that typed words name: a task by its number."""
        number = palette.task_number(typed)
        if number is not None:
            do = partial(self.run_action, f"app.open_task({number})")
            yield SystemCommand(f"Task {number}", "Open this task", do)

    def runs_offered(self) -> list[RunFolder]:
        """Return the runs in the command palette."""
        return list_runs(self._sources.listing.runs_dir)

    def on_mount(self) -> None:
        """Show the given run, or the list of runs."""
        self._open(self._first)

    def _open(self, run: RunFolder | None) -> None:
        if run is None:
            self.action_runs()
        else:
            self._show(run)

    def _show(self, folder: RunFolder) -> None:
        """Watch a run; removes the screens of another one."""
        self._leave()
        self._uninstall_run_screens()
        self._watched = WatchedRun(
            folder=folder,
            sources=self._sources,
            glyphs=self._glyphs,
            control=self._sources.control(folder),
        )
        self.ask_of(self._watched)
        self._push_run(self._watched)

    def _push_run(self, watched: WatchedRun) -> None:
        sources, folder = watched.sources, watched.folder
        headline = HeadlinePanel(
            sources.headline(folder, sources.child(), sources.answers),
            sources.clock,
            self._glyphs,
            "so-far",
            headline_by_model,
        )
        self.push_screen(
            RunScreen(
                sources.run(folder),
                self._glyphs,
                is_read_only=watched.control is None,
                headline=headline,
            )
        )

    def _uninstall_run_screens(self) -> None:
        for entry in RUN_SCREENS:
            if self.is_screen_installed(entry.name):
                screen = self.get_screen(entry.name)
                self.uninstall_screen(screen)
                screen.remove()

    def on_runs_screen_opened(self, message: RunsScreen.Opened) -> None:
        """Show the chosen run."""
        self._show(message.folder)

    def on_run_screen_tasks_requested(self, message: RunScreen.TasksRequested) -> None:
        """List the requested tasks of the current run."""
        self._list_tasks(message.expression)

    def _list_tasks(self, expression: str) -> None:
        """List the current run's tasks that match a filter."""
        screen: object = self._go(TASKS)
        if isinstance(screen, FilteringScreen):
            screen.filter_by(expression)

    def action_open_task(self, number: int) -> None:
        """Show one task of the current run, over the list of tasks."""
        screen: object = self._go(TASKS)
        if isinstance(screen, FilteringScreen):
            screen.open_task(number)

    def action_go(self, name: str) -> None:
        """Go to a screen; from the list of runs, to that of the selected run."""
        if isinstance(self.screen, RunsScreen):
            folder = self.screen.current
            if folder is None:
                return
            if self._watched is None or self._watched.folder != folder:
                self._show(folder)
            else:
                self._push_run(self._watched)
        self._go(next(entry for entry in RUN_SCREENS if entry.name == name))

    def _go(self, entry: RunScreenEntry) -> Screen[Any] | None:
        """Show a screen of the current run over the run screen."""
        if self._watched is None:
            return None
        if not self.is_screen_installed(entry.name):
            self.install_screen(entry.make(self._watched), entry.name)
        screen = self.get_screen(entry.name)
        if self.screen is not screen:
            self.action_run()
            self.push_screen(screen)
        return screen

    def action_label(self) -> None:
        """Label the item of the task in front, or the items of the run."""
        # labels need the job, which the monitor does without
        from tui.labelling.app import label_screen  # noqa: PLC0415

        folder = self._folder_in_front
        if folder is not None:
            screen = self.screen
            items = screen.items if isinstance(screen, ItemScreen) else ()
            self.push_screen(label_screen(folder, items, self._clock, self._glyphs))

    @property
    def _folder_in_front(self) -> RunFolder | None:
        if isinstance(self.screen, RunsScreen):
            return self.screen.current
        return None if self._watched is None else self._watched.folder

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable labels where nothing may be written."""
        if action != "label":
            return super().check_action(action, parameters)
        return None if self._sources.is_read_only else True

    def action_runs(self) -> None:
        """Go back to the list of runs, creating it on first use."""
        if isinstance(self.screen, RunsScreen):
            return
        self._leave()
        if not isinstance(self.screen, RunsScreen):
            listing, is_read_only = self._sources.listing, self._sources.is_read_only
            self.push_screen(
                RunsScreen(listing, self._glyphs, is_read_only=is_read_only)
            )
        screen: object = self.screen
        if self._watched is not None and isinstance(screen, RunsScreen):
            screen.go_to(self._watched.folder)

    def _leave(self) -> None:
        """Pop screens above the list of runs, or all but the first."""
        while len(self.screen_stack) > 1 and not isinstance(self.screen, RunsScreen):
            self.pop_screen()

    def action_run(self) -> None:
        """Go back to the run."""
        if any(isinstance(screen, RunScreen) for screen in self.screen_stack):
            while not isinstance(self.screen, RunScreen):
                self.pop_screen()

    def action_command_palette(self) -> None:
        """Open the command palette."""
        if not isinstance(self.screen, MonitorPalette):
            self.push_screen(MonitorPalette())

    def action_help(self) -> None:
        """Show the keys of the current screen."""
        if not isinstance(self.screen, HelpScreen):
            keys = keys_of(self.screen.active_bindings.values(), self.get_key_display)
            self.push_screen(HelpScreen(keys, self._glyphs))

    def action_about(self) -> None:
        """Show versions and diagnostics."""
        folder = None if self._watched is None else self._watched.folder
        is_read_only = self._sources.is_read_only
        text = about(self, folder, self.seen, is_read_only=is_read_only)
        heading = "ABOUT this monitor · y copies it for a report"
        self.push_screen(PageScreen("about", heading, text, self._glyphs))

    def on_page_screen_write(self, message: PageScreen.Write) -> None:
        """Write a page to a file."""
        self.keep(message.label, {"txt": message.text})

    def action_export(self) -> None:
        """Show the command that exports answers: the monitor writes none."""
        if self._watched is not None:
            command = f"siftlog export {shlex.quote(self._watched.folder.run_id)}"
            self.copy_to_clipboard(command)
            message = f"{command}\nwrites the answers as a file · {copied('line')}"
            self.notify(printable(message), title="Export", markup=False)

    def action_report(self) -> None:
        """Copy the path of the newest report, or say how to make one."""
        seen = self.seen
        if seen is None:
            return
        report = None if seen.result is None else seen.result.report
        run = shlex.quote(seen.status.run_id)
        if report is not None:
            path = str(report.absolute())
            self.copy_to_clipboard(path)
            self.notify(
                printable(f"{path}\n{copied('path')}"), title="Report", markup=False
            )
        elif seen.is_ended:
            self.notify(f"There is no report yet: siftlog report {run}", markup=False)
        else:
            words = f"The run goes on: a report of what is done: siftlog score {run}"
            self.notify(words, markup=False)

    def action_capture(self) -> None:
        """Capture the screen as a picture and as text, after the next redraw."""
        self.call_after_refresh(self._capture)

    def _capture(self) -> None:
        screen = self.screen
        label = type(screen).__name__.removesuffix("Screen").lower()
        self.keep(label, {"svg": picture_of(self), "txt": text_of(screen)})

    def keep(self, label: str, files: Mapping[str, str]) -> None:
        """Write files, and show their location: here, or in the browser's folder.

        Args:
            label: label in their names.
            files: content by file extension.
        """
        run = None if self._watched is None else self._watched.folder.run_id
        now_us = self._clock.now_us()
        names = []
        for ending, text in files.items():
            name = file_name(run, label, now_us, ending)
            problem = save_text(self, text, name)
            if problem:
                self.notify(printable(problem), severity="error", markup=False)
                return
            names.append(name if self.is_web else str(Path.cwd() / name))
        self.notify(printable("\n".join(names)), title="Written", markup=False)

    def action_signs(self) -> None:
        """Redraw everything in ASCII, or with all characters."""
        self._glyphs = UNICODE if self._glyphs.plain else ASCII
        folder = None if self._watched is None else self._watched.folder
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self._uninstall_run_screens()
        self._watched = None
        self._open(folder)

    def _use_theme(self, name: str) -> None:
        self.theme = name

    def action_detach(self) -> None:
        """Quit; show that the run continues."""
        self.exit(farewell(self.seen))
