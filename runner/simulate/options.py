"""Defines options of the simulated endpoint, its faults and its rate limits.

A fault depends on the seed, the request and how often that request was seen before, so
a series of faults can be repeated, and a failed request can succeed later. The limits
deliberately share no code with `runner.limits`: the limiter is tested against them, and
a shared bug would go undetected.
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
    """Behaviour of the endpoint; rates are shares of requests, 0 to 1."""

    port: int = 0  #: 0: any free port
    seed: int = 0
    latency_ms: float = 0.0
    jitter_ms: float = 0.0  #: maximum random addition to the latency, uniform
    rate_429: float = 0.0
    rate_5xx: float = 0.0
    rate_malformed: float = 0.0
    rate_drop: float = 0.0
    rate_hang: float = 0.0
    rps: float | None = None  #: maximum requests per second
    rps_after: tuple[float, float] | None = None  #: (seconds, later rps)
    tpm: float | None = None  #: maximum tokens per minute
    limit_headers: bool = False  #: report the limits in `x-ratelimit-*`
    ledger: Path | None = None
    job: str | None = None  #: job whose baseline answers
    batch_seconds: float = 0.0  #: maximum duration of a batch; 0: none
    batch_lag_seconds: float = 0.0  #: delay until a new batch is visible
    batch_queue: int | None = None  #: maximum number of queued batch items
    batch_error_rate: float = 0.0  #: share of failing batch items
    batch_expire_rate: float = 0.0
    batch_lost_create_rate: float = 0.0  #: share of lost replies about new batches
    dialect: str = "plain"  #: a name in `dialects.DIALECTS`
    bill_price: str | None = None  #: IN,OUT[,CACHED[,WRITE[,WRITE_1H]]], dollars/Mtok
    bill_tiers: Mapping[str, Decimal] | None = None  #: factors of prices, by tier
    quota_usd: Decimal | None = None  #: quota of the account
    models: tuple[str, ...] = ()  #: available models; empty: any
    bytes_per_token: float | None = None  #: None: drawn by seed and dialect
    reasoning: int | None = None  #: maximum tokens; overrides the dialect
    max_output: int | None = None  #: maximum tokens that a model can generate
    cache_least: int | None = None  #: minimum tokens of a cached prompt
    ignored: tuple[str, ...] = ()  #: ignored fields of chats
    rate_refuse: float = 0.0  #: share of prompts that are never answered

    def __post_init__(self) -> None:
        for is_wrong, complaint in self._rules():
            if is_wrong:
                raise UsageError(complaint)

    def _rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule: whether it is violated, and the message."""
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
    """A stream of random draws that depends only on *parts*.

    Unlike with a shared generator, the draws of one request do not depend on earlier
    requests.
    """

    __slots__ = ("_bytes", "_seed")

    def __init__(self, *parts: str | int) -> None:
        self._seed = hashlib.blake2b(repr(parts).encode()).digest()
        self._bytes = self._seed

    def unit(self) -> float:
        """Draw a number in [0, 1)."""
        if not self._bytes:
            self._seed = hashlib.blake2b(self._seed).digest()
            self._bytes = self._seed
        word, self._bytes = self._bytes[:_WORD_BYTES], self._bytes[_WORD_BYTES:]
        # 53 bits: the precision of a float, so that 1.0 is never reached
        return (int.from_bytes(word, "big") >> 11) / (1 << 53)

    def below(self, bound: int) -> int:
        """Draw a whole number in [0, *bound*)."""
        return int(self.unit() * bound)

    def pick(self, choices: Sequence[_T]) -> _T:
        """Draw one of *choices*."""
        return choices[self.below(len(choices))]


SERVER_ERRORS: Final = (500, 502, 503, 529)

FAULT_WAIT_S: Final = 0.1
"""Wait requested by a random 429: long enough to notice, short enough for tests."""


