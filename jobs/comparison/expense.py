"""What the answers of a run's models cost, and how long they took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.comparison.replaying import Replayed
from store.database import open_reader
from store.read.live import latencies
from store.read.status import Status, status
from store.task import TaskState

_ENDED = (TaskState.COMPLETED, TaskState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expense:
    """What one model took in one run, as its log has it now."""

    usd: float | None = None
    """Dollars for each unit: all replies of the model, those of later stages and
    replicates too; None: a price is unknown, answers were made elsewhere, or some came
    from the response cache, which cost nothing here."""
    seconds: float | None = None
    """Median latency of an answer; None: no answer was measured."""


NOTHING_KNOWN = Expense()
TASK = "task"
"""What costs are told by where the job names no unit: a task that ended."""


def unit(run: Replayed) -> str:
    """What costs are told by: the first unit that the job names."""
    counted = run.scoring.scorecard.units.values()
    return next((name for units in counted for name in units), TASK)


def expenses(run: Replayed, by: str) -> Mapping[str, Expense]:
    """By model; *by* is the unit that dollars are for."""
    with open_reader(run.folder.log) as reader:
        seen = status(reader)
        median = {each.model: each.p50_ms for each in latencies(reader)}
    card = run.scoring.scorecard
    found = {}
    for model in card.models:
        n = _ended(seen, model) if by == TASK else card.units.get(model, {}).get(by, 0)
        ms = median.get(model)
        found[model] = Expense(
            usd=_usd(seen, model, n), seconds=None if ms is None else ms / 1e3
        )
    return found


def _usd(seen: Status, model: str, n: int) -> float | None:
    is_unknown = seen.imported or seen.cost_usd is None or seen.attempts.cached > 0
    if is_unknown or not n:
        return None
    return seen.model_cost_usd.get(model, 0.0) / n


def _ended(seen: Status, model: str) -> int:
    return sum(
        lane.states.get(state, 0)
        for lane in seen.lanes
        if lane.model == model
        for state in _ENDED
    )
