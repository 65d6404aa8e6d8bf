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
PLACES = (TASKS,)
"""In the order of the line of keys."""
