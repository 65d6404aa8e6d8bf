"""What a run would take before any call: calls, tokens, dollars, hours; pure.

Every figure is low, expected and high. What the sample says about the other items is
given as two standard errors; what tokenizers, models and endpoints do differently is
given by the constants here, which say where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

from runner.estimating.sample import NONE_FAILS, Failing, Grown, Place, Sample, Use
from runner.limits.bucket import MINUTE_S
from runner.limits.limiter import Limits
from runner.money.prices import Price, cost_pico, worst_pico
from runner.reply import Usage
from store.read.usage import dollars
from store.task import PICO_PER_USD

ERRORS: Final = 2.0
"""Standard errors that an interval goes to either side: about 95 of 100."""
ALONE: Final = 2.0
"""A sample of one item tells nothing of the others: half of it, and twice."""


BATCH_S: Final = 24 * 3600.0
"""Within which a batch is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A figure that is not known yet."""

    low: float
    expected: float
    high: float

    def __add__(self, other: Span) -> Span:
        """Both together; that both are at their worst is assumed to be possible."""
        return Span(
            low=self.low + other.low,
            expected=self.expected + other.expected,
            high=self.high + other.high,
        )

    def times(self, low: float, expected: float, high: float) -> Span:
        """Each figure by a factor of its own."""
        return Span(
            low=self.low * low,
            expected=self.expected * expected,
            high=self.high * high,
        )


NOTHING: Final = Span(low=0.0, expected=0.0, high=0.0)

TOKENIZERS: Final = (0.9, 1.0, 1.25)
"""Tokens of a prompt by those that are counted here: models' tokenizers differ by so
much, the rule of `runner.estimating.tokens` by a few percent in sum."""
ALL: Final = (1.0, 1.0, 1.0)
FOLLOWED: Final = (0.5, 1.0, 1.5)
"""Follow-ups by those of the baseline: models recall less, or more, than a search."""
TERSE: Final = 0.5
"""Of the baseline's replies: a model that gives no more than was asked for."""
BEFORE_S: Final = (0.3, 1.0, 4.0)
"""To the first token of a reply."""
PER_TOKEN_S: Final = (1 / 150, 1 / 60, 1 / 20)
"""To each further one: a fast small model, a usual one, a large or busy one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a model, or a stage of it, comes to."""

    calls: Span
    tokens_in: Span
    tokens_out: Span
    usd: Span | None  #: None: the price is unknown
    call_s: Span  #: seconds of all its calls, one after another

    def __add__(self, other: Figures) -> Figures:
        """Both together."""
        return Figures(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
            call_s=self.call_s + other.call_s,
        )


