"""A what-if on a recorded run, from its log and the options to try."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.errors import UsageError
from runner.job import Job
from runner.limits.bucket import MINUTE_S
from runner.limits.limiter import Endpoint
from runner.money.prices import price_of
from runner.options import RunOptions
from runner.roles import assigned
from runner.whatif.course import Census, RecordedItems, found_rate, output_limits
from runner.whatif.items import FoundRate
from runner.whatif.simulation import ASSUMED, Asked, Outcome, what_if
from store.read.status import run_started, status
from store.task import PICO_PER_USD


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """How a recorded run would go with other options."""

    run_id: str
    outcome: Outcome
    costs_usd: Mapping[str, float | None]  #: by model; None: its price is unknown
    census: Census
    assumes: tuple[str, ...]

    @property
    def cost_usd(self) -> float | None:
        """Of all models; None while a price is unknown."""
        costs = list(self.costs_usd.values())
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


def rehearse(
    connection: sqlite3.Connection, job: Job, *, then: RunOptions, now: RunOptions
) -> Rehearsal:
    """Play a recorded run again with other options, its attempts as they were.

    A model that the run did not ask goes like the first that it asked in that role.

    Args:
        connection: a reader of the run.
        job: whose run it is.
        then: the options that it ran with.
        now: models, limits, prices, deadline and seed to try.

    Raises:
        UsageError: the run has nothing to go by.
    """
    first, stands = run_started(connection), status(connection)
    if first.imported or not stands.attempts.started:
        raise UsageError(
            f"Run {first.run_id} made no calls: a what-if needs a run whose calls "
            "were recorded; siftlog estimate JOB needs none."
        )
    casting = _cast(first.models, assigned(job, now).models)
    prices = {model: price_of(model, now) for model in casting.like}
    stages = [stage.name for stage in job.stages]
    output = output_limits(connection, stages)
    found = {
        seen.model: found_rate(connection, seen, then.of(seen.model).rpm)
        for seen in stands.limits
    }
    census = Census()
    endpoints: dict[str, tuple[Endpoint, FoundRate | None]] = {}
    asked = []
    for model, like in casting.like.items():
        name = now.endpoint_of(model)
        endpoint, rate = endpoints.setdefault(name, (Endpoint(name), found.get(like)))
        items = RecordedItems(
            connection=connection,
            model=like,
            names={**casting.names, like: model},
            stages=stages,
            prices=prices,
            max_tokens=output,
            census=census,
            drops_refusals=found.get(like) is not None,
        )
        asked.append(
            Asked(
                model=model,
                stages=stages,
                limits=now.limits_of(model),
                endpoint=endpoint,
                rate=rate,
                items=items,
            )
        )
    outcome = what_if(asked, deadline_s=now.deadline_s, seed=now.seed)
    rates = {name: rate for name, (_, rate) in endpoints.items()}
    return Rehearsal(
        run_id=first.run_id,
        outcome=outcome,
        costs_usd={
            model: None if sums.unpriced else sums.cost_pico / PICO_PER_USD
            for model, sums in outcome.models.items()
        },
        census=census,
        assumes=(*_assumed(casting.like, census), *_allowed(rates), *ASSUMED),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Casting:
    """Who plays whom."""

    like: Mapping[str, str]  #: by model now: the recorded one that it goes like
    names: Mapping[str, str]  #: by recorded model: the one that goes like it


def _cast(
    recorded: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
) -> _Casting:
    like: dict[str, str] = {}
    names: dict[str, str] = {}
    for role, models in recorded.items():
        for model in wanted[role]:
            like[model] = model if model in models else models[0]
        for model in models:
            names[model] = model if model in wanted[role] else wanted[role][0]
    return _Casting(like=like, names=names)


def _allowed(rates: Mapping[str, FoundRate | None]) -> list[str]:
    return [
        f"{name} allows {rate.per_second * MINUTE_S:,.0f} requests a minute, as the "
        "run found"
        if rate is not None
        else f"{name} has no limits but those that the run met"
        for name, rate in rates.items()
    ]


def _assumed(source: Mapping[str, str], census: Census) -> list[str]:
    said = [
        f"{model} answers as {recorded} did"
        for model, recorded in source.items()
        if model != recorded
    ]
    if census.taken_after:
        said.append(
            f"{census.taken_after:,} tasks without an outcome go like tasks that ended"
        )
    if census.left_out:
        said.append(f"{census.left_out:,} tasks without an outcome are left out")
    return said
