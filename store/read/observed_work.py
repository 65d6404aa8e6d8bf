"""Reads what a run has shown of its speed: active minutes, latencies, calls, limits.

`store.read.time_left` forecasts from it.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Final, Protocol

from store.database import SQL, is_union
from store.events import RunPaused
from store.fold_state import LOG_RATIO, US_PER_MINUTE, US_PER_S
from store.tables import recorded_rows

MEMORY_S: Final = 90.0
"""Minimum active time in which the weight of a minute halves: the time constant of
every speed that the forecast uses."""
MEMORY_SHARE: Final = 0.5
"""That time as a share of the run's active time."""
LATEST_S: Final = 45.0
"""The time constant of what must follow a change of stage or speed."""

SHORT_S: Final = 20.0
"""Active time from which the speed of a partial minute says something."""

CHANGED: Final = (2.0, 4.0)
"""Standard errors between two speeds: a change is not seen below, and sure above."""
FEWEST_S: Final = 15.0
FEWEST_TASKS: Final = 10.0
"""Active time and tasks after a change from which it counts: an outage that lasts is no
new speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A period without work: a pause, or no process."""

    begin_us: int
    end_us: int | None  #: None: it lasts
    model: str | None = None  #: that it is a pause of; None: of the whole run


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTime:
    """Latencies of the answers of one stage and model."""

    n: int
    mean_s: float
    spread: float = 0.0  #: standard deviation of the logarithm


def work_breaks(conn: sqlite3.Connection) -> tuple[Break, ...]:
    """Return the periods without work, ascending, overlaps merged.

    Those of the whole run are first, then those of each paused model.
    """
    periods: dict[str | None, list[Break]] = {None: []}
    paused_us: dict[str | None, int] = {}
    for row in recorded_rows(conn, SQL["marked"], ("run_paused", 0, -1)):
        event = row.event
        if not isinstance(event, RunPaused) or event.stage:
            continue
        model = event.model
        if event.paused:
            paused_us.setdefault(model, row.ts_us)
        elif model in paused_us:
            pause = Break(begin_us=paused_us.pop(model), end_us=row.ts_us, model=model)
            periods.setdefault(model, []).append(pause)
    for model, begin_us in paused_us.items():
        pause = Break(begin_us=begin_us, end_us=None, model=model)
        periods.setdefault(model, []).append(pause)
    if not is_union(conn):  # whose logs take turns in its events
        periods[None] += [
            Break(
                begin_us=conn.execute(SQL["worked_before"], (row.seq,)).fetchone()[0],
                end_us=row.ts_us,
            )
            for row in recorded_rows(conn, SQL["marked"], ("run_resumed", 0, -1))
        ]
    return tuple(period for group in periods.values() for period in _merged(group))


def _merged(breaks: Iterable[Break]) -> list[Break]:
    """Return breaks ascending, apart from each other."""
    merged: list[Break] = []
    for period in sorted(breaks, key=attrgetter("begin_us")):
        last = merged[-1] if merged else None
        if last is not None and last.end_us is None:
            break
        if last is None or last.end_us is None or period.begin_us > last.end_us:
            merged.append(period)
        else:
            latest = None if period.end_us is None else max(period.end_us, last.end_us)
            merged[-1] = replace(last, end_us=latest)
    return merged


def call_times(conn: sqlite3.Connection) -> dict[tuple[str, str], CallTime]:
    """Return the latencies of answers by stage and model."""
    times = {}
    for stage, model, n, total, squares in conn.execute(SQL["call_times"]):
        mean = total / n
        # of a logarithmic normal distribution, from the logarithms' mean and variance
        variance = max(0.0, squares / n - mean * mean) * LOG_RATIO**2
        times[stage, model] = CallTime(
            n=n,
            mean_s=math.exp((mean + 0.5) * LOG_RATIO + variance / 2) / 1000,
            spread=math.sqrt(variance),
        )
    return times


class MinuteSpeed(Protocol):
    """The fields of `store.read.live.MinuteRow` that the forecast needs."""

    @property
    def t(self) -> int:
        """Minutes since 1970 UTC."""
        ...

    @property
    def stage(self) -> str:
        """The stage's name."""
        ...

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def started(self) -> int:
        """Attempts that started."""
        ...

    @property
    def ended(self) -> int:
        """Tasks that ended."""
        ...

    @property
    def retried(self) -> int:
        """Attempts that led to another one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimit:
    """The limits in force for a model, learned ones included."""

    concurrency: int  #: calls at a time
    rpm: float | None  #: requests per minute
    ceiling: int | None = None  #: calls at a time that the user allows; None: unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A minute and how much it counts."""

    active_s: float
    weight: float


def steadiness(
    minutes: Mapping[int, Remembered], by_minute: Mapping[int, float]
) -> float:
    """Return how much faster the minutes were that most work was done in; 1: alike.

    The mean of the minutes' speeds by work is divided by that by time. An outage and a
    limiter's climb from few slots are over sooner than the memory of them.
    """
    counted = [
        (minute.weight, minute.active_s, max(0.0, by_minute.get(t, 0.0)))
        for t, minute in minutes.items()
        if minute.active_s > SHORT_S
    ]
    work = sum(weight * n for weight, _, n in counted)
    if not work:
        return 1.0
    by_work = sum(weight * n * n / s for weight, s, n in counted) / work
    return by_work * sum(weight * s for weight, s, _ in counted) / work


