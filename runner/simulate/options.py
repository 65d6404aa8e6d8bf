"""What a person may set about the simulated endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

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
            "--rps-after changes --rps after so many seconds; give both, more than 0.",
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
