"""What a seed stands for: the job, the limits, the weather, and who interferes when.

Everything that can differ from run to run is drawn here, before anything happens, so
that a failing seed can be read as a value.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from runner.limiter import Limits
from runner.prices import FREE, Price

FAULTS = (
    "429",
    "5xx",
    "529",
    "hang",
    "drop before the work",
    "drop after the work",
    "malformed",
    "slow",
)
WEATHER = ("429", "529", "outage", "wrong key", "hang")
CRASH, STOP, DRAIN = "crash", "stop", "drain"
"""What befalls a process; the last two are signals."""
RETRY, PAUSE, LIMITS, BUDGET, CANCEL = "retry", "pause", "limits", "budget", "cancel"
"""What is asked of a run by command; a drain may be too."""
ACTS = (CRASH, STOP, DRAIN, RETRY, PAUSE, LIMITS, BUDGET, CANCEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A model under test."""

    model: str
    endpoint: str
    limits: Limits
    price: Price | None  #: None: nobody knows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What an endpoint allows, by its own count."""

    rps: float | None
    tpm: float | None
    slots: int | None
    tells: bool  #: limits in every reply's headers
    waits: str  #: how a 429 tells its wait: "ms", "s", or "" for not at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """A time in which all calls of an endpoint fare alike."""

    endpoint: str
    kind: str  #: one of `WEATHER`
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Somebody interferes: a power cut, a signal, a command."""

    after: int  #: steps since the act before it
    kind: str
    chance: float  #: in [0, 1): draws what is left open: which tasks, which model


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much the engine takes at a time: so little that small runs meet the edges."""

    window: int  #: tasks loaded a model and stage
    unsettled: int  #: outcomes waiting for the log, a model
    page: int  #: tasks read at a time
    block: int  #: tasks planned at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One simulated run from its first process to its last."""

    seed: int
    items: int
    words: int
    replicates: int
    reask: int
    lanes: tuple[Lane, ...]
    rules: Mapping[str, Rules]  #: by endpoint
    latency_s: tuple[float, float]
    faults: Mapping[str, float]  #: share of calls, by fault
    mute: float  #: share of the replies that tell no usage
    budget_usd: float | None
    weather: tuple[Weather, ...]
    is_mild: bool  #: no task meets so many faults that it has to fail
    timeout_s: float
    deadline_s: float
    grace_s: float
    disk_s: tuple[float, float]  #: one turn of the log's thread takes so long
    acts: tuple[Act, ...]
    holds: float  #: share of resumes that hold unknown calls for a person
    rereads: float  #: share of resumes that derive the whole plan again
    sizes: Sizes


def scenario_of(seed: int) -> Scenario:
    """The scenario of a seed."""
    chance = random.Random(f"scenario {seed}")
    endpoints = ["north", "south"][: chance.choice((1, 1, 1, 2))]
    budget_usd = chance.choice((None, 1e-4, 3e-3, 0.1))
    lanes = tuple(
        Lane(
            model=f"m{number}",
            endpoint=chance.choice(endpoints),
            limits=Limits(
                concurrency=chance.choice((1, 2, 3, 4, 8, 16)),
                rpm=chance.choice((None, None, None, None, 6.0, 20.0, 120.0, 600.0)),
                tpm=chance.choice((None, None, None, 3_000.0, 20_000.0)),
                weight=chance.choice((1.0, 1.0, 0.5, 3.0)),
            ),
            price=_price(chance, is_known=budget_usd is not None),
        )
        for number in range(chance.choice((1, 1, 2, 3)))
    )
    slowness = chance.choice((0.001, 0.1, 0.1, 1.0))
    return Scenario(
        seed=seed,
        items=chance.randint(1, 7 if len(lanes) == 1 else 4),
        words=chance.randint(0, 3),
        replicates=chance.choice((1, 1, 1, 2)),
        reask=chance.choice((0, 0, 1, 2)),
        lanes=lanes,
        rules={endpoint: _rules(chance) for endpoint in endpoints},
        latency_s=(slowness, slowness * chance.choice((1, 3, 30))),
        faults=_faults(chance),
        mute=chance.choice((0.0, 0.0, 0.2)),
        budget_usd=budget_usd,
        weather=tuple(
            _weather(chance, chance.choice(endpoints))
            for _ in range(chance.choice((0, 0, 1, 2)))
        ),
        is_mild=chance.random() < 0.7,
        timeout_s=chance.choice((5.0, 60.0)),
        deadline_s=chance.choice((60.0, 3600.0)),
        grace_s=chance.choice((0.5, 5.0, 30.0)),
        disk_s=chance.choice(((1e-5, 1e-4), (1e-4, 0.02), (0.01, 0.5), (1e-5, 2.0))),
        acts=_acts(chance),
        holds=chance.choice((0.0, 0.0, 0.3)),
        rereads=chance.choice((0.0, 0.0, 0.5)),
        sizes=Sizes(
            window=chance.choice((2, 5, 64)),
            unsettled=chance.choice((1, 3, 66)),
            page=chance.choice((1, 3, 500)),
            block=chance.choice((1, 4, 1000)),
        ),
    )


def _price(chance: random.Random, *, is_known: bool) -> Price | None:
    if not is_known and chance.random() < 0.5:
        return None
    if chance.random() < 0.1:
        return FREE
    return Price(
        input_usd=round(chance.uniform(0, 1e-5), 9),
        output_usd=round(chance.uniform(0, 1e-5), 9),
        cached_input_usd=round(chance.uniform(0, 1e-5), 9),
        cache_write_usd=round(chance.uniform(0, 1e-5), 9),
    )


def _rules(chance: random.Random) -> Rules:
    return Rules(
        rps=chance.choice((None, None, None, 1.0, 10.0)),
        tpm=chance.choice((None, None, None, None, 5_000.0)),
        slots=chance.choice((None, None, None, 2, 6)),
        tells=chance.random() < 0.4,
        waits=chance.choice(("ms", "s", "")),
    )


def _faults(chance: random.Random) -> Mapping[str, float]:
    weight = chance.choice((0.0, 0.02, 0.1, 0.3))
    return {kind: weight * chance.random() / 2 for kind in FAULTS}


def _weather(chance: random.Random, endpoint: str) -> Weather:
    begin_s = chance.choice((0.0, chance.uniform(0, 3), chance.uniform(0, 60)))
    lasts_s = chance.choice((1.0, 20.0, 200.0, 2_000.0, 5_000.0))
    return Weather(
        endpoint=endpoint,
        kind=chance.choice(WEATHER),
        begin_s=begin_s,
        end_s=begin_s + lasts_s,
    )


def _acts(chance: random.Random) -> tuple[Act, ...]:
    kinds = (CRASH,) * 6 + (STOP, DRAIN, DRAIN) + (RETRY,) * 3
    kinds += (PAUSE, PAUSE, LIMITS, LIMITS, BUDGET, BUDGET, CANCEL)
    # most of a run's steps lie far from its start, so gaps are drawn by their size
    return tuple(
        Act(
            after=round(10 ** chance.uniform(0, 3)),
            kind=chance.choice(kinds),
            chance=chance.random(),
        )
        for _ in range(chance.choice((0, 1, 2, 3, 5, 8)))
    )
