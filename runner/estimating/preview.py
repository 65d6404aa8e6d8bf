"""An estimate from work and options: for the verb, and for a run's first event.

The verb looks at the whole plan and at what earlier runs know. A run that starts looks
at the beginning of its plan and at no more items than it can try in an instant.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from runner.clients.route import is_offline
from runner.estimating.estimate import Estimate, Plan, Span, estimate
from runner.estimating.history import usual_replies
from runner.estimating.sample import draw
from runner.estimating.tokens import CountTokens, text_tokens
from runner.money.prices import price_of
from runner.options import RunOptions
from runner.roles import assigned, terms
from runner.work import Work
from store.clock import Clock
from store.events import ExpectedUsage

ITEMS: Final = 64
"""Items that are tried: two standard errors are then a quarter of their spread."""
CALLS: Final = 4000
"""Baseline answers, at most, before a person who waits: papers take 1 ms each."""
AT_START_S: Final = 0.1
"""For trying items before a run's first event: some six papers of 60 KB."""
AMONG_AT_START: Final = 4096
LARGEST_AT_START: Final = 16


def preview(
    work: Work, options: RunOptions, runs_dir: Path, *, count: CountTokens = text_tokens
) -> Estimate:
    """What a run would take, from a sample of its whole plan and from earlier runs."""
    sample = draw(
        work.job,
        work.dataset,
        roles=assigned(work.job, options),
        items=ITEMS,
        goes_on=lambda calls: calls < CALLS,
        count=count,
        terms=terms(work, options),
    )
    return estimate(_plan(work, options, runs_dir), sample)


def expected(
    work: Work,
    options: RunOptions,
    runs_dir: Path,
    clock: Clock,
    *,
    tell: Callable[[str], None],
) -> ExpectedUsage | None:
    """What a run remembers as its estimate; None where nothing that costs is asked.

    How many items it is made of depends on what the machine can try in an instant.
    *tell* gets a sentence where tasks fail because the job's own code raises.
    """
    if all(map(is_offline, assigned(work.job, options).all_models)):
        return None
    plan = _plan(work, options, runs_dir)
    end = clock.monotonic() + AT_START_S
    sample = draw(
        work.job,
        work.dataset,
        roles=assigned(work.job, options),
        items=ITEMS,
        goes_on=lambda _: clock.monotonic() < end,
        among=AMONG_AT_START,
        largest=LARGEST_AT_START,
    )
    if sample.failing.tasks:
        tell(sample.failing.sentence)
    if not sample.tried:
        return None
    total = estimate(plan, sample).total

    def each(span: Span) -> tuple[float, float, float]:
        low, middle, high = (
            float(f"{figure / sample.specs:.4g}")
            for figure in (span.low, span.expected, span.high)
        )
        return low, middle, high

    return ExpectedUsage(
        tried=len(sample.tried),
        first=list(sample.first_calls),
        calls=each(total.calls),
        tokens_in=each(total.tokens_in),
        tokens_out=each(total.tokens_out),
        cost_usd=None if total.usd is None else each(total.usd),
    )


def _plan(work: Work, options: RunOptions, runs_dir: Path) -> Plan:
    roles = assigned(work.job, options)
    models = roles.all_models
    return Plan(
        replicates=roles.replicates,
        once=frozenset(stage.name for stage in work.job.stages if stage.once),
        limits={model: options.limits_of(model) for model in models},
        prices={model: price_of(model, options) for model in models},
        usual_out=usual_replies(runs_dir, work.job.name),
        offline=frozenset(filter(is_offline, models)),
    )
