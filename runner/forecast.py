"""What a request would come to, in figures, before anybody asks for it.

Read from the projections alone: it costs the same for ten tasks and ten million, but
for a filter, whose tasks are counted. Money is told only where every answer so far has
a price.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from runner.effects import check_name, finals
from runner.scheduler import is_within
from store.task import TaskState, usd
from store.views import Lane, count_by_lane, mean_costs, spending, status


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The tasks and calls that a request is about, and the money."""

    tasks: int
    in_flight: int  #: calls of theirs under way
    usd: float | None = None  #: what asking the tasks again would cost; None: unknown
    spent_usd: float | None = None  #: so far; None: unknown
    cap_usd: float | None = None  #: of the whole run; None: no budget
    budget_left_usd: float | None = None  #: None: no budget


def of_open(
    reader: sqlite3.Connection, stage: str | None = None, model: str | None = None
) -> Forecast:
    """The open tasks of a stage, a model, or the run.

    Raises:
        Refused: there are no tasks of such a name.
    """
    run = status(reader)
    check_name("stage", stage, sorted({lane.stage for lane in run.lanes}))
    check_name("model", model, sorted({lane.model for lane in run.lanes}))
    lanes = [lane for lane in run.lanes if is_within(lane.key, (stage, model))]
    return Forecast(
        tasks=sum(n for lane in lanes for s, n in lane.states.items() if s.is_open),
        in_flight=sum(lane.states.get(TaskState.RUNNING, 0) for lane in lanes),
        **_money(reader),
    )


def of_retry(reader: sqlite3.Connection, expression: str) -> Forecast:
    """The final tasks that a filter names, at what such tasks have cost so far.

    Raises:
        QueryError: the filter cannot be read.
    """
    counts = count_by_lane(reader, finals(expression))
    run = status(reader)
    return Forecast(
        tasks=sum(counts.values()),
        in_flight=0,
        usd=None if run.cost_usd is None else _cost(counts, mean_costs(reader)),
        **_money(reader),
    )


def _cost(counts: Mapping[Lane, int], means: Mapping[Lane, float]) -> float | None:
    """The tasks at their lanes' means; None: a lane has completed none so far."""
    if not counts.keys() <= means.keys():
        return None
    return sum(n * means[lane] for lane, n in sorted(counts.items()))


def _money(reader: sqlite3.Connection) -> dict[str, float | None]:
    """What is spent and may be, and what the budget leaves beside calls in flight."""
    money = spending(reader)
    taken = money.spent_pico + money.possible_pico
    left = None if money.cap_pico is None else usd(money.cap_pico - taken)
    return {
        "spent_usd": money.spent_usd,
        "cap_usd": money.cap_usd,
        "budget_left_usd": left,
    }
