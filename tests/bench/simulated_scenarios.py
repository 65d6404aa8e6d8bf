"""Draws the scenarios of simulated runs: models, endpoints, faults, from a seed.

`tests/bench/simulated_courses.py` runs them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from runner import errors as e
from runner.limits.limiter import Limits
from store.events import ExpectedUsage

FIRST = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedModel:
    """A model: how fast it answers, and what it is allowed."""

    name: str
    endpoint: str
    limits: Limits
    latency_s: Mapping[str, float]  #: median by stage
    spread: float  #: of a call's latency: standard deviation of its logarithm
    follow_factor: float  #: follow-ups of its items, relative to other models'
    unparsed: float  #: share of first replies without follow-ups


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOutage:
    """A time in which every request fails alike."""

    begin_s: float
    end_s: float
    error: type[e.Overloaded | e.ServerError]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedEndpoint:
    """An endpoint: its faults, its own limit, and how its speed changes."""

    rate_429: float
    rate_5xx: float
    rps: float | None  #: requests per second that it accepts; None: any
    speeds: tuple[tuple[float, float], ...]
    """From a second on, a factor of its speed; ascending, the first from 0 on."""
    outage: SimulatedOutage | None

    def speed(self, now: float) -> float:
        """The factor of its speed at a time."""
        return next(f for at, f in reversed(self.speeds) if at <= now)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedScenario:
    """One run: its plan, its models, its endpoints."""

    seed: int
    items: int
    skipped: float  #: share of items that are planned as skipped
    follow_ups: float  #: mean number of second-stage tasks of an item
    spread: float  #: of that number: coefficient of variation
    third: str  #: "", "each" (of a second-stage task), "sum" (of an item) or "beside"
    third_share: float
    models: tuple[SimulatedModel, ...]
    endpoints: Mapping[str, SimulatedEndpoint]
    expected: ExpectedUsage | None
    replicates: int = 1
    by_item: tuple[float, ...] = ()
    """Follow-ups of each item, in the order of the plan; empty: drawn by their mean."""


def scenario(seed: int, *, most_items: int = 1000) -> SimulatedScenario:
    """Draw a run; every figure is of the kind that real runs have."""
    chance = random.Random(f"course {seed}")

    def between(low: float, high: float) -> float:
        return math.exp(chance.uniform(math.log(low), math.log(high)))

    items = round(between(60, most_items))
    follow_ups = between(1, 12)
    third = chance.choice(("", "", "", "each", "sum", "beside"))
    nominal_s = between(60, 3600)
    tasks = items * (1 + follow_ups)
    sharing = chance.random() < 0.5
    names = [f"m{n}" for n in range(chance.choice((2, 2, 2, 3)))]
    endpoints = {}
    rates = {name: tasks / nominal_s * between(0.6, 1.6) for name in names}
    for name in ["e"] if sharing else [f"e-{name}" for name in names]:
        served = [m for m in names if name in {"e", f"e-{m}"}]
        endpoints[name] = _endpoint(
            chance, nominal_s, sum(rates[model] for model in served)
        )
    models = []
    for name in names:
        endpoint = "e" if sharing else f"e-{name}"
        rate = rates[name]
        latency_s = min(between(0.4, 12), 150 / rate)
        by_stage = {
            stage: latency_s * math.exp(chance.gauss(0, 0.4))
            for stage in (FIRST, "ask", "sum")
        }
        limited = endpoints[endpoint].rps is not None
        kind = "server" if limited else chance.choice(("slots", "rpm"))
        slots = max(2, round(rate * latency_s * (3 if kind != "slots" else 1)))
        models.append(
            SimulatedModel(
                name=name,
                endpoint=endpoint,
                limits=Limits(
                    concurrency=256 if kind == "server" else slots,
                    rpm=60 * rate if kind == "rpm" else None,
                ),
                latency_s=by_stage,
                spread=chance.uniform(0.2, 0.7),
                follow_factor=math.exp(chance.gauss(0, 0.25)),
                unparsed=chance.choice((0.0, 0.02, 0.1)),
            )
        )
    third_share = chance.uniform(0.2, 1.0)
    third_tasks = {"each": follow_ups * third_share, "sum": 1.0, "beside": 1.0}
    wrong = math.exp(chance.gauss(0, 0.25))
    each = (follow_ups + third_tasks.get(third, 0.0)) * wrong * len(names)
    firsts = float(len(names))
    expected = ExpectedUsage(
        tried=40,
        first=[FIRST],
        calls=(firsts + each / 2, firsts + each, firsts + each * 1.5),
        tokens_in=(0.0, 0.0, 0.0),
        tokens_out=(0.0, 0.0, 0.0),
        cost_usd=None,
    )
    return SimulatedScenario(
        seed=seed,
        items=items,
        skipped=chance.choice((0.0, 0.0, 0.15)),
        follow_ups=follow_ups,
        spread=chance.uniform(0.2, 0.8),
        third=third,
        third_share=third_share,
        models=tuple(models),
        endpoints=endpoints,
        expected=expected if chance.random() < 0.7 else None,
    )


def few_items(seed: int) -> SimulatedScenario:
    """Draw a run of few items, of which the last ones have most follow-ups.

    An estimate from before the run has tried most of them.
    """
    drawn = scenario(seed, most_items=300)
    chance = random.Random(f"few items {seed}")
    items, replicates = chance.randint(20, 60), chance.choice((1, 2, 3))
    rich = max(3, round(items * chance.uniform(0.15, 0.4)))
    weights = [math.exp(chance.gauss(0, 0.5)) for _ in range(rich)]
    each = drawn.items * drawn.follow_ups / replicates / sum(weights)
    first, *last = (float(math.ceil(each * weight)) for weight in weights)
    by_item = [0.0] * (items - len(last)) + last
    by_item[chance.randrange(items - len(last))] = first
    wrong = math.exp(chance.gauss(0, 0.25))
    guessed = [round(n * wrong * math.exp(chance.gauss(0, 0.3))) for n in by_item]
    untried = chance.choice((0.0, 0.15))
    tried = [at for at in range(items) if chance.random() >= untried]
    mean = sum(guessed[at] for at in tried) / len(tried)
    calls = len(drawn.models) * replicates * (1 + mean)
    return replace(
        drawn,
        items=items,
        skipped=0.0,
        third="",
        replicates=replicates,
        by_item=tuple(by_item),
        expected=ExpectedUsage(
            tried=len(tried),
            first=[FIRST],
            calls=(calls / 2, calls, calls * 1.5),
            tokens_in=(0.0, 0.0, 0.0),
            tokens_out=(0.0, 0.0, 0.0),
            cost_usd=None,
            follow_ups=[
                float(guessed[at]) if at in tried else mean for at in range(items)
            ],
        ),
    )


def _endpoint(
    chance: random.Random, nominal_s: float, rate: float
) -> SimulatedEndpoint:
    speeds, at, factor = [(0.0, 1.0)], 0.0, 1.0
    while chance.random() < 0.5:
        at += chance.uniform(0.1, 0.8) * nominal_s
        factor = min(2.5, max(0.4, factor * math.exp(chance.gauss(0, 0.3))))
        speeds.append((at, factor))
    begin = chance.uniform(0.05, 0.9) * nominal_s
    outage = SimulatedOutage(
        begin_s=begin,
        end_s=begin + chance.uniform(5, 60),
        error=e.Overloaded if chance.random() < 0.3 else e.ServerError,
    )
    return SimulatedEndpoint(
        rate_429=chance.choice((0.0, 0.005, 0.02)),
        rate_5xx=chance.choice((0.0, 0.005, 0.02)),
        rps=max(0.5, rate) if chance.random() < 0.3 else None,
        speeds=tuple(speeds),
        outage=outage if chance.random() < 0.1 else None,
    )
