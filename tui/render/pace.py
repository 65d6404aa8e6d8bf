"""Derives a run's courses over time, for charts: completed tasks, tokens, cost.

Pure. A window begins with the run or an hour ago; of a run that has ended it is the
whole run. Steps are as fine as the figures allow: seconds of a young run, minutes
later. A step that is not over has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from store.fold_state import US_PER_S
from store.read.history import CompletedSecond
from store.read.live import AT_WORK, HOUR, MinuteRow
from tui.render.charts import PlotAxis
from tui.sources.run_snapshot import RunSnapshot

_MINUTE = 60
STEPS = (
    *(1, 2, 5, 10, 15, 20, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 20, 30, 60, 120, 240, 360, 720, 1440)),
)
"""Possible seconds per step; edges are aligned with the clock, so they are stable."""
TASKS_A_STEP = 24
"""Minimum mean number of tasks in a step: below, a curve shows mostly chance."""
LEAST_STEP = 2
"""Minimum seconds of a step."""
YOUNG_S = 10
"""Seconds of observation from which a rate or a chart is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries:
    """Values over time."""

    axis: PlotAxis
    values: tuple[float | None, ...]  #: one per step; None: unknown


@dataclass(frozen=True, slots=True)
class _Window:
    """A time of the run, in seconds since 1970 UTC."""

    begin: int
    end: int

    def step(self, columns: int, least: float = 0.0) -> int:
        """Return the finest step with which it fits, of at least *least* seconds."""
        finest = max((self.end - self.begin) / max(1, columns), least)
        return next((step for step in STEPS if step >= finest), STEPS[-1])

    def axis(self, step: int) -> PlotAxis | None:
        """Return its whole steps; None: there is none."""
        first, last = -(-self.begin // step), self.end // step
        if last <= first or self.end - self.begin < YOUNG_S:
            return None
        return PlotAxis(first=first * step, width=step, count=last - first)


def _window(snapshot: RunSnapshot, *, is_whole: bool) -> _Window:
    """Return what charts show.

    Args:
        snapshot: the run.
        is_whole: whether to show all of a run that has ended.
    """
    end = (snapshot.worked_until_us if snapshot.is_ended else snapshot.now_us) // (
        US_PER_S
    )
    begin = snapshot.created_us // US_PER_S
    if not (is_whole and snapshot.is_ended):
        begin = max(begin, end - HOUR * _MINUTE)
    return _Window(begin, max(begin, end))


def completed(snapshot: RunSnapshot, columns: int) -> TimeSeries | None:
    """Return the tasks completed per minute.

    Args:
        snapshot: the run.
        columns: maximum number of steps.

    Returns:
        None before the first step is over.
    """
    window = _window(snapshot, is_whole=True)
    step = _fine_step(snapshot, window, columns)
    if step is None:
        step = max(_MINUTE, window.step(columns))
        return _by_minute(snapshot.facts.completed, window, step)
    return _by_second(
        snapshot, window.axis(step), lambda row: row.n, snapshot.facts.completed
    )


def _fine_step(snapshot: RunSnapshot, window: _Window, columns: int) -> int | None:
    """Return a step of less than a minute; None: minutes are fine enough."""
    total = sum(snapshot.facts.completed.values())
    if not total or snapshot.facts.completions is None:
        return None
    # seconds are known of the last events only, and an hour has enough minutes
    mean_s = (window.end - window.begin) / total
    # each step that is added draws a chart again: half the columns are fine enough
    step = window.step(columns // 2, max(LEAST_STEP, TASKS_A_STEP * mean_s))
    return step if step < _MINUTE else None


def _by_minute(
    counted: Mapping[int, float], window: _Window, step: int
) -> TimeSeries | None:
    axis = window.axis(step)
    if axis is None:
        return None
    width = step // _MINUTE
    return TimeSeries(
        axis=axis,
        values=tuple(
            sum(counted.get(minute, 0) for minute in range(first, first + width))
            / width
            for first in _firsts(axis, _MINUTE)
        ),
    )


def _firsts(axis: PlotAxis, unit: int) -> range:
    """Return the start of each step, in units of some seconds."""
    first, width = axis.first // unit, axis.width // unit
    return range(first, first + axis.count * width, width)


def _by_second(
    snapshot: RunSnapshot,
    axis: PlotAxis | None,
    value: Callable[[CompletedSecond], float],
    by_minute: Mapping[int, float],
) -> TimeSeries | None:
    """Join the seconds at the log's end with the minutes before them, per minute."""
    completions = snapshot.facts.completions
    if axis is None or completions is None:
        return None
    step = axis.width
    counted: dict[int, float] = {}
    for row in completions.seconds:
        at = row.second // step
        counted[at] = counted.get(at, 0.0) + value(row)
    since = completions.since_us // US_PER_S
    # the first step may have begun before the first event
    since = max(since, snapshot.created_us // US_PER_S)
    return TimeSeries(
        axis=axis,
        values=tuple(
            counted.get(first // step, 0.0) * _MINUTE / step
            if first >= since
            else by_minute.get(first // _MINUTE)
            for first in _firsts(axis, 1)
        ),
    )


def cost(snapshot: RunSnapshot, columns: int) -> TimeSeries | None:
    """Return dollars per hour over the last hour of work, as `completed` does."""
    window = _window(snapshot, is_whole=False)
    by_row = _summed(snapshot, lambda row: row.cost_usd * _MINUTE)
    step = _fine_step(snapshot, window, columns)
    if step is None:
        return _by_minute(by_row, window, max(_MINUTE, window.step(columns)))
    return _by_second(
        snapshot, window.axis(step), lambda row: row.cost_usd * _MINUTE, by_row
    )


def _summed(
    snapshot: RunSnapshot, value: Callable[[MinuteRow], float]
) -> dict[int, float]:
    summed: dict[int, float] = {}
    for row in snapshot.facts.minutes:
        summed[row.t] = summed.get(row.t, 0.0) + value(row)
    return summed


def by_minute(
    snapshot: RunSnapshot, columns: int, value: Callable[[MinuteRow], float]
) -> TimeSeries | None:
    """Return the mean per minute of a figure of minutes, over the last hour of work.

    Args:
        snapshot: the run.
        columns: maximum number of steps.
        value: the figure of a minute, a stage and a model.

    Returns:
        None before the first minute is over.
    """
    window = _window(snapshot, is_whole=False)
    step = max(_MINUTE, window.step(columns))
    return _by_minute(_summed(snapshot, value), window, step)


def per_second(snapshot: RunSnapshot) -> float | None:
    """Return the tasks completed per second in the first minutes of work.

    None if no process works on the run, or too little was observed.
    """
    completions = snapshot.facts.completions
    if snapshot.state not in AT_WORK or completions is None:
        return None
    since_us = max(
        completions.since_us,
        snapshot.status.signs.phase_us,
        snapshot.now_us - _MINUTE * US_PER_S,
    )
    seconds = (snapshot.now_us - since_us) / US_PER_S
    if seconds < YOUNG_S:
        return None
    n = sum(row.n for row in completions.seconds if row.second * US_PER_S >= since_us)
    return n / seconds


def known(values: Sequence[float | None]) -> bool:
    """Return whether a chart would show anything."""
    return any(value is not None for value in values)
