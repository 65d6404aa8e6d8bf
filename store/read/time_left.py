"""Forecasts how long a run still takes, from its remaining work and its recent speed.

The stages of a model share its speed: its calls take the slots, or the requests per
minute, of one limit. So time is forecast by model, and the slowest model decides;
models that share a learned limit also share what a finished one leaves to the others.

A model's speed is work per second of active time: pauses and periods without a process
do not count, and recent minutes weigh more. Work is counted in tasks where requests are
limited, and in seconds of a slot where slots are, since stages take their slots for
different times. Where all slots are in use, their number and the latency give the
present speed at once (Little 1961, "A proof for the queuing formula L = lambda W").

The interval is that of a logarithmic error. Its width has parts for the follow-ups that
are not planned yet, for the calls from which the speed was measured, for the variation
of that speed, and for stragglers at the end. The constants were fitted on simulated
runs and verified on others (`tests/bench/forecast_calibration.py`).
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Final, Protocol

from store.database import SQL, is_union
from store.events import RunPaused
from store.fold_state import LOG_RATIO, US_PER_MINUTE, US_PER_S
from store.read.forecast import ForecastInterval, StageForecast
from store.read.remaining import Remaining
from store.tables import recorded_rows

MEMORY_S: Final = 90.0
"""Minimum active time in which the weight of a minute halves."""
MEMORY_SHARE: Final = 0.25
"""That time as a share of the run's active time."""
FULL: Final = (0.8, 0.95)
"""Shares of the slots in use: rate-limited below, slot-limited above."""
LATEST_WEIGHT: Final = 0.5
"""Largest weight of the last minutes against Little's law, where slots limit."""
LATEST_AFTER: Final = 500.0
"""Ended tasks from which it is half of that."""
LATEST: Final = 2
LATEST_TASKS: Final = 20
CAP: Final = 1.1
"""Factor of a rate limit above which no speed is expected, as limits are learned."""
NEAR: Final = 0.1
"""A rate limit decides if the speed differs from it by less than this logarithm."""
LAG: Final = 1.0
"""Latencies that pass after the start before calls are answered at the usual rate."""
ROUGH_MINUTES: Final = 15
"""Minutes by which the variation of the speed is judged."""
FEWEST_MINUTES: Final = 3
TAIL: Final = 1.0
"""Latencies by which the last calls exceed the remaining work; twice that while tasks
have follow-ups, which wait for them."""
SHARED: Final = (0.3, 1.3)
"""Sum of models' speeds relative to a limit that they share."""

QUANTILES: Final = (-1.85, 1.25)
"""Of the standardized error: 1 of 20 runs ends before, 1 of 20 after."""
ERROR_LEAST: Final = 0.17
ERROR_WORK: Final = 0.4
ERROR_COUNT: Final = 2.3
ERROR_ROUGH: Final = 0.8
ERROR_TAIL: Final = 1.2
"""Factors of the parts of an error."""
ERROR_MOST: Final = 1.5
UNKNOWN_SPEED: Final = 1.0
"""Error of a model whose speed is taken from the others'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A period without work: a pause of the whole run, or no process."""

    begin_us: int
    end_us: int | None  #: None: it lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTime:
    """Latencies of the answers of one stage and model."""

    n: int
    mean_s: float


def work_breaks(conn: sqlite3.Connection) -> tuple[Break, ...]:
    """Return the periods without work, ascending, overlaps merged."""
    periods: list[tuple[int, int | None]] = []
    paused_us: int | None = None
    for row in recorded_rows(conn, SQL["marked"], ("run_paused", 0, -1)):
        event = row.event
        if not isinstance(event, RunPaused) or event.stage or event.model:
            continue
        if event.paused:
            paused_us = row.ts_us if paused_us is None else paused_us
        elif paused_us is not None:
            periods.append((paused_us, row.ts_us))
            paused_us = None
    if paused_us is not None:
        periods.append((paused_us, None))
    if not is_union(conn):  # whose logs take turns in its events
        periods += [
            (
                int(conn.execute(SQL["worked_before"], (row.seq,)).fetchone()[0]),
                row.ts_us,
            )
            for row in recorded_rows(conn, SQL["marked"], ("run_resumed", 0, -1))
        ]
    merged: list[Break] = []
    for begin_us, end_us in sorted(periods, key=itemgetter(0)):
        last = merged[-1] if merged else None
        if last is not None and last.end_us is None:
            break
        if last is None or last.end_us is None or begin_us > last.end_us:
            merged.append(Break(begin_us=begin_us, end_us=end_us))
        else:
            latest = None if end_us is None else max(end_us, last.end_us)
            merged[-1] = Break(begin_us=last.begin_us, end_us=latest)
    return tuple(merged)


