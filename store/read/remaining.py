"""Estimates how many tasks of a run remain, with follow-ups that are not planned yet.

A first-stage task that ends plans its follow-ups, whose ends may plan more. So a stage
is expected to get as many tasks for each open task of the stage before it as it got for
each ended one. Models differ, so each counts for itself, drawn to the mean of all while
few of its tasks have ended. The estimate from before the run counts like a few ended
items, so it matters until the run has some of its own. If it tried every item, an item
counts by the follow-ups that are expected of it: the papers with many questions may all
come last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Final, Protocol

from store.events import ExpectedUsage
from store.read.forecast import ForecastInterval, Progress, Z
from store.task import TaskState

POOLED: Final = 9.0
"""Ended tasks that the mean of all models is worth in the ratio of one."""
PRIOR_ITEMS: Final = 4.0
"""Ended items that the estimate before the run is worth, if it tried many."""
EVEN: Final = 0.05
"""Share of the follow-ups that any item may have, whatever is expected of it."""
ITEM_SPREAD: Final = 0.8
"""Coefficient of variation of an item's follow-ups."""

FEW_ITEMS: Final = 8.0
"""Items of a whole plan at which that doubles: few items are no sample of each other,
as when the longest papers come first."""


class QueueStates(Protocol):
    """Tasks of one stage and model, by state."""

    @property
    def stage(self) -> str:
        """The stage's name."""
        ...

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def states(self) -> Mapping[TaskState, int]:
        """Tasks by state."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRemaining:
    """Tasks of one stage and model."""

    stage: str
    model: str
    done: int  #: completed or failed
    open: int  #: planned
    more: float = 0.0  #: expected, not planned yet

    @property
    def left(self) -> float:
        """Tasks that remain."""
        return self.open + self.more


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """Tasks that remain, by stage and model."""

    queues: tuple[QueueRemaining, ...]  #: in the order of the stages
    #: expected follow-ups of stages that have no task yet, by first-stage model
    unseen: Mapping[str, float]
    error: float  #: relative standard deviation of what is not planned yet
    errors: Mapping[str, float]  #: the same, by first-stage model
    is_whole: bool  #: every first-stage task is planned, and follow-ups are known of

    @cached_property
    def more(self) -> float:
        """Expected tasks that are not planned yet."""
        return sum(queue.more for queue in self.queues) + sum(self.unseen.values())

    @property
    def left(self) -> float:
        """All tasks that remain."""
        return self.more + sum(queue.open for queue in self.queues)

    @cached_property
    def progress(self) -> Progress:
        """Tasks done, and those that remain."""
        open_ = sum(queue.open for queue in self.queues)
        factor = math.exp(Z * self.error)
        high = open_ + self.more * factor
        return Progress(
            done=sum(queue.done for queue in self.queues),
            remaining=ForecastInterval(
                low=open_ + self.more / factor,
                expected=self.left,
                high=high if self.is_whole else None,
            ),
        )


def set_apart(
    remaining: Remaining, is_paused: Callable[[str, str], bool]
) -> tuple[Remaining, float]:
    """Return what remains without the tasks that wait for a pause to end, and these.

    Expected follow-ups of such a task wait with it.

    Args:
        remaining: the tasks.
        is_paused: whether a stage and model start no calls.
    """
    active: list[QueueRemaining] = []
    # of the stage before, by model: tasks that remain, and those that are not paused
    before: dict[str, tuple[float, float]] = {}
    for _, group in groupby(remaining.queues, key=attrgetter("stage")):
        here: dict[str, tuple[float, float]] = {}
        for queue in group:
            followed = (
                [before[queue.model]] if queue.model in before else before.values()
            )
            left = sum(n for n, _ in followed)
            share = sum(n for _, n in followed) / left if left else 1.0
            if is_paused(queue.stage, queue.model):
                active.append(replace(queue, open=0, more=0.0))
            else:
                active.append(replace(queue, more=queue.more * share))
            here[queue.model] = queue.left, active[-1].left
        before = here
    unseen = {}
    for model, tasks in remaining.unseen.items():
        planned = sum(q.open for q in remaining.queues if q.model == model)
        going_on = sum(q.open for q in active if q.model == model)
        unseen[model] = tasks * (going_on / planned if planned else 1.0)
    rest = replace(remaining, queues=tuple(active), unseen=unseen)
    return rest, remaining.left - rest.left


def remaining_tasks(
    queues: Iterable[QueueStates],
    *,
    order: Sequence[str],
    first: Sequence[str],
    expected: ExpectedUsage | None,
    consumed: int,
    is_exhausted: bool,
    replicates: int = 1,
    ended_items: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Remaining:
    """Estimate the tasks that remain.

    Args:
        queues: tasks by stage, model and state.
        order: the stages, in the order in which they got their first tasks.
        first: the stages that the plan starts with.
        expected: the estimate of one first-stage spec; None: there is none.
        consumed: first-stage specs that are planned.
        is_exhausted: whether these are all.
        replicates: of each item; they show together what one item shows, as the same
            item has about as many follow-ups each time.
        ended_items: ended first-stage tasks of each item that is sent, in the order of
            the plan, by model; needed where the estimate has follow-ups of each item.
    """
    counted = {
        (queue.stage, queue.model): QueueRemaining(
            stage=queue.stage,
            model=queue.model,
            done=sum(
                queue.states.get(state, 0)
                for state in (TaskState.COMPLETED, TaskState.FAILED)
            ),
            open=sum(n for state, n in queue.states.items() if state.is_open),
        )
        for queue in queues
    }
    starts = [queue for queue in counted.values() if queue.stage in first]
    begun = {queue.model: 0 for queue in starts}
    ended: dict[str, float] = dict(begun)
    for queue in starts:
        begun[queue.model] += queue.done + queue.open
        ended[queue.model] += queue.done
    is_begun = any(ended.values())
    shape = expected.follow_ups if expected is not None and is_exhausted else []
    if sum(shape) and all(
        n == len(shape) * replicates and len(ended_items.get(model, ())) == len(shape)
        for model, n in begun.items()
    ):
        ended = {model: _by_follow_ups(ended_items[model], shape) for model in begun}
    else:
        shape = []
    grown = list(starts)
    # of the stage before, by model: tasks in the end, and those that have ended
    total: Mapping[str, float] = begun
    done: Mapping[str, float] = ended
    for stage in order:
        by_model = {q.model: q for q in counted.values() if q.stage == stage}
        if stage in first or not by_model:
            continue
        if set(by_model) <= set(total):
            stage_queues = _followed(stage, by_model, total, done, replicates)
        else:
            stage_queues = _followed_by_others(by_model, total, done)
        grown += stage_queues
        total = {q.model: q.done + q.open + q.more for q in stage_queues}
        done = {q.model: q.done for q in stage_queues}
    return _with_estimate(
        grown,
        begun,
        ended,
        expected=expected,
        consumed=consumed,
        is_begun=is_begun,
        is_exhausted=is_exhausted,
        worth=_evenness(shape) / replicates,
    )


def _evenness(follow_ups: Sequence[float]) -> float:
    """Return the share of the items that the follow-ups come from: 1 if all have many.

    It is the effective number of items of unequal weights (Kish 1965, "Survey
    Sampling"), relative to all.

    >>> _evenness([4.0, 4.0]), _evenness([0.0, 0.0, 0.0, 8.0]), _evenness([])
    (1.0, 0.25, 1.0)
    """
    if not follow_ups:
        return 1.0
    squares = sum(n * n for n in follow_ups)
    return sum(follow_ups) ** 2 / squares / len(follow_ups)


def _by_follow_ups(ended: Sequence[int], follow_ups: Sequence[float]) -> float:
    """Return ended first-stage tasks, each counted by its expected follow-ups.

    The sum over all tasks is their number.

    Args:
        ended: tasks of a model, by item.
        follow_ups: that are expected of each item.
    """
    passed = sum(n * of_one for n, of_one in zip(ended, follow_ups, strict=True))
    by_follow_ups = len(follow_ups) * passed / sum(follow_ups)
    return EVEN * sum(ended) + (1 - EVEN) * by_follow_ups


def _followed(
    stage: str,
    by_model: Mapping[str, QueueRemaining],
    total: Mapping[str, float],
    done: Mapping[str, float],
    replicates: int,
) -> list[QueueRemaining]:
    """Return a stage's queues where each model follows itself up."""
    planned = {
        model: by_model[model].done + by_model[model].open if model in by_model else 0
        for model in total
    }
    all_done = sum(done.values())
    mean = sum(planned.values()) / all_done if all_done else 0.0
    queues = []
    for model in total:
        pooled = POOLED * replicates
        ratio = (planned[model] + pooled * mean) / (done[model] + pooled)
        queue = by_model.get(model)
        queues.append(
            QueueRemaining(
                stage=stage,
                model=model,
                done=queue.done if queue else 0,
                open=queue.open if queue else 0,
                more=ratio * max(0.0, total[model] - done[model]),
            )
        )
    return queues


def _followed_by_others(
    by_model: Mapping[str, QueueRemaining],
    total: Mapping[str, float],
    done: Mapping[str, float],
) -> list[QueueRemaining]:
    """Return a stage's queues where other models follow up, such as a judge."""
    all_done = sum(done.values())
    increase = (sum(total.values()) - all_done) / all_done if all_done else 0.0
    return [
        QueueRemaining(
            stage=queue.stage,
            model=queue.model,
            done=queue.done,
            open=queue.open,
            more=max(0.0, increase) * (queue.done + queue.open),
        )
        for queue in by_model.values()
    ]


def _with_estimate(
    queues: Sequence[QueueRemaining],
    begun: Mapping[str, int],
    ended: Mapping[str, float],
    *,
    expected: ExpectedUsage | None,
    consumed: int,
    is_begun: bool,
    is_exhausted: bool,
    worth: float,
) -> Remaining:
    """Combine what the run has shown with the estimate from before it.

    Args:
        queues: with the follow-ups that the run lets expect.
        begun: first-stage tasks by model.
        ended: those of them that have ended, counted by their expected follow-ups.
        expected: the estimate of one first-stage spec; None: there is none.
        consumed: first-stage specs that are planned.
        is_begun: whether a first-stage task has ended.
        is_exhausted: whether the first stage is planned whole.
        worth: items that a first-stage task tells as much as: less than one if there
            are replicates, or if few items have most of the follow-ups.
    """
    all_begun, all_ended = sum(begun.values()), sum(ended.values())
    open_first = all_begun - all_ended
    # models follow an item up alike
    items = all_ended / max(1, len(begun)) * worth
    known = 0.0  # items that the estimate is worth
    more = sum(q.more for q in queues)
    unseen: dict[str, float] = {}
    knows = is_begun
    if expected is not None and open_first:
        # of two errors: the baseline finds more or less than a model; few were tried
        known = 1 / (1 / PRIOR_ITEMS + 1 / max(1, expected.tried))
        follow_ups = max(0.0, expected.calls[1] * consumed - all_begun)
        prior = follow_ups * open_first / all_begun
        wanted = (prior * known + more * items) / (known + items)
        if more:
            queues = [replace(q, more=q.more * wanted / more) for q in queues]
        else:
            unseen = {
                model: wanted * (begun[model] - ended[model]) / open_first
                for model in begun
            }
        knows = wanted > 0 or expected.tried + items >= min(FEW_ITEMS, consumed)
    return Remaining(
        queues=tuple(queues),
        unseen=unseen,
        error=_error(items + known, open_first / max(1, len(begun)) * worth),
        errors={
            model: _error(
                ended[model] * worth
                + known
                + min(POOLED, (all_ended - ended[model]) * worth),
                (begun[model] - ended[model]) * worth,
            )
            for model in begun
        },
        is_whole=is_exhausted and (knows or not open_first),
    )


def _error(known: float, still: float) -> float:
    """Return the relative error of the follow-ups of items from those of others."""
    spread = ITEM_SPREAD * (1 + FEW_ITEMS / max(1.0, known + still))
    return spread * math.sqrt(1 / max(0.5, known) + 1 / max(1.0, still))


COST_SPREAD: Final = 0.6
"""Coefficient of variation of a task's cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingCost:
    """The cost of the tasks that remain, in dollars."""

    usd: ForecastInterval
    models: Mapping[str, float]  #: by model


def remaining_cost(
    remaining: Remaining,
    costs: Mapping[tuple[str, str], tuple[float, int]],
    expected: ExpectedUsage | None,
) -> RemainingCost | None:
    """Return the cost of the tasks that remain; None: unknown.

    Args:
        remaining: the tasks.
        costs: dollars and completed tasks so far, by stage and model.
        expected: the estimate of one first-stage spec; None: there is none.
    """
    counted = sum(n for _, n in costs.values())
    usual: float | None = None
    if expected is not None and expected.cost_usd is not None and expected.calls[1]:
        usual = expected.cost_usd[1] / expected.calls[1]
    elif counted:
        usual = sum(usd for usd, _ in costs.values()) / counted
    if usual is None:
        return None
    models = {model: usual * tasks for model, tasks in remaining.unseen.items()}
    for queue in remaining.queues:
        usd, n = costs.get((queue.stage, queue.model), (0.0, 0))
        # the estimate is worth one task of the queue
        cost = queue.left * (usd + usual) / (n + 1)
        models[queue.model] = models.get(queue.model, 0.0) + cost
    total = sum(models.values())
    all_left = sum(queue.left for queue in remaining.queues)
    all_left += sum(remaining.unseen.values())
    share = remaining.more / all_left if all_left else 0.0
    error = math.hypot(
        remaining.error * share, COST_SPREAD / math.sqrt(max(1, counted))
    )
    factor = math.exp(Z * error)
    return RemainingCost(
        usd=ForecastInterval(
            low=total / factor,
            expected=total,
            high=total * factor if remaining.is_whole else None,
        ),
        models=models,
    )
