"""The screens about one run, each a key away from all others: one table.

A place keeps its screen while its run is watched: whoever comes back finds the filter,
the cursor and the order that were left there. Modules of places are imported when they
are first gone to: whoever starts the monitor waits for one screen, not for all.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from textual.screen import Screen

from tui.watched import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A screen about the run that is watched."""

    name: str
    key: str
    title: str  #: in the line of keys and in the palette
    about: str  #: in the palette
    screen: str  #: where its class is, imported with the first visit
    is_shown: bool = True  #: in the line of keys, which has no room for all

    def make(self, watched: Watched) -> Screen[None]:
        """Its screen, for a run."""
        module, _, name = self.screen.partition(":")
        screen: Screen[None] = getattr(importlib.import_module(module), name)(watched)
        return screen


TASKS = Place(
    name="tasks",
    key="t",
    title="Tasks",
    about="List the run's tasks",
    screen="tui.screens.tasks:TasksScreen",
)
EVENTS = Place(
    name="events",
    key="e",
    title="Events",
    about="Follow the run's events",
    screen="tui.screens.events:EventsScreen",
)
METRICS = Place(
    name="metrics",
    key="m",
    title="Metrics",
    about="Chart the run over time, with its headline metrics so far",
    screen="tui.screens.metrics:MetricsScreen",
)
COMPARE = Place(
    name="compare",
    key="c",
    title="Compare",
    about="Compare the run with another, metric by metric",
    screen="tui.screens.compare:CompareScreen",
)
ASKED = Place(
    name="asked",
    key="a",
    title="Commands log",
    about="Show who asked what of the run, and what became of it",
    screen="tui.screens.commands:CommandsScreen",
    is_shown=False,
)
CONFIG = Place(
    name="config",
    key="i",
    title="Config",
    about="Show how the run was set up",
    screen="tui.screens.config:ConfigScreen",
    is_shown=False,
)
PLACES = (TASKS, EVENTS, METRICS, COMPARE, ASKED, CONFIG)
"""In the order of the line of keys."""
