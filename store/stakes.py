"""What a request would come to, in figures, before anybody asks for it.

Read from the projections alone: it costs the same for ten tasks and ten million, but
for a filter, whose tasks are counted. Money is told only where every answer so far has
a price. The command line and the monitor say the same sentence about them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from store.batch_view import batches
from store.commands import Payload
from store.errors import NoSuchName
from store.limit_words import UNITS, of_model
from store.query import finals
from store.scope import is_within
from store.spending import dollars
from store.task import TaskState, usd
from store.views import Lane, count_by_lane, mean_costs, spending, status

WAITED_FOR: Final = "be waited for"
"""What calls in batches are where the process stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes:
    """The tasks and calls that a request is about, and the money."""

    tasks: int
    in_flight: int  #: calls of theirs under way
    batched: int = 0  #: of these, to models that are asked by batches
    usd: float | None = None  #: what asking the tasks again would cost; None: unknown
    spent_usd: float | None = None  #: so far; None: unknown
    cap_usd: float | None = None  #: of the whole run; None: no budget
    budget_left_usd: float | None = None  #: None: no budget

    @property
    def untouched(self) -> int:
        """Open tasks without a call under way."""
        return self.tasks - self.in_flight


def stakes_of(reader: sqlite3.Connection, kind: str, payload: Payload) -> Stakes:
    """What a request of any kind is about.

    Raises:
        NoSuchName: it names a stage or model that the run does not have.
        QueryError: its filter cannot be read.
    """
    if kind == "retry":
        return of_retry(reader, str(payload.get("filter", "")))
    stage, model = payload.get("stage"), payload.get("model")
    return of_open(
        reader,
        None if stage is None else str(stage),
        None if model is None else str(model),
    )


def of_open(
    reader: sqlite3.Connection, stage: str | None = None, model: str | None = None
) -> Stakes:
    """The open tasks of a stage, a model, or the run.

    Raises:
        NoSuchName: there are no tasks of such a name.
    """
    run = status(reader)
    check_name("stage", stage, sorted({lane.stage for lane in run.lanes}))
    check_name("model", model, sorted({lane.model for lane in run.lanes}))
    lanes = [lane for lane in run.lanes if is_within(lane.key, (stage, model))]
    running = [(lane, lane.states.get(TaskState.RUNNING, 0)) for lane in lanes]
    by_batches = {batch.model for batch in batches(reader)}
    return Stakes(
        tasks=sum(n for lane in lanes for s, n in lane.states.items() if s.is_open),
        in_flight=sum(n for _, n in running),
        batched=sum(n for lane, n in running if lane.model in by_batches),
        **_money(reader),
    )


def check_name(what: str, name: object, known: Sequence[str]) -> None:
    """See that a run has what a request names; None names everything.

    Raises:
        NoSuchName: it has not.
    """
    if name is not None and name not in known:
        raise NoSuchName(f"there is no {what} {name!r} here: use {', '.join(known)}")


def of_retry(reader: sqlite3.Connection, expression: str) -> Stakes:
    """The final tasks that a filter names, at what such tasks have cost so far.

    Raises:
        QueryError: the filter cannot be read.
    """
    counts = count_by_lane(reader, finals(expression))
    run = status(reader)
    return Stakes(
        tasks=sum(counts.values()),
        in_flight=0,
        batched=0,
        usd=None if run.cost_usd is None else _cost(counts, mean_costs(reader)),
        **_money(reader),
    )


def _cost(counts: Mapping[Lane, int], means: Mapping[Lane, float]) -> float | None:
    """A reply each at their lanes' means; None: a lane has had none so far."""
    if not counts.keys() <= means.keys():
        return None
    return sum(n * means[lane] for lane, n in sorted(counts.items()))


def _money(reader: sqlite3.Connection) -> dict[str, float | None]:
    """What is spent and may be, and what the budget leaves beside calls in flight."""
    money = spending(reader)
    taken = money.spent_pico + money.possible_pico + money.in_flight_pico
    left = None if money.cap_pico is None else usd(money.cap_pico - taken)
    return {
        "spent_usd": money.spent_usd,
        "cap_usd": money.cap_usd,
        "budget_left_usd": left,
    }