class RequestOutcome(enum.StrEnum):
    """Outcome of a request in the ledger."""

    ANSWERED = "answered"  #: the complete reply was written to the connection
    RATE_LIMITED = "429"
    SERVER_ERROR = "5xx"
    MALFORMED = "malformed"  #: status 200 and an invalid body
    DROPPED = "dropped"  #: the connection was closed before or during the reply
    HANG = "hang"  #: no byte was ever sent
    REFUSED = "refused"  #: 4xx: the request itself, or one of its parameters
    GONE = "gone"  #: the client or the server left before the reply was sent


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOutcome:
    """Outcome of a request, unless its client leaves."""

    outcome: RequestOutcome
    status: int  #: status of the reply; 0: none is sent
    latency_s: float
    shape: float  #: in [0, 1): selects the kind of the fault


def planned_outcome(
    options: SimulateOptions,
    request: str,
    seen: int,
    statuses: Sequence[int] = SERVER_ERRORS,
) -> PlannedOutcome:
    """Return the outcome of *request*, a hash seen *seen* times before.

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
    """A token bucket that fills at *rate* per second up to *capacity*."""

    def __init__(self, *, rate: float, capacity: float, now: float) -> None:
        self._rate = rate
        self._capacity = capacity
        self._level = capacity
        self._now = now

    def wait_s(self, amount: float, now: float) -> float:
        """Return the seconds until *amount* can be taken; 0.0: now.

        An amount above the capacity is served from a full bucket.
        """
        missing = min(amount, self._capacity) - self.level(now)
        return max(0.0, missing / self._rate)

    def take(self, amount: float, now: float) -> None:
        """Take *amount*; the level may become negative."""
        self._level = self.level(now) - amount

    def level(self, now: float) -> float:
        """Return the current level."""
        self._level = min(
            self._capacity, self._level + max(0.0, now - self._now) * self._rate
        )
        self._now = max(now, self._now)
        return self._level

    def change(self, *, rate: float, capacity: float, now: float) -> None:
        """Change the rate and the capacity."""
        self._level = min(capacity, self.level(now))
        self._rate, self._capacity = rate, capacity

    def full_in_s(self, now: float) -> float:
        """Return the seconds until the bucket is full."""
        return (self._capacity - self.level(now)) / self._rate


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitGauge:
    """State of one limit."""

    per_minute: float  #: the limit
    remaining: float  #: currently available
    full_in_s: float  #: seconds until it is full again
    served: int = 0  #: requests admitted so far


class SimulatedLimits:
    """Both limits of an endpoint; an unset limit never refuses.

    Bursts may have one second's worth of requests and one minute's worth of tokens:
    OpenAI counts requests over short windows, and one prompt may need a large part of
    the tokens.
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
        """Admit a request of *tokens*: 0.0, or the seconds to wait if it is refused."""
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
        """Apply the later request limit when it is due."""
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
        """Count the tokens of a reply, which are known only afterwards."""
        if "tokens" in self._buckets:
            self._buckets["tokens"][1].take(tokens, now)

    def gauges(self, now: float) -> dict[str, LimitGauge]:
        """Return the state of every limit, if headers are sent."""
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
        """Return `x-ratelimit-*` for every limit, if headers are sent."""
        return openai_headers(self.gauges(now), now)


def openai_headers(gauges: Mapping[str, LimitGauge], _now_s: float) -> dict[str, str]:
    """Format `x-ratelimit-*` as OpenAI does."""
    headers: dict[str, str] = {}
    for name, gauge in gauges.items():
        headers[f"x-ratelimit-limit-{name}"] = f"{gauge.per_minute:.0f}"
        headers[f"x-ratelimit-remaining-{name}"] = f"{gauge.remaining:.0f}"
        headers[f"x-ratelimit-reset-{name}"] = duration(gauge.full_in_s)
    return headers


def retry_after(wait_s: float) -> dict[str, str]:
    """Return two headers with the wait; the first one in whole seconds."""
    return {
        "retry-after": str(math.ceil(wait_s)),
        "retry-after-ms": str(math.ceil(wait_s * 1000)),
    }


def _burst(rps: float) -> float:
    """Return the size of a burst: one second's worth of requests."""
    return max(1.0, rps)


def duration(seconds: float) -> str:
    """Format a duration as OpenAI does: `120ms`, `1.5s`, `6m0s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:.0f}s" if minutes else f"{rest:.3g}s"
