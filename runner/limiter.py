"""What an endpoint allows: requests and tokens a minute, and calls at a time.

Sans-IO: every method takes `now` (monotonic seconds) and nothing here sleeps. A
limiter says when the next request may leave; the scheduler waits.

Three sources are heard, and the lowest limit counts: what a person set, what the
endpoint tells in its headers (`runner.told`), and what its refusals show
(`runner.pace`, `runner.slots`).
"""

from __future__ import annotations

from dataclasses import dataclass

from runner import errors as e
from runner.breaker import Breaker
from runner.bucket import MINUTE_S, MinuteBucket
from runner.pace import Pace
from runner.slots import Slots
from runner.told import NOTHING, Quota, Told

REQUEST_BURST_S = 0.25
"""Credit kept for late wake-ups; the loop's timers are good to some milliseconds."""
TOKEN_BURST_S = 1.0
"""Tokens are settled late and in lumps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a person set for one model; None: no limit of that kind."""

    concurrency: int  #: the ceiling; how many there are is found out
    rpm: float | None = None  #: requests a minute
    tpm: float | None = None  #: tokens a minute, prompt and output together
    weight: float = 1.0  #: share of an endpoint that several models use


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterStatistics:
    """What a limiter shows of itself: the limits in force, learned ones included."""

    concurrency: int
    in_flight: int
    rpm: float | None
    tpm: float | None
    paused_until: float | None  #: monotonic seconds


class Endpoint:
    """What several models at one address share: its pauses, its pace, its health."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.breaker = Breaker(name)
        self.pace = Pace()
        self.paused_until = float("-inf")
        self.in_flight = 0

    def pause(self, until: float) -> None:
        """Send nothing before *until*; never shortens a pause."""
        self.paused_until = max(self.paused_until, until)


class _Gate:
    """One kind of limit a minute: set by hand, told by the endpoint, or neither."""

    def __init__(self, by_hand: float | None, burst_s: float) -> None:
        self._by_hand = by_hand
        self._told: float | None = None
        self._burst_s = burst_s
        self.bucket = MinuteBucket(by_hand, burst_s) if by_hand is not None else None

    def set(self, by_hand: float | None) -> None:
        """Go by another limit of a person's, or by none."""
        self._by_hand = by_hand
        known = [limit for limit in (by_hand, self._told) if limit is not None]
        self.bucket = MinuteBucket(min(known), self._burst_s) if known else None

    def hear(self, now: float, quota: Quota | None) -> None:
        """Take the lower of what is told and what a person set."""
        if quota is None:
            return
        self._told = quota.per_minute
        limit = min(quota.per_minute, self._by_hand or quota.per_minute)
        if self.bucket is not None and self.bucket.per_minute == limit:
            return
        self.bucket = MinuteBucket(limit, self._burst_s)
        if quota.remaining is not None:
            # an earlier process may have used the minute up
            self.bucket.at_most(now, quota.remaining)


class Limiter:
    """The gate of one model at one endpoint."""

    def __init__(self, limits: Limits, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._slots = Slots(limits.concurrency)
        self._requests = _Gate(limits.rpm, REQUEST_BURST_S)
        self._tokens = _Gate(limits.tpm, TOKEN_BURST_S)
        self._in_flight = 0

    def set(self, limits: Limits, now: float) -> None:
        """Go by other limits of a person's; what the endpoint told still holds."""
        del now
        self._slots.set_ceiling(limits.concurrency)
        self._requests.set(limits.rpm)
        self._tokens.set(limits.tpm)

    @property
    def has_slot(self) -> bool:
        """Whether a call may be added to those in flight."""
        return self._in_flight < self._slots.limit

    @property
    def counts_tokens(self) -> bool:
        """Whether there is a token limit, by hand or told."""
        return self._tokens.bucket is not None

    def ready_at(self, now: float, tokens: int) -> float | None:
        """When a request of *tokens* may leave, slots apart; *now* if at once.

        None: no time can be told; something in flight must come back first.
        """
        endpoint = self._endpoint
        probe = endpoint.breaker.ready_at(now, endpoint.in_flight)
        if probe is None:
            return None
        when = max(probe, endpoint.paused_until, endpoint.pace.ready_at(now))
        if self._requests.bucket is not None:
            when = max(when, self._requests.bucket.ready_at(now, 1.0))
        if self._tokens.bucket is not None:
            when = max(when, self._tokens.bucket.ready_at(now, float(tokens)))
        return when

    def acquire(self, now: float, tokens: int) -> None:
        """Take a slot and reserve the request's share of the minute."""
        self._in_flight += 1
        self._endpoint.in_flight += 1
        self._endpoint.pace.sent(now)
        if self._requests.bucket is not None:
            self._requests.bucket.take(now, 1.0)
        if self._tokens.bucket is not None:
            self._tokens.bucket.take(now, float(tokens))

    def release(self, reserved: int, used: int | None) -> None:
        """Give the slot back; settle the reservation with the true usage if known."""
        self._in_flight -= 1
        self._endpoint.in_flight -= 1
        if self._tokens.bucket is not None and used is not None:
            self._tokens.bucket.give_back(float(reserved - used))

    def answered(self, now: float, sent_at: float, told: Told = NOTHING) -> None:
        """A reply came to a call of *sent_at*; before its slot is given back."""
        self._slots.answered(now, sent_at, self._in_flight)
        self._hear(now, told)

    def failed(
        self, now: float, sent_at: float, error: e.AttemptError, told: Told = NOTHING
    ) -> None:
        """A call ended without a reply; before its slot is given back.

        Only what speaks of limits counts: other errors are neutral. A pause that the
        endpoint asked for must be known already.
        """
        self._hear(now, told)
        if not isinstance(error, e.RateLimited | e.Overloaded):
            return
        pace = self._endpoint.pace
        if isinstance(error, e.RateLimited):
            pace.refused(now, sent_at, self._endpoint.paused_until)
        is_cut = isinstance(error, e.Overloaded) or pace.is_deaf(now)
        self._slots.refused(now, self._in_flight, is_cut=is_cut)

    def _hear(self, now: float, told: Told) -> None:
        self._requests.hear(now, told.requests)
        self._tokens.hear(now, told.tokens)

    def statistics(self) -> LimiterStatistics:
        """The limiter's state as a value."""
        until = self._endpoint.paused_until
        requests, tokens = self._requests.bucket, self._tokens.bucket
        pace = self._endpoint.pace.rate
        rpms = [requests.per_minute] if requests is not None else []
        if pace is not None:
            # in three digits: what is learned moves all the time, mostly by nothing
            rpms.append(float(f"{pace * MINUTE_S:.3g}"))
        return LimiterStatistics(
            concurrency=self._slots.limit,
            in_flight=self._in_flight,
            rpm=min(rpms, default=None),
            tpm=tokens.per_minute if tokens is not None else None,
            paused_until=until if until > float("-inf") else None,
        )
