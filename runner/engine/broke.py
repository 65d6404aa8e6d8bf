"""What is said where a run ends at its budget."""

from __future__ import annotations

from runner.engine.lane import Work
from runner.money.budget import WHOLE, BudgetStatistics
from store.read.usage import dollars
from store.task import usd


def why_broke(work: Work, budget: BudgetStatistics) -> str:
    """What is spent, and what there is no room for.

    Args:
        work: The task that found no room.
        budget: The run's money.
    """
    cap_pico = budget.cap_pico or 0
    cap = dollars(usd(cap_pico))
    what = "budget" if budget.share == WHOLE else "shard's share of the budget"
    spent = f"{dollars(usd(budget.spent_pico))} spent"
    if budget.possible_pico:
        possible = dollars(usd(budget.possible_pico))
        spent += f", up to {possible} more for calls whose reply or usage never came"
    next_call = f"call of {work.model} may cost {dollars(usd(work.worst_pico))}"
    why = f"; {work.why_worst}" if work.why_worst else ""
    if work.worst_pico > cap_pico:
        return f"The {what} of {cap} is too small: a single {next_call} ({spent}){why}"
    return f"The {what} of {cap} is reached: {spent}; the next {next_call}{why}"
