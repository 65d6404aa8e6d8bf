"""Forecasts how long a run still takes, from its remaining work and its recent speed.

The stages of a model share its speed: its calls take the slots, or the requests per
minute, of one limit. So time is forecast by model, and the slowest model decides;
models that share a learned limit also share what a finished one leaves to the others.

A model's speed is work per second of active time: pauses and periods without a process
do not count, and recent minutes weigh more. Where requests are limited, work is counted
in tasks, when they start: a start shows the rate one latency before its end. Where
slots are limited, work is counted in seconds of a slot, since stages take their slots
for different times, and the number of slots and the latency give the present speed at
once (Little 1961, "A proof for the queuing formula L = lambda W").

The interval is that of a logarithmic error. Its width has parts for the follow-ups that
are not planned yet, for the calls from which the speed was measured, for the variation
of that speed, and for stragglers at the end. The constants were fitted on simulated
runs and verified on others (`tests/bench/forecast_calibration.py`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import NormalDist
from typing import Final

from store.fold_state import US_PER_MINUTE, US_PER_S
from store.read.forecast import ForecastInterval, StageForecast
from store.read.observed_work import (
    CallTime,
    MinuteSpeed,
    ModelLimit,
    ObservedWork,
    Remembered,
    steadiness,
    steady_minutes,
    total,
    total_s,
)
from store.read.remaining import Remaining, set_apart

FULL: Final = (0.8, 0.95)
"""Shares of the slots in use: rate-limited below, slot-limited above."""
SETTLING_S: Final = 180.0
"""Active time from the start in which the calls in flight tell less and less of that
share, and the remembered minutes more: a limiter starts with few slots, and calls in
flight vary from one second to the next."""
LATEST_WEIGHT: Final = 0.5
"""Largest weight of the last seconds against Little's law, where slots limit."""
LATEST_AFTER: Final = 500.0
"""Ended tasks from which it is half of that."""
LAG: Final = 1.0
"""Latencies that pass after the start before calls are answered at the usual rate."""
ROUGH_MINUTES: Final = 15
"""Minutes by which the variation of the speed is judged."""
FEWEST_MINUTES: Final = 3
CLIMB: Final = 0.6
"""Share of the way to the most slots, on a logarithmic scale, that a limiter is
expected to go: refusals and rates may stop it."""
CLIMB_CALLS: Final = 15.0
"""Latencies from the start in which that expectation fades."""
GROWN: Final = 0.9
"""Share of the most slots from which it is not expected to grow."""
CHAIN: Final = 0.5
"""Latencies that the last follow-ups wait for the tasks that they follow."""
SHARED: Final = (0.3, 1.6)
"""Sum of models' speeds relative to a limit that they share."""

