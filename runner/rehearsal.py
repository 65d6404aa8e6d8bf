"""A what-if on a recorded run, from its log and the options to try."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from runner.bucket import MINUTE_S
from runner.course import Census, RecordedItems, found_ceiling, output_limits
from runner.errors import UsageError
from runner.limiter import Endpoint, Limits
from runner.options import RunOptions
from runner.prices import price_of
from runner.whatif import ASSUMED, Asked, Ceiling, Outcome, what_if
from store.task import PICO_PER_USD
from store.views import run_started, status


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
    connection: sqlite3.Connection,
    stages: tuple[str, ...],
    *,
    then: RunOptions,
    now: RunOptions,
) -> Rehearsal:
    """Play a recorded run again with other options, its attempts as they were.

    A model that the run did not ask goes like the first that it did.

    Args:
        connection: a reader of the run.
        stages: of its job, in order.
        then: the options that it ran with.
        now: models, limits, deadline and seed to try.

    Raises:
        UsageError: the run has nothing to go by.
    """
    first, stands = run_started(connection), status(connection)
    if first.imported or not stands.attempts.started:
        raise UsageError(
            f"Run {first.run_id} made no calls: a what-if needs a run whose calls "
            "were recorded; siftlog estimate JOB needs none."
        )
    recorded = [m for models in first.models.values() for m in models]
    subjects = first.models["subject"]
    source = {m: m if m in recorded else subjects[0] for m in now.model}
    source |= {m: m for m in recorded if m not in subjects}
    census = Census()
    found = {
        seen.model: found_ceiling(connection, seen, then.of(seen.model).rpm)
        for seen in stands.limits
    }
    endpoints: dict[str, tuple[Endpoint, Ceiling | None]] = {}
    output = output_limits(connection, stages)
    asked = []
    for model, like in source.items():
        own = now.of(model)
        name = own.base_url or model
        endpoint, ceiling = endpoints.setdefault(
            name, (Endpoint(name), found.get(like))
        )
        asked.append(
            Asked(
                model=model,
                stages=stages,
                limits=Limits(
                    concurrency=own.concurrency or now.concurrency,
                    rpm=own.rpm,
                    tpm=own.tpm,
                    weight=own.weight,
                ),
                endpoint=endpoint,
                ceiling=ceiling,
                items=RecordedItems(
                    connection=connection,
                    model=like,
                    name=model,
                    stages=stages,
                    price=price_of(model, now),
                    max_tokens=output,
                    census=census,
                    drops_refusals=found.get(like) is not None,
                ),
            )
        )
    outcome = what_if(asked, deadline_s=now.deadline_s, seed=now.seed)
    ceilings = {name: ceiling for name, (_, ceiling) in endpoints.items()}
    return Rehearsal(
        run_id=first.run_id,
        outcome=outcome,
        costs_usd={
            model: None if sums.unpriced else sums.cost_pico / PICO_PER_USD
            for model, sums in outcome.models.items()
        },
        census=census,
        assumes=(*_assumed(source, census), *_allowed(ceilings), *ASSUMED),
    )


def _allowed(ceilings: Mapping[str, Ceiling | None]) -> list[str]:
    return [
        f"{name} allows {ceiling.per_second * MINUTE_S:,.0f} requests a minute, as the "
        "run found"
        if ceiling is not None
        else f"{name} has no limits but those that the run met"
        for name, ceiling in ceilings.items()
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