def call_times(conn: sqlite3.Connection) -> dict[tuple[str, str], CallTime]:
    """Return the latencies of answers by stage and model."""
    times = {}
    for stage, model, n, total, squares in conn.execute(SQL["call_times"]):
        mean = total / n
        # of a logarithmic normal distribution, from the logarithms' mean and variance
        variance = max(0.0, squares / n - mean * mean) * LOG_RATIO**2
        times[stage, model] = CallTime(
            n=n, mean_s=math.exp((mean + 0.5) * LOG_RATIO + variance / 2) / 1000
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimit:
    """The limits in force for a model, learned ones included."""

    concurrency: int  #: calls at a time
    rpm: float | None  #: requests per minute


@dataclass(frozen=True, kw_only=True)
class ObservedWork:
    """What a run has shown of its speed."""

    rows: Sequence[MinuteSpeed]  #: of the last hour, ascending
    now_us: int
    started_us: int
    breaks: Sequence[Break] = ()  #: ascending, apart from each other
    call_times: Mapping[tuple[str, str], CallTime]  #: by stage and model
    running: Mapping[tuple[str, str], int]  #: calls in flight, by stage and model
    limits: Mapping[str, ModelLimit]  #: by model

    def active_s(self, begin_us: int, end_us: int) -> float:
        """Return the time without breaks between two moments, in seconds."""
        passed = end_us - begin_us
        for pause in self.breaks:
            until_us = end_us if pause.end_us is None else min(end_us, pause.end_us)
            passed -= max(0, until_us - max(begin_us, pause.begin_us))
        return max(0.0, passed / US_PER_S)

    @cached_property
    def elapsed_s(self) -> float:
        """Active time since the start."""
        return self.active_s(self.started_us, self.now_us)

    @cached_property
    def minutes(self) -> Mapping[int, tuple[float, float]]:
        """Active seconds and weight of each minute of the last hour."""
        last = self.now_us // US_PER_MINUTE
        oldest = min((row.t for row in self.rows), default=last)
        first = max(self.started_us // US_PER_MINUTE, oldest)
        memory_s = max(MEMORY_S, MEMORY_SHARE * self.elapsed_s)
        minutes, age_s = {}, 0.0
        for t in range(last, first - 1, -1):
            active = self.active_s(
                max(self.started_us, t * US_PER_MINUTE),
                min(self.now_us, (t + 1) * US_PER_MINUTE),
            )
            minutes[t] = active, 0.5 ** ((age_s + active / 2) / memory_s)
            age_s += active
        return minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelForecast:
    """Remaining work of a model and its speed."""

    model: str
    work: Mapping[str, float]  #: by stage, in units of its speed
    unseen: float  #: work of follow-ups of unknown stages
    speed: float | None  #: work per second; None: nothing has shown it yet
    requests: float  #: attempts per second, in the same minutes
    counted: float  #: ended tasks that it was measured from
    roughness: float  #: relative standard deviation of the minutes' speeds
    latency_s: float
    error: float  #: relative standard deviation of the work

    def error_of(self, seconds: float) -> float:
        """Return the relative standard deviation of its time, if that is *seconds*."""
        parts = (
            ERROR_LEAST,
            ERROR_WORK * self.error,
            ERROR_COUNT / math.sqrt(max(1.0, self.counted)),
            ERROR_ROUGH * self.roughness,
            ERROR_TAIL * self.latency_s / max(self.latency_s, seconds),
        )
        return min(ERROR_MOST, math.sqrt(sum(part * part for part in parts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLeft:
    """Remaining time of a run and of its stages."""

    seconds: ForecastInterval | None  #: None: nothing has shown its speed yet
    stages: tuple[StageForecast, ...]  #: in their order


def time_left(remaining: Remaining, seen: ObservedWork) -> TimeLeft:
    """Forecast the time until nothing remains."""
    models = model_forecasts(remaining, seen)
    speeds = [model.speed for model in models.values() if model.speed]
    usual = min(speeds, default=None)
    pooled = _pooled(models, seen)
    order = list(dict.fromkeys(queue.stage for queue in remaining.queues))
    ends: dict[str, list[tuple[float, float]]] = defaultdict(list)
    run: list[tuple[float, float]] = []
    for model in models.values():
        speed = model.speed or usual
        if not speed:
            return TimeLeft(seconds=None, stages=_without_time(remaining, order))
        seconds = model.unseen / speed + sum(model.work.values()) / speed
        if not seconds:
            continue
        error = model.error_of(seconds) if model.speed else UNKNOWN_SPEED
        seconds = min(seconds, pooled.get(model.model, seconds))
        seconds += TAIL * model.latency_s * (2 if model.error else 1)
        run.append((seconds, error))
        for stage, share in _shares(remaining, model, order).items():
            ends[stage].append((share * seconds, error))
    is_whole = remaining.is_whole
    return TimeLeft(
        seconds=_slowest(run, is_whole=is_whole),
        stages=tuple(
            StageForecast(
                stage=stage,
                left=round(sum(q.left for q in remaining.queues if q.stage == stage)),
                seconds=_slowest(ends[stage], is_whole=is_whole),
            )
            for stage in order
        ),
    )


def _without_time(
    remaining: Remaining, order: Sequence[str]
) -> tuple[StageForecast, ...]:
    return tuple(
        StageForecast(
            stage=stage,
            left=round(sum(q.left for q in remaining.queues if q.stage == stage)),
            seconds=None,
        )
        for stage in order
    )


def _slowest(
    ends: Sequence[tuple[float, float]], *, is_whole: bool
) -> ForecastInterval:
    """Return when the last of several ends: (seconds, relative error)."""
    below, above = QUANTILES
    return ForecastInterval(
        low=max((s * math.exp(below * error) for s, error in ends), default=0.0),
        expected=max((s for s, _ in ends), default=0.0),
        high=max((s * math.exp(above * error) for s, error in ends), default=0.0)
        if is_whole
        else None,
    )


def _shares(
    remaining: Remaining, model: ModelForecast, order: Sequence[str]
) -> dict[str, float]:
    """Return by stage the share of a model's time until its tasks are done.

    Later stages go first. So a stage that gets no more tasks ends once it and those
    after it are done; any other lasts until the end.
    """
    whole = model.unseen + sum(model.work.values())
    grows = {
        queue.stage
        for queue in remaining.queues
        if queue.model == model.model and queue.more
    }
    shares, before = {}, 0.0
    for stage in reversed(order):
        if stage in model.work:
            before += model.work[stage]
            grows_later = grows.intersection(order[order.index(stage) :])
            shares[stage] = 1.0 if grows_later else before / whole
    return shares


def _pooled(
    models: Mapping[str, ModelForecast], seen: ObservedWork
) -> dict[str, float]:
    """Return the time of models that share a limit, from their speeds together.

    A limit learned from an endpoint's refusals shows as the same figure for each of its
    models, and their speeds add up to it. What one leaves at its end, the others get.
    """
    by_limit: dict[float, list[ModelForecast]] = defaultdict(list)
    for name, model in models.items():
        limit = seen.limits.get(name)
        if limit and limit.rpm and model.speed:
            by_limit[limit.rpm].append(model)
    low, high = SHARED
    seconds = {}
    for rpm, sharing in by_limit.items():
        requests = sum(model.requests for model in sharing)
        if len(sharing) > 1 and low <= requests * 60 / rpm <= high:
            work = sum(m.unseen + sum(m.work.values()) for m in sharing)
            speed = sum(m.speed or 0.0 for m in sharing)
            seconds.update({model.model: work / speed for model in sharing})
    return seconds


def model_forecasts(
    remaining: Remaining, seen: ObservedWork
) -> dict[str, ModelForecast]:
    """Return the remaining work and the speed of each model that has any left."""
    names = dict.fromkeys(queue.model for queue in remaining.queues if queue.left)
    names.update(dict.fromkeys(remaining.unseen))
    rows: dict[str, list[MinuteSpeed]] = defaultdict(list)
    for row in seen.rows:
        if row.t in seen.minutes:
            rows[row.model].append(row)
    return {name: _model(name, remaining, seen, rows[name]) for name in names}


def _model(
    name: str,
    remaining: Remaining,
    seen: ObservedWork,
    rows: Iterable[MinuteSpeed],
) -> ModelForecast:
    stage_times = {
        stage: time for (stage, model), time in seen.call_times.items() if model == name
    }
    latency_s = _mean(stage_times.values()) or _mean(seen.call_times.values())
    running = {
        stage: n for (stage, model), n in seen.running.items() if model == name and n
    }
    limit = seen.limits.get(name)
    slots = limit.concurrency if limit else None
    full = _ramp(sum(running.values()) / slots, FULL) if slots else 0.0

    def unit(stage: str) -> float:
        """Work of a task: 1 where rates are limited, its time where slots are."""
        if stage not in stage_times:
            return 1.0
        time = stage_times[stage]
        # a stage's first calls say little of it
        mean_s = (time.n * time.mean_s + 2 * latency_s) / (time.n + 2)
        return float((mean_s / latency_s) ** full)

    by_minute: dict[int, float] = defaultdict(float)
    started = ended = 0
    for row in rows:
        by_minute[row.t] += row.ended * unit(row.stage)
        started += row.started
        ended += row.ended
    work = weighed_s = counted = 0.0
    lag_s = min(LAG * latency_s, seen.elapsed_s / 2)
    for t, (active_s, weight) in seen.minutes.items():
        is_first = t == seen.started_us // US_PER_MINUTE
        seconds = max(0.3 * active_s, active_s - lag_s) if is_first else active_s
        work += weight * by_minute.get(t, 0.0)
        weighed_s += weight * seconds
        counted += weight * by_minute.get(t, 0.0)
    speed = work / weighed_s if work and weighed_s else None
    passed = min(1.0, (ended + 1) / max(1, started - sum(running.values()) + 1))
    return ModelForecast(
        model=name,
        work={
            queue.stage: queue.left * unit(queue.stage)
            for queue in remaining.queues
            if queue.model == name and queue.left
        },
        unseen=remaining.unseen.get(name, 0.0),
        speed=_present(
            speed,
            latest=_latest(seen, by_minute),
            counted=counted,
            little=sum(
                n
                * unit(stage)
                / (stage_times[stage].mean_s if stage in stage_times else latency_s)
                for stage, n in running.items()
            )
            if latency_s
            else 0.0,
            full=full,
            limited=limit.rpm / 60 * passed if limit and limit.rpm else None,
        ),
        requests=(speed or 0.0) / passed,
        counted=counted,
        roughness=_roughness(seen, by_minute),
        latency_s=latency_s,
        error=_work_error(remaining, name),
    )


def _work_error(remaining: Remaining, model: str) -> float:
    """Return the relative error of a model's remaining work."""
    queues = [queue for queue in remaining.queues if queue.model == model]
    unseen = remaining.unseen.get(model, 0.0)
    more = unseen + sum(queue.more for queue in queues)
    left = unseen + sum(queue.left for queue in queues)
    error = remaining.errors.get(model, remaining.error)
    return error * more / left if left else 0.0


def _present(
    speed: float | None,
    *,
    latest: float,
    counted: float,
    little: float,
    full: float,
    limited: float | None,
) -> float | None:
    """Return the speed to expect from now on.

    Args:
        speed: measured over the last minutes; None: nothing has ended.
        latest: the same over the very last ones; 0: too few calls.
        counted: tasks that the speed was measured from.
        little: from the calls in flight and their latency; 0: unknown.
        full: whether slots are the limit, 0 to 1.
        limited: the rate limit, less what fails; None: there is none.
    """
    if not speed:
        return little or None
    expected = math.log(speed)
    if limited and abs(math.log(limited / speed)) < NEAR:
        expected += (1 - full) * (math.log(limited) - expected)
    if little:
        # the latency is that of the whole run, so it misses changes that minutes show
        share = LATEST_WEIGHT * counted / (LATEST_AFTER + counted) if latest else 0.0
        present = (1 - share) * math.log(little) + share * math.log(latest or 1.0)
        expected += full * (present - expected)
    if limited:
        expected = min(expected, math.log(max(CAP * limited, speed)))
    return math.exp(expected)


def _latest(seen: ObservedWork, by_minute: Mapping[int, float]) -> float:
    """Return the speed of the last `LATEST` minutes; 0 if they hold too few calls."""
    minutes = list(seen.minutes.items())[:LATEST]  # the last ones come first
    seconds = sum(active_s for _, (active_s, _) in minutes)
    work = sum(by_minute.get(t, 0.0) for t, _ in minutes)
    return work / seconds if work >= LATEST_TASKS and seconds else 0.0


def _roughness(seen: ObservedWork, by_minute: Mapping[int, float]) -> float:
    """Return how much whole minutes vary, beyond what their counts would alone."""
    whole = [
        by_minute.get(t, 0.0) / active_s
        for t, (active_s, _) in seen.minutes.items()
        if active_s > US_PER_MINUTE / US_PER_S / 2
    ][:ROUGH_MINUTES]
    if len(whole) < FEWEST_MINUTES:
        return 0.0
    mean = sum(whole) / len(whole)
    if not mean:
        return 0.0
    variance = sum((value - mean) ** 2 for value in whole) / (len(whole) - 1)
    return math.sqrt(variance) / mean


def _mean(times: Iterable[CallTime]) -> float:
    listed = list(times)
    n = sum(time.n for time in listed)
    return sum(time.n * time.mean_s for time in listed) / n if n else 0.0


def _ramp(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return min(1.0, max(0.0, (value - low) / (high - low)))