QUANTILES: Final = (-1.1, 1.25)
"""Of the standardized error: 1 of 20 runs ends before, 1 of 20 after."""
ERROR_LEAST: Final = 0.2
ERROR_WORK: Final = 0.8
ERROR_COUNT: Final = 1.8
ERROR_ROUGH: Final = 0.5
ERROR_TAIL: Final = 0.7
"""Factors of the parts of an error."""
ERROR_MOST: Final = 1.5
UNKNOWN_SPEED: Final = 1.0
"""Error of a model whose speed is taken from the others'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelForecast:
    """Remaining work of a model and its speed."""

    model: str
    work: Mapping[str, float]  #: by stage, in units of its speed
    unseen: float  #: work of follow-ups of unknown stages
    speed: float | None  #: work per second; None: nothing has shown it yet
    measured: float  #: the same, of the steady minutes alone; 0: nothing has ended
    most: float  #: work per second that its slots allow once they have grown
    counted: float  #: ended tasks that it was measured from
    roughness: float  #: relative standard deviation of the minutes' speeds
    latency_s: float
    spread: float  #: of the latencies: standard deviation of the logarithm
    error: float  #: relative standard deviation of the work

    @property
    def whole(self) -> float:
        """Its work in all stages."""
        return self.unseen + sum(self.work.values())

    @property
    def tail_s(self) -> float:
        """Time by which the last calls exceed the remaining work.

        It is that of the slowest of the calls in flight at the end (by Little's law as
        many as usual, if so many tasks remain) beyond the mean.
        """
        at_once = min((self.speed or 0.0) * self.latency_s, self.whole)
        z = NormalDist().inv_cdf(1 - 1 / (1 + max(1.0, at_once)))
        slowest = math.exp(self.spread * z - self.spread**2 / 2)
        chain = CHAIN if self.error else 0.0
        return self.latency_s * max(0.0, slowest - 1 + chain)

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
    models: Mapping[str, float]  #: seconds of each model that has work left
    paused: float = 0.0  #: tasks that wait for a pause to end, beyond these times


def time_left(
    every: Remaining,
    seen: ObservedWork,
    is_paused: Callable[[str, str], bool] = lambda _stage, _model: False,
) -> TimeLeft:
    """Forecast the time until nothing remains but what waits for a pause to end.

    Args:
        every: the tasks that remain.
        seen: what the run has shown of its speed.
        is_paused: whether a stage and model start no calls.
    """
    remaining, paused = set_apart(every, is_paused)
    models = model_forecasts(remaining, seen)
    working = [model for model in models if model.whole]
    usual = min((model.speed for model in working if model.speed), default=None)
    pooled = _pooled(models, seen)
    order = _order(remaining)
    ends: dict[str, list[tuple[float, float]]] = defaultdict(list)
    run: dict[str, tuple[float, float]] = {}
    for model in working:
        speed = model.speed or usual
        if not speed:
            return TimeLeft(
                seconds=None,
                stages=_stages(every, {}, is_whole=False),
                models={},
                paused=paused,
            )
        seconds = model.whole / speed
        error = model.error_of(seconds) if model.speed else UNKNOWN_SPEED
        seconds = pooled.get(model.model, seconds)
        seconds += model.tail_s
        run[model.model] = seconds, error
        for stage, share in _shares(remaining, model, order).items():
            ends[stage].append((share * seconds, error))
    is_whole = remaining.is_whole
    return TimeLeft(
        seconds=_slowest(list(run.values()), is_whole=is_whole),
        models={name: seconds for name, (seconds, _) in run.items()},
        stages=_stages(every, ends, is_whole=is_whole),
        paused=paused,
    )


def _order(remaining: Remaining) -> list[str]:
    return list(dict.fromkeys(queue.stage for queue in remaining.queues))


def _stages(
    remaining: Remaining,
    ends: Mapping[str, Sequence[tuple[float, float]]],
    *,
    is_whole: bool,
) -> tuple[StageForecast, ...]:
    """Return the stages; a stage without *ends* has no time while it has tasks left."""
    stages = []
    for stage in _order(remaining):
        left = sum(queue.left for queue in remaining.queues if queue.stage == stage)
        has_time = bool(ends.get(stage)) or not left
        stages.append(
            StageForecast(
                stage=stage,
                left=round(left),
                seconds=_slowest(ends.get(stage, ()), is_whole=is_whole)
                if has_time
                else None,
            )
        )
    return tuple(stages)


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
            shares[stage] = 1.0 if grows_later else before / model.whole
    return shares


def _pooled(models: Sequence[ModelForecast], seen: ObservedWork) -> dict[str, float]:
    """Return the time of models that share a limit, from their speeds together.

    A limit learned from an endpoint's refusals shows as the same figure for each of its
    models, and their speeds add up to it. What one leaves at its end, the others get:
    a model that has just ended counts with the speed that it had.
    """
    by_limit: dict[float, list[ModelForecast]] = defaultdict(list)
    for model in models:
        limit = seen.limits.get(model.model)
        if limit and limit.rpm and model.speed:
            by_limit[limit.rpm].append(model)
    low, high = SHARED
    seconds = {}
    for rpm, sharing in by_limit.items():
        measured = sum(model.measured for model in sharing)
        if len(sharing) > 1 and low <= measured * 60 / rpm <= high:
            seconds.update(_shared_ends(sharing, rpm / 60))
    return seconds


def _shared_ends(models: Sequence[ModelForecast], at_most: float) -> dict[str, float]:
    """Return when each of some models ends if the others have what it leaves.

    Args:
        models: with their speeds; those that have ended leave theirs.
        at_most: tasks per second of all together.
    """
    pool = min(at_most, sum(model.speed or 0.0 for model in models))
    left = {model.model: model.whole for model in models if model.whole}
    ends: dict[str, float] = {}
    now = 0.0
    while left:
        speeds = _shared_speeds([m for m in models if m.model in left], pool)
        first = min(left, key=lambda name: left[name] / speeds[name])
        passed = left.pop(first) / speeds[first]
        now += passed
        ends[first] = now
        left = {n: max(0.0, work - passed * speeds[n]) for n, work in left.items()}
    return ends


def _shared_speeds(models: Iterable[ModelForecast], pool: float) -> dict[str, float]:
    """Divide a speed among models as they have it now, at most what slots allow."""
    speeds: dict[str, float] = {}
    shares = [(model.speed or 0.0, model) for model in models]
    whole = sum(share for share, _ in shares)
    # those that their slots hold back come first: the others have what they leave
    for share, model in sorted(shares, key=lambda pair: pair[1].most / pair[0]):
        speeds[model.model] = min(model.most, pool * share / whole)
        pool -= speeds[model.model]
        whole -= share
    return speeds


def model_forecasts(remaining: Remaining, seen: ObservedWork) -> list[ModelForecast]:
    """Return the remaining work and the speed of each model, ended ones included."""
    names = dict.fromkeys(queue.model for queue in remaining.queues)
    names.update(dict.fromkeys(remaining.unseen))
    rows: dict[str, list[MinuteSpeed]] = defaultdict(list)
    for row in seen.rows:
        if row.t in seen.minutes:
            rows[row.model].append(row)
    working = {queue.model for queue in remaining.queues if queue.left}
    working.update(name for name, tasks in remaining.unseen.items() if tasks)
    return [
        # as at its end, a model without work leaves a shared limit to the others
        _model(
            name,
            remaining,
            seen.of_model(name) if name in working else seen,
            rows[name],
        )
        for name in names
    ]


def _model(
    name: str,
    remaining: Remaining,
    seen: ObservedWork,
    rows: Sequence[MinuteSpeed],
) -> ModelForecast:
    stage_times = {
        stage: time for (stage, model), time in seen.call_times.items() if model == name
    }
    average = attrgetter("mean_s")
    latency_s = _mean(stage_times.values(), average)
    latency_s = latency_s or _mean(seen.call_times.values(), average)
    running = sum(n for (_, model), n in seen.running.items() if model == name)
    limit = seen.limits.get(name)
    slots = limit.concurrency if limit else 0
    taken: dict[int, float] = defaultdict(float)  # seconds of slots, by minute
    for row in rows:
        time = stage_times.get(row.stage)
        mean_s = time.mean_s if time else latency_s
        taken[row.t] += (row.started - row.retried) * mean_s
    full = _fullness(seen, taken, running=running, slots=slots)

    def unit(stage: str) -> float:
        """Work of a task: 1 where rates are limited, its time where slots are."""
        if stage not in stage_times:
            return 1.0
        time = stage_times[stage]
        # a stage's first calls say little of it
        mean_s = (time.n * time.mean_s + 2 * latency_s) / (time.n + 2)
        return float((mean_s / latency_s) ** full)

    ended: dict[int, float] = defaultdict(float)
    begun: dict[int, float] = defaultdict(float)
    for row in rows:
        ended[row.t] += row.ended * unit(row.stage)
        begun[row.t] += (row.started - row.retried) * unit(row.stage)
    steady = steady_minutes(seen.usual, ended)
    counted = total(steady, ended)
    left = {
        queue.stage: queue.left * unit(queue.stage)
        for queue in remaining.queues
        if queue.model == name and queue.left
    }
    unseen = remaining.unseen.get(name, 0.0)
    measured = _measured(
        seen,
        steady,
        ended,
        begun,
        latency_s=latency_s,
        full=full,
        is_working=bool(left or unseen),
    )
    attempts = sum(row.started for row in rows) - running
    passed = min(1.0, (sum(row.ended for row in rows) + 1) / max(1, attempts + 1))
    # the slots that the limiter grants change less than the calls in flight
    at_once = slots if measured and slots else running
    most = _most(limit, latency_s)
    return ModelForecast(
        model=name,
        work=left,
        unseen=unseen,
        speed=_present(
            measured,
            latest=total(seen.latest, ended) / (total_s(seen.latest) or 1.0),
            counted=counted,
            little=at_once / latency_s if latency_s else 0.0,
            full=full,
            limited=limit.rpm / 60 * passed if limit and limit.rpm else None,
            most=most,
            growing=full * _growing(limit, seen.elapsed_s, latency_s),
        ),
        measured=measured,
        most=max(measured, most),
        counted=counted,
        roughness=_roughness(seen, ended),
        latency_s=latency_s,
        spread=_mean(stage_times.values(), attrgetter("spread")),
        error=_work_error(remaining, name),
    )


def _most(limit: ModelLimit | None, latency_s: float) -> float:
    """Return the calls per second of as many slots as there may be."""
    if limit is None or not latency_s:
        return math.inf
    return (limit.ceiling or limit.concurrency) / latency_s


def _growing(limit: ModelLimit | None, elapsed_s: float, latency_s: float) -> float:
    """Return the share of the way to the most slots that a limiter will go, 0 to 1.

    It starts with few slots, and adds some after each round of calls.
    """
    if limit is None or limit.ceiling is None or not latency_s:
        return 0.0
    if limit.concurrency >= GROWN * limit.ceiling:
        return 0.0
    return CLIMB * math.exp(-elapsed_s / latency_s / CLIMB_CALLS)


def _fullness(
    seen: ObservedWork, taken: Mapping[int, float], *, running: int, slots: int
) -> float:
    """Return whether slots are the limit, from 0 to 1.

    Args:
        seen: the run.
        taken: seconds of slots that the calls that started take, by minute.
        running: calls in flight.
        slots: the most that may be; 0: unknown.
    """
    seconds = total_s(seen.latest)
    if not slots or not seconds:
        return 0.0
    now = math.exp(-seen.elapsed_s / SETTLING_S)
    used = total(seen.latest, taken) / seconds / slots
    return now * _ramp(running / slots, FULL) + (1 - now) * _ramp(used, FULL)


def _measured(
    seen: ObservedWork,
    steady: Mapping[int, Remembered],
    ended: Mapping[int, float],
    begun: Mapping[int, float],
    *,
    latency_s: float,
    full: float,
    is_working: bool,
) -> float:
    """Return work per second of the remembered minutes; 0: nothing has ended.

    Minutes count by the work done in them: see `steadiness`.
    Work is counted at its end where slots are the limit: at the start of a run they are
    filled at once. Else it is counted at its start.

    Args:
        seen: the run.
        steady: the minutes since its speed changed.
        ended: work of the tasks that ended, by minute.
        begun: work of the tasks that started, by minute.
        latency_s: of the model's calls.
        full: whether slots are the limit, 0 to 1.
        is_working: whether it has tasks left that are not paused.
    """
    out, into = total(steady, ended), total(steady, begun)
    all_s = total_s(steady)
    first = seen.started_us // US_PER_MINUTE
    lag_s = 0.0  # before the first answers
    if first in steady:
        minute = steady[first]
        lag_s = min(LAG * latency_s, seen.elapsed_s / 2, 0.7 * minute.active_s)
        lag_s *= minute.weight
    seconds = all_s - lag_s
    if not out or seconds <= 0:
        return 0.0
    if into <= 0:
        return out / seconds
    done, sent = out / seconds, into / all_s
    if is_working:  # else others have what it leaves, minute by minute
        done *= steadiness(steady, ended)
        sent *= steadiness(steady, begun)
    return math.exp(full * math.log(done) + (1 - full) * math.log(sent))


def _work_error(remaining: Remaining, model: str) -> float:
    """Return the relative error of a model's remaining work."""
    queues = [queue for queue in remaining.queues if queue.model == model]
    unseen = remaining.unseen.get(model, 0.0)
    more = unseen + sum(queue.more for queue in queues)
    left = unseen + sum(queue.left for queue in queues)
    error = remaining.errors.get(model, remaining.error)
    return error * more / left if left else 0.0


