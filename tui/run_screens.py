"""Data sources of the screens, and the table of screens about one run.

A screen is kept while its run is watched, with its filter, cursor and order. Screen
modules are imported on first use, so that the monitor starts with one screen, not all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from platformdirs import user_state_path
from textual.screen import Screen

from store.clock import Clock
from store.runs import RunFolder
from tui.control.commands import CommandSender, control_of
from tui.render.glyphs import Glyphs
from tui.sources.command import ChildProcess, CommandAnswers, CommandRunner
from tui.sources.command_log import FolderRequests, RequestSource
from tui.sources.config import ConfigSource, FolderConfig
from tui.sources.events import EventSource, LogEvents
from tui.sources.filters import FilterFile, FilterMemory
from tui.sources.headline import ChildHeadline, HeadlineSource
from tui.sources.history import HistorySource
from tui.sources.log_history import LogHistory
from tui.sources.run_list import FolderRuns, RunListSource
from tui.sources.run_snapshot import RunSource, SnapshotSource
from tui.sources.tasks import LogTasks, TaskSource


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSources:
    """Data sources of the screens: logs, or a test's data.

    The user of a source closes it.
    """

    listing: RunListSource
    run: Callable[[RunFolder], SnapshotSource]
    tasks: Callable[[RunFolder], TaskSource]
    events: Callable[[RunFolder], EventSource]
    config: Callable[[RunFolder], ConfigSource]
    clock: Clock
    filters: FilterMemory = field(default_factory=FilterMemory)
    requests: Callable[[RunFolder], RequestSource] = FolderRequests
    control: Callable[[RunFolder], CommandSender | None] = lambda _: None
    """Creates the command sender of a run; by default commands are disabled."""
    is_read_only: bool = False  #: commands are disabled for all runs
    child: Callable[[], CommandRunner] = ChildProcess
    answers: CommandAnswers = field(default_factory=CommandAnswers)  #: of all children
    history: Callable[[RunFolder, Clock], HistorySource] = LogHistory
    headline: Callable[[RunFolder, CommandRunner, CommandAnswers], HeadlineSource] = (
        ChildHeadline
    )

    @classmethod
    def of(
        cls, runs_dir: Path, clock: Clock, *, is_read_only: bool = False
    ) -> MonitorSources:
        """Create the sources for a folder's runs."""
        return cls(
            listing=FolderRuns(runs_dir, clock),
            run=partial(RunSource, clock=clock),
            tasks=LogTasks,
            events=LogEvents,
            clock=clock,
            filters=FilterFile(user_state_path("siftlog") / "filters.json"),
            config=FolderConfig,
            control=partial(control_of, clock=clock, is_read_only=is_read_only),
            is_read_only=is_read_only,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRun:
    """One run, and what its screens need."""

    folder: RunFolder
    sources: MonitorSources
    glyphs: Glyphs
    control: CommandSender | None = None  #: None: read-only


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScreenEntry:
    """A screen about the watched run."""

    name: str
    key: str
    title: str  #: title in the line of keys and in the palette
    about: str  #: description in the palette
    screen: str  #: location of its class, imported on first use
    is_in_key_line: bool = True  #: shown in the line of keys

    def make(self, watched: WatchedRun) -> Screen[None]:
        """Create the screen for a run."""
        module, _, name = self.screen.partition(":")
        screen: Screen[None] = getattr(importlib.import_module(module), name)(watched)
        return screen


TASKS = RunScreenEntry(
    name="tasks",
    key="t",
    title="Tasks",
    about="List the run's tasks",
    screen="tui.screens.tasks:TasksScreen",
)
EVENTS = RunScreenEntry(
    name="events",
    key="e",
    title="Events",
    about="Follow the run's events",
    screen="tui.screens.events:EventsScreen",
)
METRICS = RunScreenEntry(
    name="metrics",
    key="m",
    title="Metrics",
    about="Chart the run over time, with its headline metrics so far",
    screen="tui.screens.metrics:MetricsScreen",
)
COMPARE = RunScreenEntry(
    name="compare",
    key="c",
    title="Compare",
    about="Compare the run with another, metric by metric",
    screen="tui.screens.compare:CompareScreen",
)
COMMANDS = RunScreenEntry(
    name="asked",
    key="a",
    title="Commands log",
    about="Show control commands and their outcome",
    screen="tui.screens.commands:CommandsScreen",
    is_in_key_line=False,
)
CONFIG = RunScreenEntry(
    name="config",
    key="i",
    title="Config",
    about="Show how the run was set up",
    screen="tui.screens.config:ConfigScreen",
    is_in_key_line=False,
)
RUN_SCREENS = (TASKS, EVENTS, METRICS, COMPARE, COMMANDS, CONFIG)
"""In the order of the line of keys."""
