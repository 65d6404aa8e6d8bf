"""Forecasts the end and cost of a run, and checks its initial estimate.

End and cost are computed from the last whole minutes: the number of tasks of each stage
that ended, and their cost. The interval is from a block bootstrap of those minutes
(Künsch 1989, "The jackknife and the bootstrap for general stationary observations"):
blocks, because slow minutes are correlated.

The estimate check extrapolates from the finished part of the run. Follow-ups of open
items are not planned yet: their number per item is assumed to equal that of finished
items.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from store.events import ExpectedUsage
from store.task import TaskState


class QueueProgress(Protocol):
    """Tasks of one stage, by state."""

    @property
    def stage(self) -> str:
        """The stage's name."""
        ...

    @property
    def states(self) -> Mapping[TaskState, int]:
        """Tasks by state."""
        ...


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
    queues: Iterable[QueueProgress],
    so_far: UsageSoFar,
) -> EstimateAccuracy:
    """Compare the estimate of a plan of *items* specs with the actual figures."""
    done = _done(expected, queues)

    def prospect(per_item: tuple[float, float, float], now: float) -> EstimatedFigure:
        low, middle, high = (figure * items for figure in per_item)
        return EstimatedFigure(
            low=low,
            expected=middle,
            high=high,
            so_far=now,
            comes_to=now / done if done else None,
        )

    return EstimateAccuracy(
        done=done,
        calls=prospect(expected.calls, so_far.calls),
        tokens_in=prospect(expected.tokens_in, so_far.tokens_in),
        tokens_out=prospect(expected.tokens_out, so_far.tokens_out),
        cost_usd=None
        if expected.cost_usd is None or so_far.cost_usd is None
        else prospect(expected.cost_usd, so_far.cost_usd),
    )


def _done(expected: ExpectedUsage, queues: Iterable[QueueProgress]) -> float:
    """Return the share of ended tasks among all, including tasks not planned yet."""
    ended, planned = {True: 0, False: 0}, {True: 0, False: 0}
    for queue in queues:
        is_first = queue.stage in expected.first
        for state, n in queue.states.items():
            if state is not TaskState.SKIPPED:
                planned[is_first] += n
                ended[is_first] += 0 if state.is_open else n
    if not ended[True]:
        return 0.0
    followed = planned[False] * planned[True] / ended[True]
    return (ended[True] + ended[False]) / (planned[True] + followed)


#: Minimum of ended tasks for a forecast of a stage.
COMPLETIONS = 30
#: Minutes to look back: as few as hold enough completions.
MINUTES = (2, 30)
#: The middle 90 % of the draws.
SHARE = (0.05, 0.95)
BLOCK = 3
DRAWS = 200
SEED = 20260118


class MinuteFigures(Protocol):
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
    def ended(self) -> int:
        """Tasks that ended."""
        ...

    @property
    def cost_usd(self) -> float:
        """Cost of its answers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastInterval:
    """An estimate with its interval."""

    low: float
    expected: float
    high: float | None  #: None: it may never end


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: tasks done, and tasks still expected."""

    done: int  #: tasks completed or failed; skipped tasks are no work
    remaining: ForecastInterval  #: tasks still expected, future follow-ups included

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1; 0 before anything is planned."""
        total = self.done + self.remaining.expected
        return self.done / total if total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageForecast:
    """Remaining time of one stage."""

    stage: str
    left: int  #: tasks, expected follow-ups included
    seconds: ForecastInterval | None  #: None: too few tasks have ended
    needs: int  #: further completions until a forecast is possible


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Remaining time of a run and its projected cost."""

    stages: tuple[StageForecast, ...]
    cost_usd: (
        ForecastInterval | None
    )  #: of the whole run, in addition to the money already spent

    @property
    def seconds(self) -> ForecastInterval | None:
        """Time of the slowest stage, as all run in parallel; None: one is unknown."""
        spans = [stage.seconds for stage in self.stages if stage.left]
        known = [span for span in spans if span is not None]
        if not known or len(known) < len(spans):
            return None
        highs = [span.high for span in known]
        return ForecastInterval(
            low=max(span.low for span in known),
            expected=max(span.expected for span in known),
            high=None if None in highs else max(high for high in highs if high),
        )

    @property
    def needs(self) -> int:
        """Completions still needed for a forecast of the whole run."""
        return max((stage.needs for stage in self.stages if stage.left), default=0)


