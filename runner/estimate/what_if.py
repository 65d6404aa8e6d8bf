"""Replays a recorded run under other limits, from its log and the options to try."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

import msgspec

from runner import errors as e
from runner.engine.failure_policy import RETRY_RULES
from runner.errors import UsageError
from runner.estimate.simulation import (
    ASSUMED,
    LearnedRateLimit,
    RecordedAttempt,
    RecordedItem,
    RecordedTask,
    ReplayedModel,
    WhatIfOutcome,
    what_if,
)
from runner.job import Job
from runner.limits.limiter import Endpoint
from runner.limits.rate_limits import (
    MINUTE_S,
    NO_HEADER_LIMITS,
    HeaderLimits,
    Quota,
    header_limits,
)
from runner.messages import Usage
from runner.money.prices import Price, cost_pico, price_of
from runner.options import RunOptions
from runner.roles import assigned
from store.events import AttemptAnswered, AttemptFailed
from store.query import parse_query
from store.read.limits import ObservedLimits
from store.read.status import run_started, status
from store.read.tasks import (
    AttemptEnd,
    AttemptHistory,
    attempt_histories,
    attempts,
    events,
    tasks,
)
from store.tables import payload
from store.task import PICO_PER_USD, TaskState

PAGE: Final = 256
LENDERS: Final = 256
"""Ended tasks of a stage and model that open ones imitate, in turn."""
MARGIN: Final = 1.2
"""Reserved prompt tokens relative to actual ones (bytes by three: 1.05 for papers, 1.4
for prose)."""
BOUND: Final = 0.98
"""Fraction of the user's limit above which an observed limit is the user's limit."""
REFUSALS: Final = 200
"""Failures read to learn about refusals."""

_ERRORS: Final[Mapping[str, type[e.AttemptError]]] = {
    error.__name__: error for error in RETRY_RULES
}
_MENDED: Final = (
    e.AuthFailed,
    e.QuotaSpent,
    e.NotServed,
    e.Unavailable,
    e.JobFault,
    e.Cancelled,
)
"""Errors caused or fixed by the user; they would not recur."""


@dataclass(slots=True, kw_only=True)
class ReplayCounts:
    """Counts made while reading; complete once the items are used up."""

    tasks: int = 0
    taken_after: int = 0  #: tasks without an outcome that imitate others
    left_out: int = 0  #: tasks without an outcome and without others to imitate


@dataclass(slots=True, kw_only=True)
class RecordedItems:
    """The first-stage items of one model, possibly replayed as another."""

    connection: sqlite3.Connection
    model: str  #: model whose first-stage tasks are replayed
    names: Mapping[str, str]  #: names of recorded models in the simulation
    stages: Sequence[str]
    prices: Mapping[str, Price | None]  #: by name in the simulation
    max_tokens: Mapping[str, int]  #: maximum tokens of a reply, by stage
    census: ReplayCounts
    drops_refusals: bool  #: a learned rate creates its own refusals
    _lenders: dict[tuple[str, str], deque[RecordedTask]] = field(default_factory=dict)
    _whole: deque[RecordedItem] = field(default_factory=lambda: deque(maxlen=LENDERS))

    def __iter__(self) -> Iterator[RecordedItem]:
        after = 0
        while page := attempt_histories(
            self.connection, self.model, after=after, limit=PAGE
        ):
            after = page[-1][0].row.task
            for family in page:
                item = self._item(family)
                if item is not None:
                    yield item

    def _item(self, family: tuple[AttemptHistory, ...]) -> RecordedItem | None:
        first, *later = family
        if first.row.state is TaskState.SKIPPED:
            return None
        self.census.tasks += len(family)
        if first.row.state.is_open and not later:
            return self._borrowed_item()
        trial = self._trial(first)
        if trial is None:
            return None
        item = RecordedItem(first=trial, later=tuple(self._later(later)))
        self._whole.append(item)
        return item

    def _borrowed_item(self) -> RecordedItem | None:
        if not self._whole:
            self.census.left_out += 1
            return None
        self.census.taken_after += 1
        self._whole.rotate(-1)
        return self._whole[-1]

    def _later(self, later: Sequence[AttemptHistory]) -> list[RecordedTask]:
        unskipped = (c for c in later if c.row.state is not TaskState.SKIPPED)
        trials = [trial for c in unskipped if (trial := self._trial(c)) is not None]
        return sorted(trials, key=lambda trial: self.stages.index(trial.stage))

    def _trial(self, history: AttemptHistory) -> RecordedTask | None:
        row = history.row
        lenders = self._lenders.setdefault(
            (row.stage, row.model), deque(maxlen=LENDERS)
        )
        model = self.names[row.model]
        ended = _attempts(history.attempts, self.prices[model])
        if self.drops_refusals:
            ended = tuple(a for a in ended if not isinstance(a.error, e.RateLimited))
        if row.state.is_open or not ended:
            if not lenders:
                self.census.left_out += 1
                return None
            self.census.taken_after += 1
            lenders.rotate(-1)
            return lenders[-1]
        tokens = max(attempt.tokens_in for attempt in ended)
        trial = RecordedTask(
            stage=row.stage,
            model=model,
            attempts=ended,
            worst_tokens=round(MARGIN * tokens) + self.max_tokens.get(row.stage, 0),
        )
        lenders.append(trial)
        return trial


def endpoint_rate(
    connection: sqlite3.Connection, observed: ObservedLimits, by_hand: float | None
) -> LearnedRateLimit | None:
    """Return the request rate that the run learned; None if it met no limit.

    Args:
        connection: a reader of the run.
        observed: the model's limits at the end.
        by_hand: the user's limit in requests per minute.
    """
    if observed.rpm is None or (by_hand is not None and observed.rpm > BOUND * by_hand):
        return None
    refused = [
        row.event
        for row in events(connection, kinds=["attempt_failed"], limit=REFUSALS)
        if isinstance(row.event, AttemptFailed) and row.event.error == "RateLimited"
    ]
    return LearnedRateLimit(
        observed.rpm / MINUTE_S,
        refused_s=median([event.latency_ms for event in refused] or [0.0]) / 1e3,
        sends_retry_after=any(event.retry_after_s is not None for event in refused),
    )


def output_limits(
    connection: sqlite3.Connection, stages: Sequence[str]
) -> dict[str, int]:
    """Return `max_tokens` of each stage, from its first request."""
    limits = {}
    for stage in stages:
        query = parse_query(f"stage:{stage} attempts>0")
        for row in tasks(connection, query, limit=1):
            for attempt in attempts(connection, row.task)[:1]:
                body = payload(connection, attempt.started_seq or 0)
                request = msgspec.json.decode(body or b"{}")
                limits[stage] = int(request.get("max_tokens") or 0)
    return limits


def _attempts(
    ended: Sequence[AttemptEnd], price: Price | None
) -> tuple[RecordedAttempt, ...]:
    """Return the attempts that led to the reply that counts, after any retry."""
    current: list[AttemptEnd] = []
    for end in ended:
        if current and _is_answer(current[-1]):
            current.clear()
        current.append(end)
    return tuple(
        _attempt(end, error, price)
        for end in current
        if not isinstance(error := _error(end), _MENDED)
    )


def _is_answer(ended: AttemptEnd) -> bool:
    return isinstance(ended.outcome, AttemptAnswered) and ended.outcome.reask is None


def _error(ended: AttemptEnd) -> e.AttemptError | None:
    outcome = ended.outcome
    if isinstance(outcome, AttemptAnswered):
        return None
    error = _ERRORS.get(outcome.error, e.ServerError)
    return error("as recorded", retry_after_s=outcome.retry_after_s)


def _attempt(
    ended: AttemptEnd, error: e.AttemptError | None, price: Price | None
) -> RecordedAttempt:
    outcome = ended.outcome
    duration_s = (outcome.latency_ms or 0.0) / 1e3
    if ended.duration_us is not None:
        duration_s = ended.duration_us / 1e6
    if not isinstance(outcome, AttemptAnswered):
        return RecordedAttempt(duration_s=duration_s, error=error)
    usage = Usage(
        tokens_in=outcome.tokens_in or 0,
        tokens_out=outcome.tokens_out or 0,
        tokens_cached=outcome.tokens_cached or 0,
        tokens_cache_write=outcome.tokens_cache_write or 0,
        tokens_cache_write_1h=outcome.tokens_cache_write_1h or 0,
        tokens_reasoning=outcome.tokens_reasoning or 0,
    )
    return RecordedAttempt(
        duration_s=duration_s,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tokens_cached=usage.tokens_cached,
        cost_pico=_cost_pico(outcome, price, usage),
        header_limits=_limits_of(outcome.headers),
    )


def _cost_pico(
    outcome: AttemptAnswered, price: Price | None, usage: Usage
) -> int | None:
    if outcome.cached:
        return 0
    tier = None if outcome.served is None else outcome.served.tier
    return None if price is None else cost_pico(price, usage, tier)


def _limits_of(headers: Mapping[str, str] | None) -> HeaderLimits:
    """Return limits in headers without remainders, which are out of date."""
    if not headers:
        return NO_HEADER_LIMITS
    limits = header_limits(headers, now_us=0)
    return HeaderLimits(requests=_limit(limits.requests), tokens=_limit(limits.tokens))


def _limit(quota: Quota | None) -> Quota | None:
    return replace(quota, remaining=None) if quota is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Outcome of a recorded run with other options."""

    run_id: str
    outcome: WhatIfOutcome
    costs_usd: Mapping[str, float | None]  #: by model; None: its price is unknown
    census: ReplayCounts
    assumes: tuple[str, ...]

    @property
    def cost_usd(self) -> float | None:
        """Total cost; None if a price is unknown."""
        costs = list(self.costs_usd.values())
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


