"""What a person may set about the simulated endpoint."""

from __future__ import annotations

from dataclasses import dataclass
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

    def __post_init__(self) -> None:
        rates = (
            self.rate_429,
            self.rate_5xx,
            self.rate_malformed,
            self.rate_drop,
            self.rate_hang,
        )
        if min(rates) < 0 or sum(rates) > 1:
            raise UsageError(
                "The rates of faults are shares of all requests: each at least 0, "
                "together at most 1."
            )
        items = (self.batch_error_rate, self.batch_expire_rate)
        if min(items) < 0 or sum(items) > 1:
            raise UsageError(
                "The rates of batches are shares of their items: each at least 0, "
                "together at most 1."
            )
        if min(self.batch_seconds, self.batch_lag_seconds) < 0:
            raise UsageError(
                "--batch-seconds and --batch-lag-seconds are times; give 0 or more."
            )
        if self.batch_queue is not None and self.batch_queue <= 0:
            raise UsageError("--batch-queue is a number of items; give more than 0.")
        if min(self.latency_ms, self.jitter_ms) < 0:
            raise UsageError("Latency and jitter are times; give 0 or more.")
        if any(limit is not None and limit <= 0 for limit in (self.rps, self.tpm)):
            raise UsageError("--rps and --tpm are limits; give more than 0.")
        if self.rps_after is not None and (
            self.rps is None or min(self.rps_after) <= 0
        ):
            raise UsageError(
                "--rps-after changes --rps after so many seconds; give both, "
                "more than 0."
            )