def left_by_stage(
    queues: Iterable[QueueProgress], first: Collection[str]
) -> dict[str, int]:
    """Return the number of remaining tasks by stage, in the order of the queues.

    Follow-ups that are not planned yet are assumed to be as many per open first-stage
    task as per finished one, as in `estimate_accuracy`.

    Args:
        queues: tasks by stage, model and state.
        first: the stages that the plan starts with; empty if unknown, then only planned
            tasks are counted.
    """
    open_: dict[str, int] = defaultdict(int)
    planned: dict[str, int] = defaultdict(int)
    for queue in queues:
        for state, n in queue.states.items():
            if state is not TaskState.SKIPPED:
                planned[queue.stage] += n
                open_[queue.stage] += n if state.is_open else 0
    begun = sum(planned[stage] for stage in planned if stage in first)
    ended = begun - sum(open_[stage] for stage in planned if stage in first)
    more = (begun - ended) / ended if ended else 0.0
    return {
        stage: open_[stage] + (0 if stage in first else round(planned[stage] * more))
        for stage in planned
    }


def forecast(
    rows: Sequence[MinuteFigures], left: Mapping[str, int], *, since: int, until: int
) -> Forecast:
    """Forecast the *left* tasks from the minutes in ``[since, until)``.

    Args:
        rows: minutes, ascending; others are skipped.
        left: remaining tasks by stage.
        since: the first whole minute since work last started.
        until: the current, unfinished minute.
    """
    stages, costs = [], []
    for stage, n in left.items():
        ended: dict[int, int] = defaultdict(int)
        cost: dict[int, float] = defaultdict(float)
        for row in rows:
            if row.stage == stage and since <= row.t < until:
                ended[row.t] += row.ended
                cost[row.t] += row.cost_usd
        window = _window(ended, since, until)
        counted = sum(ended[t] for t in window)
        if counted < COMPLETIONS or len(window) < MINUTES[0]:
            needs = max(1, COMPLETIONS - counted)
            stages.append(StageForecast(stage=stage, left=n, seconds=None, needs=needs))
            costs.append(
                None if n else ForecastInterval(low=0.0, expected=0.0, high=0.0)
            )
            continue
        draws = _draws([(ended[t], cost[t]) for t in window])
        rate = counted / len(window)
        slow, fast = _interval([tasks for tasks, _ in draws], rate)
        seconds = ForecastInterval(
            low=60 * n / fast,
            expected=60 * n / rate,
            high=60 * n / slow if slow else None,
        )
        stages.append(StageForecast(stage=stage, left=n, seconds=seconds, needs=0))
        mean_usd = sum(cost[t] for t in window) / counted
        cheap, dear = _interval(
            [usd / tasks for tasks, usd in draws if tasks], mean_usd
        )
        costs.append(
            ForecastInterval(low=n * cheap, expected=n * mean_usd, high=n * dear)
        )
    return Forecast(stages=tuple(stages), cost_usd=_sum(costs))


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


def _window(ended: Mapping[int, int], since: int, until: int) -> range:
    """Return the last minutes, as few as hold enough completions."""
    shortest, longest = MINUTES
    counted = 0
    for begin in range(until - 1, max(since, until - longest) - 1, -1):
        counted += ended.get(begin, 0)
        if counted >= COMPLETIONS and until - begin >= shortest:
            return range(begin, until)
    return range(max(since, until - longest), until)


def _draws(minutes: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    """Resample tasks and dollars per minute from blocks of the observed minutes.

    Blocks wrap around from the end to the start, so every minute has equal weight.
    """
    n = len(minutes)
    # in a short window longer blocks would be nearly equal, and the interval a point
    length = max(1, min(BLOCK, n // BLOCK))
    blocks = [
        (
            sum(minutes[(at + i) % n][0] for i in range(length)),
            sum(minutes[(at + i) % n][1] for i in range(length)),
        )
        for at in range(n)
    ]
    chance = random.Random(SEED)  # noqa: S311 - the same result for the same log
    times = -(-n // length)
    samples = []
    for _ in range(DRAWS):
        picked = chance.choices(blocks, k=times)
        samples.append(
            (
                sum(tasks for tasks, _ in picked) / (times * length),
                sum(usd for _, usd in picked) / (times * length),
            )
        )
    return samples


def _interval(values: list[float], middle: float) -> tuple[float, float]:
    """Return the interval of the draws, extended to include the estimate."""
    values.sort()
    low, high = (values[round(share * (len(values) - 1))] for share in SHARE)
    return min(low, middle), max(high, middle)


def _sum(spans: Sequence[ForecastInterval | None]) -> ForecastInterval | None:
    """Return the sum of estimates; the interval is too wide, not too narrow."""
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    return ForecastInterval(
        low=sum(span.low for span in known),
        expected=sum(span.expected for span in known),
        high=sum(span.high or 0.0 for span in known),
    )
