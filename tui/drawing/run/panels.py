"""The parts of the Run screen: one table of what is drawn, and where its rows lead.

A drawing is a pure function of a snapshot and of the room it may fill, and draws no
more: what does not fit is counted. Text from outside goes through `tui.drawing.clip`;
no markup is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textual.content import Content

from tui.drawing.room import Room
from tui.drawing.run import errors, figures, models, stages
from tui.drawing.run.overview import overview
from tui.sources.sight import Snapshot

Draw: TypeAlias = Callable[[Snapshot, Room], Content]
Goals: TypeAlias = Callable[[Snapshot], Sequence[str]]


def nowhere(snapshot: Snapshot) -> Sequence[str]:
    """Of a part whose rows lead to no tasks."""
    del snapshot
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the screen."""

    name: str
    title: str
    draw: Draw
    goals: Goals = nowhere  #: the filter that each row leads to, in their order
    letter: str = ""  #: leads to it after the key that shows them all


OVERVIEW = Part(name="overview", title="overview", draw=overview, letter="v")
LEFT = (
    Part(
        name="stages",
        title="stages",
        draw=stages.stages,
        goals=stages.goals,
        letter="s",
    ),
    Part(
        name="models",
        title="models, last full minute",
        draw=models.models,
        goals=models.goals,
        letter="m",
    ),
    Part(
        name="errors",
        title="errors, last 10 min and whole run",
        draw=errors.errors,
        goals=errors.goals,
        letter="e",
    ),
)
RIGHT = (
    Part(
        name="goodput",
        title="completed a minute, last hour",
        draw=figures.goodput,
        letter="g",
    ),
    Part(name="latency", title="latency", draw=figures.latencies, letter="l"),
    Part(name="cost", title="cost", draw=figures.cost, letter="c"),
    Part(
        name="oldest",
        title="oldest in flight",
        draw=figures.oldest,
        goals=figures.oldest_goals,
        letter="o",
    ),
)
PARTS = (OVERVIEW, *LEFT, *RIGHT)
"""In the order of the key that leads through them."""
