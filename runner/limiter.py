"""What an endpoint allows: requests and tokens a minute, and calls at a time.

Sans-IO: every method takes `now` (monotonic seconds) and nothing here sleeps. A
limiter says when the next request may leave; the scheduler waits.

The minute limits are virtual-schedule token buckets (GCRA, ITU-T I.371): credit grows
steadily up to a small burst. The steady rate is lowered by the burst's share, so that
no 60 s window ever holds more than the limit, wherever it begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.breaker import Breaker

MINUTE_S = 60.0
REQUEST_BURST_S = 0.25
"""Credit kept for late wake-ups; the loop's timers are good to some milliseconds."""
TOKEN_BURST_S = 5.0
"""A single request takes thousands of tokens, so their bucket must be deeper."""


class Bucket:
    """Credit that refills steadily and may be overdrawn by one large request."""

    def __init__(self, per_minute: float, burst_s: float, *, unit: float = 1.0) -> None:
        #: at least one request must fit, else nothing would ever leave
        self._depth = max(unit, per_minute * burst_s / MINUTE_S)
        self._rate = max(per_minute - self._depth, per_minute * 0.5) / MINUTE_S
        self._level = self._depth
        self._at = float("-inf")

    def _refill(self, now: float) -> None:
        if now > self._at:
            grown = (now - self._at) * self._rate
            self._level = min(self._depth, self._level + grown)
            self._at = now

    def ready_at(self, now: float, amount: float) -> float:
        """When *amount* may be taken; an amount over the depth needs a full bucket."""
        self._refill(now)
        lacking = min(amount, self._depth) - self._level
        # a billionth of credit is rounding, not debt
        return now if lacking <= 1e-9 * self._depth else now + lacking / self._rate

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*, into debt if it is larger than what is left."""
        self._refill(now)
        self._level -= amount

    def give_back(self, amount: float) -> None:
        """Return what a reservation did not need; negative: it needed more."""
        self._level = min(self._depth, self._level + amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a person set for one model; None: no limit of that kind."""

    concurrency: int
    rpm: float | None = None  #: requests a minute
    tpm: float | None = None  #: tokens a minute, prompt and output together


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterStatistics:
    """What a limiter shows of itself."""

    concurrency: int
    in_flight: int
    rpm: float | None
    tpm: float | None
    paused_until: float | None  #: monotonic seconds


class Endpoint:
    """What several models at one address share: its pauses, and whether it works."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.breaker = Breaker(name)
        self.paused_until = float("-inf")
        self.in_flight = 0

    def pause(self, until: float) -> None:
        """Send nothing before *until*; never shortens a pause."""
        self.paused_until = max(self.paused_until, until)


class Limiter:
    """The gate of one model at one endpoint."""

    def __init__(self, limits: Limits, endpoint: Endpoint) -> None:
        self._limits = limits
        self._endpoint = endpoint
        self._requests = (
            Bucket(limits.rpm, REQUEST_BURST_S) if limits.rpm is not None else None
        )
        self._tokens = (
            Bucket(limits.tpm, TOKEN_BURST_S) if limits.tpm is not None else None
        )
        self._in_flight = 0

    @property
    def has_slot(self) -> bool:
        """Whether a call may be added to those in flight."""
        return self._in_flight < self._limits.concurrency

    def ready_at(self, now: float, tokens: int) -> float | None:
        """When a request of *tokens* may leave, slots apart; *now* if at once.

        None: no time can be told; something in flight must come back first.
        """
        probe = self._endpoint.breaker.ready_at(now, self._endpoint.in_flight)
        if probe is None:
            return None
        when = max(probe, self._endpoint.paused_until)
        if self._requests is not None:
            when = max(when, self._requests.ready_at(now, 1.0))
        if self._tokens is not None:
            when = max(when, self._tokens.ready_at(now, float(tokens)))
        return when

    def acquire(self, now: float, tokens: int) -> None:
        """Take a slot and reserve the request's share of the minute."""
        self._in_flight += 1
        self._endpoint.in_flight += 1
        if self._requests is not None:
            self._requests.take(now, 1.0)
        if self._tokens is not None:
            self._tokens.take(now, float(tokens))

    def release(self, reserved: int, used: int | None) -> None:
        """Give the slot back; settle the reservation with the true usage if known."""
        self._in_flight -= 1
        self._endpoint.in_flight -= 1
        if self._tokens is not None and used is not None:
            self._tokens.give_back(float(reserved - used))

    def statistics(self) -> LimiterStatistics:
        """The limiter's state as a value."""
        until = self._endpoint.paused_until
        return LimiterStatistics(
            concurrency=self._limits.concurrency,
            in_flight=self._in_flight,
            rpm=self._limits.rpm,
            tpm=self._limits.tpm,
            paused_until=until if until > float("-inf") else None,
        )
