"""Defines options of the simulated endpoint, its faults and its rate limits.

A fault depends on the seed, the request and how often that request was seen before, so
that a run of faults can be repeated, and a request that failed can succeed later. The
limits deliberately share no code with `runner.limits`: the limiter is tested against
them, and a shared bug would go undetected.
"""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeVar

from runner.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """How the endpoint behaves; the rates are shares of requests, 0 to 1."""

    port: int = 0  #: 0: any free one
    seed: int = 0
    latency_ms: float = 0.0
    jitter_ms: float = 0.0  #: at most this is added to the latency, evenly
    rate_429: float = 0.0
    rate_5xx: float = 0.0
    rate_malformed: float = 0.0
    rate_drop: float = 0.0
    rate_hang: float = 0.0
    rps: float | None = None  #: requests a second that are served
    rps_after: tuple[float, float] | None = None  #: after so many seconds, this rps
    tpm: float | None = None  #: tokens a minute that are served
    limit_headers: bool = False  #: tell the limits in `x-ratelimit-*`
    ledger: Path | None = None
    job: str | None = None  #: whose baseline writes the answers
    batch_seconds: float = 0.0  #: at most so long until a batch ends; 0: at once
    batch_lag_seconds: float = 0.0  #: until a new batch is listed, and known by its id
    batch_queue: int | None = None  #: items that may wait in batches at a time
    batch_error_rate: float = 0.0  #: of the items of batches, as the next
    batch_expire_rate: float = 0.0
    batch_lost_create_rate: float = 0.0  #: of the replies that tell of a new batch
    dialect: str = "plain"  #: a name in `dialects.DIALECTS`
    bill_price: str | None = None  #: IN,OUT[,CACHED[,WRITE[,WRITE_1H]]], dollars/Mtok
    bill_tiers: Mapping[str, Decimal] | None = None  #: factors of prices, by tier
    quota_usd: Decimal | None = None  #: what the account may spend
    models: tuple[str, ...] = ()  #: the only ones there are; none: any
    bytes_per_token: float | None = None  #: None: drawn by seed and dialect
    reasoning: int | None = None  #: tokens at most, instead of the dialect's
    max_output: int | None = None  #: tokens that a model can generate
    cache_least: int | None = None  #: tokens of the shortest prompt that is cached
    ignored: tuple[str, ...] = ()  #: fields of a chat without effect
    rate_refuse: float = 0.0  #: share of prompts that are never answered

    def __post_init__(self) -> None:
        for is_wrong, complaint in self._rules():
            if is_wrong:
                raise UsageError(complaint)

    def _rules(self) -> Iterator[tuple[bool, str]]:
        """What must not be, and what to say of it."""
        rates = (
            self.rate_429,
            self.rate_5xx,
            self.rate_malformed,
            self.rate_drop,
            self.rate_hang,
        )
        yield (
            min(rates) < 0 or sum(rates) > 1,
            (
                "The rates of faults are shares of all requests: each at least 0, "
                "together at most 1."
            ),
        )
        items = (self.batch_error_rate, self.batch_expire_rate)
        yield (
            min(items) < 0 or sum(items) > 1,
            (
                "The rates of batches are shares of their items: each at least 0, "
                "together at most 1."
            ),
        )
        yield (
            min(self.batch_seconds, self.batch_lag_seconds) < 0,
            "--batch-seconds and --batch-lag-seconds are times; give 0 or more.",
        )
        yield (
            self.batch_queue is not None and self.batch_queue <= 0,
            "--batch-queue is a number of items; give more than 0.",
        )
        yield (
            min(self.latency_ms, self.jitter_ms) < 0,
            "Latency and jitter are times; give 0 or more.",
        )
        yield (
            any(limit is not None and limit <= 0 for limit in (self.rps, self.tpm)),
            "--rps and --tpm are limits; give more than 0.",
        )
        yield (
            self.rps_after is not None
            and (self.rps is None or min(self.rps_after) <= 0),
            "--rps-after changes --rps after that many seconds; give both, above 0.",
        )
        yield (
            not 0 <= self.rate_refuse <= 1,
            "--rate-refuse is a share: 0 to 1.",
        )
        yield (
            self.bytes_per_token is not None and self.bytes_per_token < 1,
            "--bytes-per-token is at least 1: no tokenizer has less.",
        )
        sizes = (self.max_output, self.cache_least)
        yield (
            any(size is not None and size <= 0 for size in sizes),
            "--max-output and --cache-least are tokens; give more than 0.",
        )