def steady_minutes(
    minutes: Mapping[int, Remembered], by_minute: Mapping[int, float]
) -> Mapping[int, Remembered]:
    """Return the minutes with less weight before a significant change of the speed.

    It is an adaptive window (Bifet and Gavalda 2007, "Learning from time-changing data
    with adaptive windowing") whose edge is gradual, so that a forecast does not jump.
    Counts are taken as those of a Poisson process.
    """
    steady = dict(minutes)
    times = sorted(minutes)
    while change := _change(
        [(minutes[t].active_s, by_minute.get(t, 0.0)) for t in times]
    ):
        at, errors = change
        times = times[at:]
        low, high = CHANGED
        counts = max(0.0, (high - errors) / (high - low))
        for t, minute in steady.items():
            if t < times[0]:
                steady[t] = replace(minute, weight=minute.weight * counts)
    return steady


def _change(counts: Sequence[tuple[float, float]]) -> tuple[int, float] | None:
    """Return where the speed changed most, and by how many standard errors.

    Args:
        counts: seconds and tasks of each minute, ascending.
    """
    all_s, every = sum(s for s, _ in counts), sum(n for _, n in counts)
    seconds = tasks = 0.0
    change: tuple[int, float] | None = None
    for at, (s, n) in enumerate(counts[:-1], 1):
        seconds, tasks = seconds + s, tasks + n
        later_s, later = all_s - seconds, every - tasks
        if not seconds or later_s < FEWEST_S or later < FEWEST_TASKS:
            continue
        error = math.sqrt(every / all_s * (1 / seconds + 1 / later_s))
        errors = abs(later / later_s - tasks / seconds) / error
        if errors > (change[1] if change else CHANGED[0]):
            change = at, errors
    return change


def total_s(minutes: Mapping[int, Remembered]) -> float:
    """Return the active seconds of some minutes by their weights."""
    return sum(minute.weight * minute.active_s for minute in minutes.values())


def total(minutes: Mapping[int, Remembered], by_minute: Mapping[int, float]) -> float:
    """Return the sum of a figure over some minutes by their weights."""
    return sum(minute.weight * by_minute.get(t, 0.0) for t, minute in minutes.items())


@dataclass(frozen=True, kw_only=True)
class ObservedWork:
    """What a run has shown of its speed."""

    rows: Sequence[MinuteSpeed]  #: of the last hour, ascending
    now_us: int
    started_us: int
    breaks: Sequence[Break] = ()  #: of the run and of models, each group ascending
    call_times: Mapping[tuple[str, str], CallTime]  #: by stage and model
    running: Mapping[tuple[str, str], int]  #: calls in flight, by stage and model
    limits: Mapping[str, ModelLimit]  #: by model

    def active_s(self, begin_us: int, end_us: int) -> float:
        """Return the time without breaks between two moments, in seconds."""
        passed = end_us - begin_us
        for pause in self.breaks:
            if pause.model is not None:
                continue
            until_us = end_us if pause.end_us is None else min(end_us, pause.end_us)
            passed -= max(0, until_us - max(begin_us, pause.begin_us))
        return max(0.0, passed / US_PER_S)

    def of_model(self, model: str) -> ObservedWork:
        """Return the same with pauses of *model* as breaks."""
        if not any(period.model == model for period in self.breaks):
            return self
        counted = [period for period in self.breaks if period.model in {None, model}]
        return replace(
            self, breaks=_merged(replace(period, model=None) for period in counted)
        )

    @cached_property
    def elapsed_s(self) -> float:
        """Active time since the start."""
        return self.active_s(self.started_us, self.now_us)

    @cached_property
    def minutes(self) -> Mapping[int, tuple[float, float]]:
        """Active seconds and mean age of each minute of the last hour."""
        last = self.now_us // US_PER_MINUTE
        oldest = min((row.t for row in self.rows), default=last)
        first = max(self.started_us // US_PER_MINUTE, oldest)
        minutes, age_s = {}, 0.0
        for t in range(last, first - 1, -1):
            active = self.active_s(
                max(self.started_us, t * US_PER_MINUTE),
                min(self.now_us, (t + 1) * US_PER_MINUTE),
            )
            minutes[t] = active, age_s + active / 2
            age_s += active
        return minutes

    def remembered(self, half_s: float) -> dict[int, Remembered]:
        """Return these minutes with weights that halve in *half_s* seconds of age."""
        return {
            t: Remembered(active_s=active_s, weight=0.5 ** (age_s / half_s))
            for t, (active_s, age_s) in self.minutes.items()
        }

    @cached_property
    def usual(self) -> Mapping[int, Remembered]:
        """The minutes from which speeds are measured."""
        return self.remembered(max(MEMORY_S, MEMORY_SHARE * self.elapsed_s))

    @cached_property
    def latest(self) -> Mapping[int, Remembered]:
        """The minutes that show what has just changed."""
        return self.remembered(LATEST_S)
