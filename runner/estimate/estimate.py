"""Estimates calls, tokens, dollars and hours of a run before any call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from runner.clients.client import is_offline
from runner.estimate.sample import (
    NONE_FAILS,
    FailingTasks,
    Grown,
    PlanSample,
    SampledStage,
    StageUsage,
    draw_sample,
)
from runner.limits.limiter import Limits
from runner.limits.rate_limits import MINUTE_S
from runner.messages import Usage
from runner.money.prices import Price, cost_pico, price_of, worst_pico
from runner.money.tokens import CountTokens, text_tokens
from runner.options import RunOptions
from runner.roles import assigned, terms
from runner.workload import Workload
from store.clock import Clock
from store.database import open_reader
from store.errors import StoreError
from store.events import ExpectedUsage
from store.read.status import run_started
from store.read.usage import dollars, usage_counts
from store.runs import list_runs
from store.task import PICO_PER_USD

ERRORS: Final = 2.0
"""Half-width of an interval in standard errors: about 95 %."""
ALONE: Final = 2.0
"""Factor of the interval of a sample of one item: from half to twice."""


BATCH_S: Final = 24 * 3600.0
"""Maximum time until a batch is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRange:
    """An estimated figure."""

    low: float
    expected: float
    high: float

    def __add__(self, other: EstimateRange) -> EstimateRange:
        """Add two ranges; both may be at their worst at once."""
        return EstimateRange(
            low=self.low + other.low,
            expected=self.expected + other.expected,
            high=self.high + other.high,
        )

    def times(self, low: float, expected: float, high: float) -> EstimateRange:
        """Multiply each figure by its factor."""
        return EstimateRange(
            low=self.low * low,
            expected=self.expected * expected,
            high=self.high * high,
        )


ZERO_RANGE: Final = EstimateRange(low=0.0, expected=0.0, high=0.0)