_T = TypeVar("_T")
_WORD_BYTES = 8


class Chance:
    """A stream of draws that depends on *parts* and nothing else.

    Unlike a shared generator, what one request draws cannot depend on which requests
    came before it.
    """

    __slots__ = ("_bytes", "_seed")

    def __init__(self, *parts: str | int) -> None:
        self._seed = hashlib.blake2b(repr(parts).encode()).digest()
        self._bytes = self._seed

    def unit(self) -> float:
        """A number in [0, 1)."""
        if not self._bytes:
            self._seed = hashlib.blake2b(self._seed).digest()
            self._bytes = self._seed
        word, self._bytes = self._bytes[:_WORD_BYTES], self._bytes[_WORD_BYTES:]
        # 53 bits: all that a float holds, so that 1.0 is never reached
        return (int.from_bytes(word, "big") >> 11) / (1 << 53)

    def below(self, bound: int) -> int:
        """A whole number in [0, *bound*)."""
        return int(self.unit() * bound)

    def pick(self, choices: Sequence[_T]) -> _T:
        """One of *choices*."""
        return choices[self.below(len(choices))]


SERVER_ERRORS: Final = (500, 502, 503, 529)

FAULT_WAIT_S: Final = 0.1
"""What a 429 by chance asks to wait: long enough to be seen, short enough for tests."""


class RequestOutcome(enum.StrEnum):
    """How a request ended, as the ledger tells it."""

    ANSWERED = "answered"  #: the whole reply was handed to the connection
    RATE_LIMITED = "429"
    SERVER_ERROR = "5xx"
    MALFORMED = "malformed"  #: status 200 and a body that is no reply
    DROPPED = "dropped"  #: the connection was cut before or in the reply
    HANG = "hang"  #: no byte was ever sent
    REFUSED = "refused"  #: 4xx: the request itself, or one of its parameters
    GONE = "gone"  #: the client left, or the server stopped, before the reply was out


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOutcome:
    """What is going to happen to a request, if its client stays."""

    outcome: RequestOutcome
    status: int  #: of the reply; 0 where none is sent
    latency_s: float
    shape: float  #: in [0, 1): which of the kinds of its fault


def planned_outcome(
    options: SimulateOptions,
    request: str,
    seen: int,
    statuses: Sequence[int] = SERVER_ERRORS,
) -> PlannedOutcome:
    """The fate of *request*, a hash, that was seen *seen* times before.

    A server error has one of *statuses*.
    """
    chance = Chance("fate", options.seed, request, seen)
    latency_s = (options.latency_ms + chance.unit() * options.jitter_ms) / 1000
    draw, shape = chance.unit(), chance.unit()
    for outcome, rate, status in (
        (RequestOutcome.RATE_LIMITED, options.rate_429, 429),
        (RequestOutcome.SERVER_ERROR, options.rate_5xx, chance.pick(statuses)),
        (RequestOutcome.MALFORMED, options.rate_malformed, 200),
        (RequestOutcome.DROPPED, options.rate_drop, 0),
        (RequestOutcome.HANG, options.rate_hang, 0),
    ):
        if draw < rate:
            return PlannedOutcome(
                outcome=outcome, status=status, latency_s=latency_s, shape=shape
            )
        draw -= rate
    return PlannedOutcome(
        outcome=RequestOutcome.ANSWERED, status=200, latency_s=latency_s, shape=shape
    )