EMPTY: Final = Figures(
    calls=NOTHING, tokens_in=NOTHING, tokens_out=NOTHING, usd=NOTHING, call_s=NOTHING
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run would take."""

    items: int
    tried: int  #: of the items, offline
    stages: Mapping[tuple[str, str], Figures]  #: by stage and model
    models: Mapping[str, Figures]
    seconds: Mapping[str, Span]  #: by model, under its limits
    total: Figures
    failing: Failing = NONE_FAILS  #: of the tasks of the items that were tried

    @property
    def whole_s(self) -> Span:
        """Of the run: models go side by side."""
        spans = list(self.seconds.values())
        return Span(
            low=max((s.low for s in spans), default=0.0),
            expected=max((s.expected for s in spans), default=0.0),
            high=max((s.high for s in spans), default=0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known of a run before it begins."""

    replicates: int
    once: frozenset[str] = frozenset()  #: stages that are asked in one replicate
    limits: Mapping[str, Limits]  #: by model
    prices: Mapping[str, Price | None]  #: by model
    usual_out: Mapping[tuple[str, str], float]
    """Tokens of a reply in earlier runs, by stage and model; may lack any."""
    offline: frozenset[str]  #: models that no endpoint serves: they take no time


def estimate(plan: Plan, sample: Sample) -> Estimate:
    """What a sample of a plan's items says of the whole."""
    stages: dict[tuple[str, str], Figures] = {}
    for place in _places(sample.tried):
        key = (place.stage, place.model)
        stages[key] = stages.get(key, EMPTY) + _figures(plan, sample, place)
    by_model: dict[str, list[Figures]] = {}
    for (_, model), figures in stages.items():
        by_model.setdefault(model, []).append(figures)
    models = {model: sum(found, EMPTY) for model, found in by_model.items()}
    return Estimate(
        items=sample.items,
        tried=len(sample.tried),
        stages=stages,
        models=models,
        seconds={
            model: NOTHING
            if model in plan.offline
            else _seconds(found, plan.limits[model])
            for model, found in by_model.items()
        },
        total=sum(models.values(), EMPTY),
        failing=sample.failing,
    )


def _places(tried: Iterable[Grown]) -> list[Place]:
    return list(dict.fromkeys(place for grown in tried for place in grown))


def _figures(plan: Plan, sample: Sample, place: Place) -> Figures:
    times = 1 if place.stage in plan.once else plan.replicates
    found = ALL if place.is_first else FOLLOWED

    def sums(amount: Callable[[Use], float]) -> Span:
        return _extrapolated(
            [amount(grown.get(place, Use())) for grown in sample.tried], sample.items
        ).times(*(times * share for share in found))

    calls = sums(lambda use: use.calls)
    if place.is_first:
        exact = float(sample.first_calls[place.stage] * times)
        calls = Span(low=exact, expected=exact, high=exact)
    tokens_in = sums(lambda use: use.tokens_in).times(*TOKENIZERS)
    spoken = sums(lambda use: use.tokens_out)
    usual = plan.usual_out.get((place.stage, place.model))
    expected = spoken.expected if usual is None else usual * calls.expected
    most = max(expected, sums(lambda use: use.most_out).high)
    tokens_out = Span(
        low=min(spoken.low * TERSE, expected), expected=expected, high=most
    )
    price = plan.prices[place.model]
    return Figures(
        calls=calls,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        usd=None if price is None else _usd(price, calls, tokens_in, tokens_out),
        call_s=calls.times(*BEFORE_S) + tokens_out.times(*PER_TOKEN_S),
    )


def _extrapolated(values: Sequence[float], items: int) -> Span:
    """The sum over all items from some drawn evenly without putting back."""
    mean = fmean(values)
    if len(values) == items:
        return Span(low=mean * items, expected=mean * items, high=mean * items)
    if len(values) == 1:
        return Span(low=mean, expected=mean, high=mean).times(
            items / ALONE, items, items * ALONE
        )
    left = 1 - len(values) / items
    error = ERRORS * stdev(values) * math.sqrt(left / len(values))
    # what was tried is known, whatever the others come to
    return Span(
        low=max(sum(values), (mean - error) * items),
        expected=mean * items,
        high=(mean + error) * items,
    )


def _usd(price: Price, calls: Span, tokens_in: Span, tokens_out: Span) -> Span:
    """What tokens cost in calls of the mean length: long prompts may cost more each."""

    def usd(figure: Callable[[Span], float], pico: Callable[[int, int], int]) -> float:
        given, taken = figure(tokens_in), figure(tokens_out)
        prompt = max(1, round(given / max(1.0, figure(calls))))
        of_prompt = pico(prompt, 0)
        of_token = pico(prompt, 1) - of_prompt
        return (of_prompt / prompt * given + of_token * taken) / PICO_PER_USD

    def usual(given: int, taken: int) -> int:
        return cost_pico(price, Usage(tokens_in=given, tokens_out=taken))

    def worst(given: int, taken: int) -> int:
        return worst_pico(price, given, taken)

    return Span(
        low=usd(lambda span: span.low, usual),
        expected=usd(lambda span: span.expected, usual),
        high=usd(lambda span: span.high, worst),
    )


def _seconds(stages: Sequence[Figures], limits: Limits) -> Span:
    """The longest of what slots, requests a minute and tokens a minute ask for."""
    if limits.batched:
        return _in_batches(stages, limits.concurrency)

    def longest(figure: Callable[[Span], float]) -> float:
        calls = sum(figure(stage.calls) for stage in stages)
        tokens = sum(figure(s.tokens_in) + figure(s.tokens_out) for s in stages)
        return max(
            # a stage waits for the one before: fewer calls than slots leave some idle
            sum(
                figure(s.call_s) / min(limits.concurrency, max(1.0, figure(s.calls)))
                for s in stages
            ),
            MINUTE_S * calls / limits.rpm if limits.rpm else 0.0,
            MINUTE_S * tokens / limits.tpm if limits.tpm else 0.0,
        )

    return Span(
        low=longest(lambda span: span.low),
        expected=longest(lambda span: span.expected),
        high=longest(lambda span: span.high),
    )


def _in_batches(stages: Sequence[Figures], at_a_time: int) -> Span:
    """What providers promise of batches; how much sooner they come nobody says."""

    def rounds(figure: Callable[[Span], float]) -> int:
        asked = (figure(stage.calls) for stage in stages)
        return sum(math.ceil(calls / at_a_time) for calls in asked if calls)

    return Span(
        low=0.0,
        expected=BATCH_S * rounds(lambda span: span.expected),
        high=BATCH_S * rounds(lambda span: span.high),
    )


def verdict(estimate: Estimate, budget_usd: float) -> tuple[str, str]:
    """Whether a budget would hold, in a word and in a sentence.

    The word is `holds`, `may not hold`, `does not hold` or `unknown`.
    """
    usd = estimate.total.usd
    budget = f"A budget of {dollars(budget_usd)}"
    if usd is None:
        return "unknown", f"{budget} says nothing while a price is unknown."
    if usd.high <= budget_usd:
        return "holds", f"{budget} holds even at the high figure."
    if usd.low > budget_usd:
        return (
            "does not hold",
            f"{budget} does not hold: the low figure is {dollars(usd.low)}.",
        )
    likely = "is likely to" if usd.expected <= budget_usd else "is not likely to"
    return "may not hold", f"{budget} {likely} hold."