TOKENIZERS: Final = (0.9, 1.0, 1.25)
"""Prompt tokens relative to the count here: models' tokenizers differ by that much, the
rule of `runner.money.tokens` by a few percent in total."""
ALL: Final = (1.0, 1.0, 1.0)
FOLLOWED: Final = (0.5, 1.0, 1.5)
"""Follow-ups relative to the baseline's: models find fewer or more than a search."""
TERSE: Final = 0.5
"""Reply length relative to the baseline's, for a terse model."""
BEFORE_S: Final = (0.3, 1.0, 4.0)
"""Seconds to the first token of a reply."""
PER_TOKEN_S: Final = (1 / 150, 1 / 60, 1 / 20)
"""Seconds per further token: a fast small model, a usual one, a large or busy one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEstimate:
    """Estimated usage of a model, or of one of its stages."""

    calls: EstimateRange
    tokens_in: EstimateRange
    tokens_out: EstimateRange
    usd: EstimateRange | None  #: None: unknown price
    call_s: EstimateRange  #: total seconds of all its calls

    def __add__(self, other: UsageEstimate) -> UsageEstimate:
        """Add two estimates."""
        return UsageEstimate(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
            call_s=self.call_s + other.call_s,
        )


EMPTY: Final = UsageEstimate(
    calls=ZERO_RANGE,
    tokens_in=ZERO_RANGE,
    tokens_out=ZERO_RANGE,
    usd=ZERO_RANGE,
    call_s=ZERO_RANGE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimated usage of a run."""

    items: int
    tried: int  #: items tried offline
    stages: Mapping[tuple[str, str], UsageEstimate]  #: by stage and model
    models: Mapping[str, UsageEstimate]
    seconds: Mapping[str, EstimateRange]  #: by model, under its limits
    total: UsageEstimate
    failing: FailingTasks = NONE_FAILS  #: failing tasks of the tried items

    @property
    def whole_s(self) -> EstimateRange:
        """Duration of the run: models work in parallel."""
        spans = list(self.seconds.values())
        return EstimateRange(
            low=max((s.low for s in spans), default=0.0),
            expected=max((s.expected for s in spans), default=0.0),
            high=max((s.high for s in spans), default=0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateInputs:
    """Inputs of an estimate."""

    replicates: int
    once: frozenset[str] = frozenset()  #: stages with a single replicate
    limits: Mapping[str, Limits]  #: by model
    prices: Mapping[str, Price | None]  #: by model
    usual_out: Mapping[tuple[str, str], float]
    """Tokens of a reply in earlier runs, by stage and model; may be incomplete."""
    offline: frozenset[str]  #: models without an endpoint: they take no time


def estimate(plan: EstimateInputs, sample: PlanSample) -> Estimate:
    """Extrapolate from a sample of a plan's items to the whole."""
    stages: dict[tuple[str, str], UsageEstimate] = {}
    for sampled_stage in _sampled_stages(sample.tried):
        key = (sampled_stage.stage, sampled_stage.model)
        stages[key] = stages.get(key, EMPTY) + _figures(plan, sample, sampled_stage)
    by_model: dict[str, list[UsageEstimate]] = {}
    for (_, model), figures in stages.items():
        by_model.setdefault(model, []).append(figures)
    models = {
        model: sum(model_figures, EMPTY) for model, model_figures in by_model.items()
    }
    return Estimate(
        items=sample.items,
        tried=len(sample.tried),
        stages=stages,
        models=models,
        seconds={
            model: ZERO_RANGE
            if model in plan.offline
            else _seconds(model_figures, plan.limits[model])
            for model, model_figures in by_model.items()
        },
        total=sum(models.values(), EMPTY),
        failing=sample.failing,
    )


def _sampled_stages(tried: Iterable[Grown]) -> list[SampledStage]:
    return list(
        dict.fromkeys(sampled_stage for grown in tried for sampled_stage in grown)
    )


def _figures(
    plan: EstimateInputs, sample: PlanSample, sampled_stage: SampledStage
) -> UsageEstimate:
    times = 1 if sampled_stage.stage in plan.once else plan.replicates
    shares = ALL if sampled_stage.is_first else FOLLOWED

    def sums(amount: Callable[[StageUsage], float]) -> EstimateRange:
        return _extrapolated(
            [amount(grown.get(sampled_stage, StageUsage())) for grown in sample.tried],
            sample.items,
        ).times(*(times * share for share in shares))

    calls = sums(lambda use: use.calls)
    if sampled_stage.is_first:
        exact = float(sample.first_calls[sampled_stage.stage] * times)
        calls = EstimateRange(low=exact, expected=exact, high=exact)
    tokens_in = sums(lambda use: use.tokens_in).times(*TOKENIZERS)
    sampled_out = sums(lambda use: use.tokens_out)
    usual = plan.usual_out.get((sampled_stage.stage, sampled_stage.model))
    expected = sampled_out.expected if usual is None else usual * calls.expected
    most = max(expected, sums(lambda use: use.most_out).high)
    tokens_out = EstimateRange(
        low=min(sampled_out.low * TERSE, expected), expected=expected, high=most
    )
    price = plan.prices[sampled_stage.model]
    return UsageEstimate(
        calls=calls,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        usd=None if price is None else _usd(price, calls, tokens_in, tokens_out),
        call_s=calls.times(*BEFORE_S) + tokens_out.times(*PER_TOKEN_S),
    )


def _extrapolated(values: Sequence[float], items: int) -> EstimateRange:
    """Estimate the sum over all items from a sample without replacement."""
    mean = fmean(values)
    if len(values) == items:
        return EstimateRange(low=mean * items, expected=mean * items, high=mean * items)
    if len(values) == 1:
        return EstimateRange(low=mean, expected=mean, high=mean).times(
            items / ALONE, items, items * ALONE
        )
    left = 1 - len(values) / items
    error = ERRORS * stdev(values) * math.sqrt(left / len(values))
    # the tried items are known exactly
    return EstimateRange(
        low=max(sum(values), (mean - error) * items),
        expected=mean * items,
        high=(mean + error) * items,
    )


def _usd(
    price: Price,
    calls: EstimateRange,
    tokens_in: EstimateRange,
    tokens_out: EstimateRange,
) -> EstimateRange:
    """Price tokens in calls of the mean length: long prompts may cost more."""

    def usd(
        figure: Callable[[EstimateRange], float], pico: Callable[[int, int], int]
    ) -> float:
        prompt_tokens, taken = figure(tokens_in), figure(tokens_out)
        prompt = max(1, round(prompt_tokens / max(1.0, figure(calls))))
        of_prompt = pico(prompt, 0)
        of_token = pico(prompt, 1) - of_prompt
        return (of_prompt / prompt * prompt_tokens + of_token * taken) / PICO_PER_USD

    def usual(prompt_tokens: int, taken: int) -> int:
        return cost_pico(price, Usage(tokens_in=prompt_tokens, tokens_out=taken))

    def worst(prompt_tokens: int, taken: int) -> int:
        return worst_pico(price, prompt_tokens, taken)

    return EstimateRange(
        low=usd(lambda span: span.low, usual),
        expected=usd(lambda span: span.expected, usual),
        high=usd(lambda span: span.high, worst),
    )


def _seconds(stages: Sequence[UsageEstimate], limits: Limits) -> EstimateRange:
    """Return the longest of the times required by slots, rpm and tpm."""
    if limits.batched:
        return _in_batches(stages, limits.concurrency)

    def longest(figure: Callable[[EstimateRange], float]) -> float:
        calls = sum(figure(stage.calls) for stage in stages)
        tokens = sum(figure(s.tokens_in) + figure(s.tokens_out) for s in stages)
        return max(
            # a stage waits for the previous one: fewer calls than slots leave some idle
            sum(
                figure(s.call_s) / min(limits.concurrency, max(1.0, figure(s.calls)))
                for s in stages
            ),
            MINUTE_S * calls / limits.rpm if limits.rpm else 0.0,
            MINUTE_S * tokens / limits.tpm if limits.tpm else 0.0,
        )

    return EstimateRange(
        low=longest(lambda span: span.low),
        expected=longest(lambda span: span.expected),
        high=longest(lambda span: span.high),
    )


def _in_batches(stages: Sequence[UsageEstimate], at_a_time: int) -> EstimateRange:
    """Return the guaranteed time of batches; how much sooner they end is unknown."""

    def rounds(figure: Callable[[EstimateRange], float]) -> int:
        call_counts = (figure(stage.calls) for stage in stages)
        return sum(math.ceil(calls / at_a_time) for calls in call_counts if calls)

    return EstimateRange(
        low=0.0,
        expected=BATCH_S * rounds(lambda span: span.expected),
        high=BATCH_S * rounds(lambda span: span.high),
    )


def verdict(estimate: Estimate, budget_usd: float) -> tuple[str, str]:
    """Return whether a budget would hold, as a word and a sentence.

    The word is `holds`, `may not hold`, `does not hold` or `unknown`.
    """
    usd = estimate.total.usd
    budget = f"A budget of {dollars(budget_usd)}"
    if usd is None:
        return "unknown", f"{budget} has no effect while a price is unknown."
    if usd.high <= budget_usd:
        return "holds", f"{budget} holds even at the high figure."
    if usd.low > budget_usd:
        return (
            "does not hold",
            f"{budget} does not hold: the low figure is {dollars(usd.low)}.",
        )
    likely = "is likely to" if usd.expected <= budget_usd else "is not likely to"
    return "may not hold", f"{budget} {likely} hold."


ENOUGH: Final = 20
"""Minimum number of replies for a mean."""
NEWEST: Final = 50
"""Maximum number of runs read; each takes some milliseconds."""


def usual_replies(runs_dir: Path, job: str) -> dict[tuple[str, str], float]:
    """Return mean reply tokens by stage and model, from the newest run with data.

    Runs are sorted by name, which starts with the time unless the user chose it;
    unreadable runs are skipped.
    """
    means: dict[tuple[str, str], float] = {}
    for folder in reversed(list_runs(runs_dir)[-NEWEST:]):
        try:
            with open_reader(folder.log) as reader:
                if run_started(reader).job != job:
                    continue
                counts = usage_counts(reader)
        except StoreError:
            continue
        for use in counts:
            if use.replies >= ENOUGH and use.tokens_out:
                mean = use.tokens_out / use.replies
                means.setdefault((use.stage, use.model), mean)
    return means


ITEMS: Final = 64
"""Number of items tried: two standard errors are then a quarter of their spread."""
CALLS: Final = 4000
"""Maximum number of baseline answers while a user waits: papers take 1 ms each."""
AT_START_S: Final = 5.0
"""Maximum time for trying items before a run's first event: `ITEMS` papers of 60 KB
take 2 s of an idle machine."""
AMONG_AT_START: Final = 4096
LARGEST_AT_START: Final = 16


def preview(
    work: Workload,
    options: RunOptions,
    runs_dir: Path,
    *,
    count: CountTokens = text_tokens,
) -> Estimate:
    """Estimate a run from a sample of its whole plan and from earlier runs."""
    sample = draw_sample(
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
    work: Workload,
    options: RunOptions,
    runs_dir: Path,
    clock: Clock,
    *,
    notify: Callable[[str], None],
) -> ExpectedUsage | None:
    """Return the estimate that a run records; None if nothing is planned.

    The number of tried items depends on the speed of the machine. *notify* gets a
    message if tasks fail because the job's code raises.
    """
    plan = _plan(work, options, runs_dir)
    end = clock.monotonic() + AT_START_S
    sample = draw_sample(
        work.job,
        work.dataset,
        roles=assigned(work.job, options),
        items=ITEMS,
        goes_on=lambda _: clock.monotonic() < end,
        among=AMONG_AT_START,
        largest=LARGEST_AT_START,
    )
    if sample.failing.tasks:
        notify(sample.failing.sentence)
    if not sample.tried:
        return None
    total = estimate(plan, sample).total

    def per_spec(span: EstimateRange) -> tuple[float, float, float]:
        low, middle, high = (
            float(f"{figure / sample.specs:.4g}")
            for figure in (span.low, span.expected, span.high)
        )
        return low, middle, high

    return ExpectedUsage(
        tried=len(sample.tried),
        first=list(sample.first_calls),
        calls=per_spec(total.calls),
        tokens_in=per_spec(total.tokens_in),
        tokens_out=per_spec(total.tokens_out),
        cost_usd=None if total.usd is None else per_spec(total.usd),
        follow_ups=list(sample.follow_ups),
    )


def _plan(work: Workload, options: RunOptions, runs_dir: Path) -> EstimateInputs:
    roles = assigned(work.job, options)
    models = roles.all_models
    return EstimateInputs(
        replicates=roles.replicates,
        once=frozenset(stage.name for stage in work.job.stages if stage.once),
        limits={model: options.limits_of(model) for model in models},
        prices={model: price_of(model, options) for model in models},
        usual_out=usual_replies(runs_dir, work.job.name),
        offline=frozenset(filter(is_offline, models)),
    )