def run_what_if(
    connection: sqlite3.Connection, job: Job, *, then: RunOptions, now: RunOptions
) -> WhatIf:
    """Replay a recorded run with other options and its recorded attempts.

    A model that is not in the run imitates the first one that it had in that role.

    Args:
        connection: a reader of the run.
        job: the job of the run.
        then: the options of the run.
        now: models, limits, prices, deadline and seed to try.

    Raises:
        UsageError: the run has no recorded calls.
    """
    first, run_status = run_started(connection), status(connection)
    if first.imported or not run_status.attempts.started:
        raise UsageError(
            f"Run {first.run_id} made no calls: a what-if needs a run whose calls "
            "were recorded; siftlog run JOB --dry-run needs none."
        )
    added = {stage.name: stage.models for stage in job.stages if stage.models}
    casting = _cast({**first.models, **added}, {**assigned(job, now).models, **added})
    prices = {model: price_of(model, now) for model in casting.like}
    stages = [stage.name for stage in job.stages]
    output = output_limits(connection, stages)
    learned_rates = {
        seen.model: endpoint_rate(connection, seen, then.of(seen.model).rpm)
        for seen in run_status.limits
    }
    census = ReplayCounts()
    endpoints: dict[str, tuple[Endpoint, LearnedRateLimit | None]] = {}
    replayed_models = []
    for model, like in casting.like.items():
        name = now.endpoint_of(model)
        endpoint, rate = endpoints.setdefault(
            name, (Endpoint(name), learned_rates.get(like))
        )
        items = RecordedItems(
            connection=connection,
            model=like,
            names={**casting.names, like: model},
            stages=stages,
            prices=prices,
            max_tokens=output,
            census=census,
            drops_refusals=learned_rates.get(like) is not None,
        )
        replayed_models.append(
            ReplayedModel(
                model=model,
                stages=stages,
                limits=now.limits_of(model),
                endpoint=endpoint,
                rate=rate,
                items=items,
            )
        )
    outcome = what_if(replayed_models, deadline_s=now.deadline_s, seed=now.seed)
    rates = {name: rate for name, (_, rate) in endpoints.items()}
    return WhatIf(
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
    """Assignment of simulated models to recorded ones."""

    like: Mapping[str, str]  #: recorded model that each simulated one imitates
    names: Mapping[str, str]  #: simulated model that imitates each recorded one


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


def _allowed(rates: Mapping[str, LearnedRateLimit | None]) -> list[str]:
    return [
        f"{name} allows {rate.per_second * MINUTE_S:,.0f} requests a minute, as the "
        "run found"
        if rate is not None
        else f"{name} has no limits but those that the run met"
        for name, rate in rates.items()
    ]


def _assumed(source: Mapping[str, str], census: ReplayCounts) -> list[str]:
    assumptions = [
        f"{model} answers as {recorded} did"
        for model, recorded in source.items()
        if model != recorded
    ]
    if census.taken_after:
        assumptions.append(
            f"{census.taken_after:,} tasks without an outcome go like tasks that ended"
        )
    if census.left_out:
        assumptions.append(f"{census.left_out:,} tasks without an outcome are left out")
    return assumptions