class SimulatedBucket:
    """Fills at *rate* a second up to *capacity*; what it holds may be taken."""

    def __init__(self, *, rate: float, capacity: float, now: float) -> None:
        self._rate = rate
        self._capacity = capacity
        self._level = capacity
        self._now = now

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until *amount* can be taken; 0.0: now.

        More than the bucket can ever hold is served from a full one.
        """
        missing = min(amount, self._capacity) - self.level(now)
        return max(0.0, missing / self._rate)

    def take(self, amount: float, now: float) -> None:
        """Take *amount*; the level may fall below zero by what was too large."""
        self._level = self.level(now) - amount

    def level(self, now: float) -> float:
        """What the bucket holds."""
        self._level = min(
            self._capacity, self._level + max(0.0, now - self._now) * self._rate
        )
        self._now = max(now, self._now)
        return self._level

    def change(self, *, rate: float, capacity: float, now: float) -> None:
        """Fill at another rate up to another capacity from now on."""
        self._level = min(capacity, self.level(now))
        self._rate, self._capacity = rate, capacity

    def full_in_s(self, now: float) -> float:
        """Seconds until it is full again."""
        return (self._capacity - self.level(now)) / self._rate


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitGauge:
    """One limit at a moment."""

    per_minute: float  #: what it allows
    remaining: float  #: what may be taken at once
    full_in_s: float  #: until all of it is there again
    served: int = 0  #: requests admitted so far


class SimulatedLimits:
    """Both limits of an endpoint; a limit that is not set never refuses.

    Requests may come in bursts of one second's worth, tokens of one minute's: OpenAI
    counts requests over short windows, and one prompt may take a good part of the
    tokens.
    """

    def __init__(self, options: SimulateOptions, now: float) -> None:
        rps, tpm = options.rps, options.tpm
        self._sends_headers = options.limit_headers
        self._rps_after = options.rps_after
        self._changes_at: float | None = None
        self._served = 0
        self._buckets: dict[str, tuple[float, SimulatedBucket]] = {}
        if rps is not None:
            requests = SimulatedBucket(rate=rps, capacity=_burst(rps), now=now)
            self._buckets["requests"] = (rps * 60, requests)
        if tpm is not None:
            self._buckets["tokens"] = (
                tpm,
                SimulatedBucket(rate=tpm / 60, capacity=tpm, now=now),
            )

    def admit(self, tokens: int, now: float) -> float:
        """Take a request of *tokens*: 0.0, or the seconds to wait, nothing taken."""
        self._change(now)
        amounts = {"requests": 1, "tokens": tokens}
        wait_s = max(
            (
                bucket.wait_s(amounts[name], now)
                for name, (_, bucket) in self._buckets.items()
            ),
            default=0.0,
        )
        if wait_s == 0.0:
            self._served += 1
            for name, (_, bucket) in self._buckets.items():
                bucket.take(amounts[name], now)
        return wait_s

    def _change(self, now: float) -> None:
        """Another limit on requests, where its time has come."""
        if self._rps_after is None:
            return
        after_s, rps = self._rps_after
        if self._changes_at is None:
            self._changes_at = now + after_s
        if now >= self._changes_at:
            self._rps_after = None
            _, bucket = self._buckets["requests"]
            bucket.change(rate=rps, capacity=_burst(rps), now=now)
            self._buckets["requests"] = (rps * 60, bucket)

    def charge(self, tokens: int, now: float) -> None:
        """Count the tokens of a reply too; they are known only once it is there."""
        if "tokens" in self._buckets:
            self._buckets["tokens"][1].take(tokens, now)

    def gauges(self, now: float) -> dict[str, LimitGauge]:
        """Every limit, where they are to be told."""
        if not self._sends_headers:
            return {}
        return {
            name: LimitGauge(
                per_minute=per_minute,
                remaining=max(0.0, bucket.level(now)),
                full_in_s=bucket.full_in_s(now),
                served=self._served,
            )
            for name, (per_minute, bucket) in self._buckets.items()
        }

    def headers(self, now: float) -> dict[str, str]:
        """`x-ratelimit-*` of every limit, where they are to be told."""
        return openai_headers(self.gauges(now), now)


def openai_headers(gauges: Mapping[str, LimitGauge], _now_s: float) -> dict[str, str]:
    """`x-ratelimit-*` as OpenAI writes them."""
    headers: dict[str, str] = {}
    for name, gauge in gauges.items():
        headers[f"x-ratelimit-limit-{name}"] = f"{gauge.per_minute:.0f}"
        headers[f"x-ratelimit-remaining-{name}"] = f"{gauge.remaining:.0f}"
        headers[f"x-ratelimit-reset-{name}"] = duration(gauge.full_in_s)
    return headers


def retry_after(wait_s: float) -> dict[str, str]:
    """The two headers that say how long to wait; the first knows whole seconds only."""
    return {
        "retry-after": str(math.ceil(wait_s)),
        "retry-after-ms": str(math.ceil(wait_s * 1000)),
    }


def _burst(rps: float) -> float:
    """Requests that are served at once: one second's worth."""
    return max(1.0, rps)


def duration(seconds: float) -> str:
    """A time as OpenAI writes it: `120ms`, `1.5s`, `6m0s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:.0f}s" if minutes else f"{rest:.3g}s"
