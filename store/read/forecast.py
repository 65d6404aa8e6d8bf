"""Defines the values of a forecast: progress, remaining time, projected cost.

`store.read.remaining` and `store.read.time_left` compute them. An estimate from before
the run is checked here against the run's course.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from store.events import ExpectedUsage

Z: Final = 1.645
"""Standard deviations of a normal distribution that hold 9 of 10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedFigure:
    """One figure: estimated, actual so far, and projected."""

    low: float
    expected: float
    high: float
    so_far: float
    comes_to: float | None  #: None: nothing is finished yet


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateAccuracy:
    """A run's estimate against its course."""

    done: float  #: share of the run, 0 to 1
    calls: EstimatedFigure
    tokens_in: EstimatedFigure
    tokens_out: EstimatedFigure
    cost_usd: EstimatedFigure | None  #: None: a price is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSoFar:
    """Actual figures of a run so far."""

    calls: int  #: attempts that an endpoint answered
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


def estimate_accuracy(
    expected: ExpectedUsage,
    items: int,
    so_far: UsageSoFar,
    *,
    done: float,
    projected_usd: float | None,
) -> EstimateAccuracy:
    """Compare the estimate of a plan of *items* specs with the actual figures.

    Args:
        expected: the estimate of one first-stage spec.
        items: first-stage specs of the plan.
        so_far: the actual figures.
        done: share of the run that is done, 0 to 1.
        projected_usd: cost of the whole run by its own course; None: unknown.
    """

    def prospect(
        per_item: tuple[float, float, float], now: float, comes_to: float | None = None
    ) -> EstimatedFigure:
        low, middle, high = (figure * items for figure in per_item)
        return EstimatedFigure(
            low=low,
            expected=middle,
            high=high,
            so_far=now,
            comes_to=now / done if comes_to is None and done else comes_to,
        )

    return EstimateAccuracy(
        done=done,
        calls=prospect(expected.calls, so_far.calls),
        tokens_in=prospect(expected.tokens_in, so_far.tokens_in),
        tokens_out=prospect(expected.tokens_out, so_far.tokens_out),
        cost_usd=None
        if expected.cost_usd is None or so_far.cost_usd is None
        else prospect(expected.cost_usd, so_far.cost_usd, projected_usd),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastInterval:
    """An estimate with its interval."""

    low: float
    expected: float
    high: float | None  #: None: no upper end is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: tasks done, and tasks still expected."""

    done: int  #: tasks completed or failed; skipped tasks are no work
    remaining: ForecastInterval  #: tasks still expected, future follow-ups included

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1; 0 before anything is planned."""
        total = self.done + self.remaining.expected
        if not total:
            return 0.0 if self.remaining.high is None else 1.0
        return self.done / total


@dataclass(frozen=True, slots=True, kw_only=True)
class StageForecast:
    """Remaining time of one stage."""

    stage: str
    left: int  #: tasks, expected follow-ups included
    seconds: ForecastInterval | None  #: None: nothing has shown its speed yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Remaining time of a run and its projected cost."""

    seconds: ForecastInterval | None  #: None: nothing has shown its speed yet
    paused_tasks: int  #: that wait for a pause to end, and have no part in the time
    stages: tuple[StageForecast, ...]
    models: Mapping[str, float]  #: seconds of each model that has work left
    cost_usd: ForecastInterval | None  #: in addition to what is recorded
    #: until the budget stops the run; None: it lasts, by the expected cost
    budget_seconds: ForecastInterval | None


def seconds_to_spend(
    room_usd: float, spenders: Iterable[tuple[float, float]]
) -> float | None:
    """Return when *spenders* have spent an amount together; None: never.

    Each is (dollars, seconds) and spends evenly until its end.

    >>> seconds_to_spend(3.0, [(2.0, 8.0), (4.0, 32.0)])
    8.0
    >>> seconds_to_spend(5.0, [(2.0, 8.0), (4.0, 32.0)])
    24.0
    """
    open_ = sorted((s, usd) for usd, s in spenders if usd > 0 and s > 0)
    passed, left = 0.0, max(0.0, room_usd)
    for at, (end, _) in enumerate(open_):
        rate = sum(usd / seconds for seconds, usd in open_[at:])
        if left <= rate * (end - passed):
            return passed + left / rate
        left -= rate * (end - passed)
        passed = end
    return None


def budget_seconds(
    room_usd: float,
    seconds: ForecastInterval,
    cost: ForecastInterval,
    models: Iterable[tuple[float, float]],
) -> ForecastInterval | None:
    """Return when the budget is spent, if the expected cost passes it before the end.

    The ends of the interval pair the least cost with the least time, and the most with
    the most, as more follow-ups take more of both; there is no upper end if the budget
    may last.

    Args:
        room_usd: dollars that are left of the budget.
        seconds: time left of the whole run.
        cost: dollars of the tasks that remain.
        models: dollars and seconds of each model.
    """
    spenders = list(models)

    def at(cost_usd: float | None, end_s: float | None) -> float | None:
        if cost_usd is None or end_s is None:
            return None
        if not seconds.expected or not cost.expected:
            return None
        dearer, slower = cost_usd / cost.expected, end_s / seconds.expected
        return seconds_to_spend(
            room_usd, [(usd * dearer, s * slower) for usd, s in spenders]
        )

    expected = at(cost.expected, seconds.expected)
    if expected is None:
        return None
    ends = [at(cost.low, seconds.low), at(cost.high, seconds.high)]
    known = [expected, *(end for end in ends if end is not None)]
    return ForecastInterval(
        low=min(known),
        expected=expected,
        high=None if None in ends else max(known),
    )


BEST_MINUTES = 10
"""Length of the window, in minutes, for a run's best throughput."""


def best_rate(by_minute: Mapping[int, int]) -> float | None:
    """Return the highest mean throughput of any ten consecutive minutes.

    None if there are fewer minutes.
    """
    if not by_minute or max(by_minute) - min(by_minute) + 1 < BEST_MINUTES:
        return None
    first, last = min(by_minute), max(by_minute)
    within = sum(by_minute.get(t, 0) for t in range(first, first + BEST_MINUTES))
    best = within
    for t in range(first + BEST_MINUTES, last + 1):
        within += by_minute.get(t, 0) - by_minute.get(t - BEST_MINUTES, 0)
        best = max(best, within)
    return best / BEST_MINUTES


_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SECONDS_UNTIL = 100
"""Seconds from which minutes are told."""
_MINUTES_UNTIL = 100 * _MINUTE
_HOURS_UNTIL = 2 * _DAY
_PLAIN_UNITS = ("s", "min")


def rough_duration(seconds: float) -> str:
    """Format a forecast duration: as exact as a forecast may be.

    >>> rough_duration(4.4), rough_duration(130), rough_duration(1140)
    ('4 s', '2.2 min', '19 min')
    >>> rough_duration(8400), rough_duration(200_000)
    ('2 h 20', '2 d 08 h')
    """
    if seconds < _SECONDS_UNTIL:
        return f"{seconds:.0f} s"
    if seconds < 10 * _MINUTE:
        return f"{seconds / _MINUTE:.1f} min"
    if seconds < _MINUTES_UNTIL:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < _HOURS_UNTIL:
        minutes = 5 * round(seconds / _MINUTE / 5)
        return f"{minutes // 60} h {minutes % 60:02}"
    hours = round(seconds / _HOUR)
    return f"{hours // 24} d {hours % 24:02} h"


def time_left_text(left: ForecastInterval, to: str = " to ", *, paused: int = 0) -> str:
    """Describe the time left with its interval, which 9 of 10 runs end within.

    Args:
        left: the time.
        to: separates the ends of the interval.
        paused: tasks that wait for a pause to end; the time is without them.

    >>> left = ForecastInterval(low=1020, expected=1140, high=1440)
    >>> time_left_text(left)
    '19 min (17 to 24 min)'
    >>> time_left_text(left, paused=1200)
    '19 min (17 to 24 min), 1,200 paused tasks not included'
    """
    if paused:
        tasks = "1 paused task" if paused == 1 else f"{paused:,} paused tasks"
        return f"{time_left_text(left, to)}, {tasks} not included"
    if left.high is None:
        return f"{rough_duration(left.expected)} (at least {rough_duration(left.low)})"
    low, high = rough_duration(left.low), rough_duration(left.high)
    number, _, unit = low.partition(" ")
    if high.endswith(f" {unit}") and unit in _PLAIN_UNITS:
        low = number
    return f"{rough_duration(left.expected)} ({low}{to}{high})"


def budget_text(left: ForecastInterval) -> str:
    """Describe when the budget stops a run.

    >>> budget_text(ForecastInterval(low=400, expected=480, high=None))
    'budget spent in 8.0 min (at least 6.7 min)'
    """
    return f"budget spent in {time_left_text(left)}"


def progress_text(progress: Progress) -> str:
    """Describe progress: tasks done, of how many; rounded where that is an estimate.

    >>> at = ForecastInterval(low=5200, expected=5874, high=6700)
    >>> progress_text(Progress(done=126, remaining=at))
    '126 of about 6,000 done'
    >>> end = ForecastInterval(low=0, expected=0.2, high=1)
    >>> progress_text(Progress(done=1812, remaining=end))
    '1,812 of about 1,812 done'
    """
    remaining = progress.remaining
    total = progress.done + round(remaining.expected)
    if remaining.high is None or remaining.low < remaining.expected < remaining.high:
        rounded = round(total, -max(0, len(str(total)) - 2))
        about = total if rounded < progress.done else rounded
        return f"{progress.done:,} of about {about:,} done"
    return f"{progress.done:,} of {total:,} done"


def share_text(share: float) -> str:
    """Format progress as a percentage, rounded down: 100.0 % means all.

    >>> share_text(0.0212), share_text(0.99999), share_text(1.0)
    ('2.1 %', '99.9 %', '100.0 %')
    """
    return f"{int(share * 1000 + 1e-9) / 10:.1f} %"


def rate_text(per_minute: float) -> str:
    """Format tasks completed per minute; per second where they are many.

    >>> rate_text(294), rate_text(12.34)
    ('4.9/s', '12.3/min')
    """
    if per_minute >= _MINUTE:
        return f"{per_minute / _MINUTE:,.1f}/s"
    return f"{per_minute:.1f}/min"