def sentence(kind: str, payload: Payload, stakes: Stakes, run_id: str) -> str:
    """What a request would come to, in one sentence with its figures."""
    return _SENTENCES[kind](payload, stakes, run_id)


def _tasks(n: int, kind: str = "") -> str:
    return f"{n:,} {kind}task{'' if n == 1 else 's'}"


def _calls(stakes: Stakes, of: str = "", *, end: str = "finish", left: str) -> str:
    """That calls in flight would *end*, and those in batches be *left* to something."""
    alone, batched = stakes.in_flight - stakes.batched, stakes.batched
    said = [f"{_call(alone)} in flight{of} would {end}"] if alone or not batched else []
    if batched:
        said.append(f"{_call(batched)} in batches{of} would {left}")
    return " and ".join(said)


def _call(n: int) -> str:
    return f"{n:,} call{'' if n == 1 else 's'}"


def _pause(payload: Payload, stakes: Stakes, run_id: str) -> str:
    del payload
    return (
        f"{_tasks(stakes.tasks, 'open ')} of {run_id} would be held back; "
        f"{_calls(stakes, left=WAITED_FOR)}."
    )


def _resume(payload: Payload, stakes: Stakes, run_id: str) -> str:
    del payload
    return f"{_tasks(stakes.tasks, 'open ')} of {run_id} would go on."


def _drain(payload: Payload, stakes: Stakes, run_id: str) -> str:
    del payload
    calls = _calls(stakes, f" of {run_id}", left="stay at the provider")
    return f"{calls}; {_tasks(stakes.untouched)} would stay open for siftlog resume."


def _cancel(payload: Payload, stakes: Stakes, run_id: str) -> str:
    end = "be cut" if payload.get("now") else "finish"
    return (
        f"{_tasks(stakes.untouched, 'open ')} of {run_id} would be skipped; "
        f"{_calls(stakes, end=end, left='be cancelled at the provider')}."
    )


def _retry(payload: Payload, stakes: Stakes, run_id: str) -> str:
    del payload
    if not stakes.tasks:
        return (
            f"No final task of {run_id} is one of those: nothing is asked; siftlog "
            f"status {run_id} counts the reasons there are."
        )
    cost = "" if stakes.usd is None else f", for about {dollars(stakes.usd)}"
    if stakes.budget_left_usd is not None:
        cost += f"; the budget has {dollars(stakes.budget_left_usd)} left"
    return f"{_tasks(stakes.tasks)} of {run_id} would be asked again{cost}."


def _limits(payload: Payload, stakes: Stakes, run_id: str) -> str:
    del run_id
    named = {name: payload[name] for name in UNITS if name in payload}
    values = {name: None if v is None else float(v) for name, v in named.items()}
    model = payload.get("model")
    limits = of_model(None if model is None else str(model), values)
    return (
        f"{limits} would be the most for {_tasks(stakes.tasks, 'open ')}; "
        f"{_calls(stakes, left=WAITED_FOR)}."
    )


def _budget(payload: Payload, stakes: Stakes, run_id: str) -> str:
    del run_id
    said = "nothing is known to be spent"
    if stakes.spent_usd is not None:
        said = f"{dollars(stakes.spent_usd)} spent"
    left = stakes.budget_left_usd
    if stakes.cap_usd is None or left is None:
        said += ", no budget"
    else:
        said += f", {dollars(left)} left of {dollars(stakes.cap_usd)}"
        if "add_usd" in payload:
            said += f", {dollars(left + float(payload['add_usd'] or 0))} then"
    return f"{said}, for {_tasks(stakes.tasks, 'open ')}."


_SENTENCES: Mapping[str, Callable[[Payload, Stakes, str], str]] = {
    "pause": _pause,
    "resume": _resume,
    "drain": _drain,
    "cancel": _cancel,
    "retry": _retry,
    "limits": _limits,
    "budget": _budget,
}
