"""The screens about one run, each a key away from all others: one table.

A place keeps its screen while its run is watched: whoever comes back finds the filter,
the cursor and the order that were left there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.screen import Screen

from tui.screens.compare import CompareScreen
from tui.screens.events import EventsScreen
from tui.screens.metrics import MetricsScreen
from tui.screens.tasks import TasksScreen
from tui.watched import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A screen about the run that is watched."""

    name: str
    key: str
    title: str  #: in the line of keys and in the palette
    about: str  #: in the palette
    make: Callable[[Watched], Screen[None]]


TASKS = Place(
    name="tasks",
    key="t",
    title="Tasks",
    about="List the run's tasks",
    make=TasksScreen,
)
EVENTS = Place(
    name="events",
    key="e",
    title="Events",
    about="Follow the run's events",
    make=EventsScreen,
)
METRICS = Place(
    name="metrics",
    key="m",
    title="Metrics",
    about="Chart the run over time, with its headline metrics so far",
    make=MetricsScreen,
)
COMPARE = Place(
    name="compare",
    key="c",
    title="Compare",
    about="Compare the run with another, metric by metric",
    make=CompareScreen,
)
PLACES = (TASKS, EVENTS, METRICS, COMPARE)
"""In the order of the line of keys."""
