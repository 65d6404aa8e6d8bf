"""The history as a figure: the mean value of each model, run by run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from jobs.history.history import History
from jobs.history.plot import low
from runner.scorecard import Axis, Figure, LineSeries, Mark, Panel, ReferenceLine

NAMED = 30
"""Runs that are called by their names, at most; more are numbered."""


def figure(own: History) -> Figure:
    """Draw a line for each model, with a rule where other data were searched."""
    measure = own.newest.milestone.measure
    return Figure(
        name="history",
        title=f"{measure.capitalize()} by run",
        caption=f"Mean {measure} over each run's {own.newest.milestone.item}s, oldest "
        "run first. A vertical line stands where other data were searched: runs on its "
        "two sides are not compared.",
        panels=(
            Panel(
                marks=tuple(_marks(own)),
                x=_runs(own),
                y=Axis(label=f"macro {measure}", lo=low(_values(own)), hi=1.0),
            ),
        ),
    )


def _runs(own: History) -> Axis:
    if len(own.runs) > NAMED:
        return Axis(label="run, oldest first", lo=0, hi=len(own.runs) - 1)
    return Axis(names=tuple(run.folder.run_id for run in own.runs))


def _values(own: History) -> list[float]:
    return [value for values in own.series.values() for value in values.values()]


def _marks(own: History) -> Iterator[Mark]:
    places = {run.folder.run_id: place for place, run in enumerate(own.runs)}
    for number, (model, values) in enumerate(own.series.items()):
        yield LineSeries(
            x=tuple(places[run] for run in values),
            y=tuple(values.values()),
            label=model,
            series=number,
            marked=True,
        )
    for place, (before, after) in enumerate(pairwise(own.runs)):
        if before.milestone.data != after.milestone.data:
            yield ReferenceLine(
                way="vertical", at=place + 0.5, label="database changed"
            )