def _present(
    measured: float,
    *,
    latest: float,
    counted: float,
    little: float,
    full: float,
    limited: float | None,
    most: float,
    growing: float,
) -> float | None:
    """Return the speed to expect from now on.

    Args:
        measured: over the remembered minutes; 0: nothing has ended.
        latest: the same over the last seconds; 0: nothing has ended in them.
        counted: tasks that it was measured from.
        little: from the slots and the latency; 0: unknown.
        full: whether slots are the limit, 0 to 1.
        limited: the rate limit, less what fails; None: there is none.
        most: that the slots allow once they have grown.
        growing: share of the way there that they will go, 0 to 1.
    """
    if not measured:
        return little or None
    expected = math.log(measured)
    if little:
        # the latency is that of the whole run, so it misses changes that minutes show
        share = LATEST_WEIGHT * counted / (LATEST_AFTER + counted) if latest else 0.0
        present = (1 - share) * math.log(little) + share * math.log(latest or 1.0)
        expected += full * (present - expected)
    if limited:
        expected = min(expected, math.log(max(limited, measured)))
    if growing:
        reach = math.log(min(most, limited or math.inf))
        expected += growing * max(0.0, reach - expected)
    return math.exp(expected)


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


def _mean(times: Iterable[CallTime], of: Callable[[CallTime], float]) -> float:
    listed = list(times)
    n = sum(time.n for time in listed)
    return sum(time.n * of(time) for time in listed) / n if n else 0.0


def _ramp(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return min(1.0, max(0.0, (value - low) / (high - low)))
