"""Decides when a request may start, by requests and tokens per minute and concurrency.

Sans-IO: every method takes `now` (monotonic seconds) and nothing here sleeps. A limiter
returns when the next request may be sent; the scheduler waits.

It combines three sources, and the lowest limit counts: limits set by the user, limits
in the endpoint's headers (`rate_limits`), and limits learned from its replies: refusals
(`LearnedLimits`) and latencies (`adaptive_concurrency`).

A refusal does not name the exceeded limit. So one explanation after the other is tried,
the most common first, and rejected if it does not end the refusals:

    429        the rate; then concurrency, if refusals come when most are in flight
    503, 529   concurrency; also if this process has too many files open
    else       chance: that share is expected from then on, and only more counts
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from runner import errors as e
from runner.limits.adaptive_concurrency import (
    START,
    AdaptiveConcurrency,
    LearnedConcurrency,
)
from runner.limits.breaker import Breaker
from runner.limits.learned_rate import LearnedRate, RefusalExcess
from runner.limits.rate_limits import (
    MINUTE_S,
    NO_HEADER_LIMITS,
    Credit,
    Gate,
    HeaderLimits,
    Lender,
    MinuteGate,
)

FULL = 2.5
"""`ConcurrencyEvidence.score` from which 429s are attributed to concurrency: at least
two windows in which nothing passed at as many calls in flight as were refused."""


Refusal: TypeAlias = e.RateLimited | e.Overloaded | e.OutOfFiles


class LearnedLimits:
    """Limits learned from refusals."""

    def __init__(self) -> None:
        self.pace = LearnedRate()
        self.concurrency = LearnedConcurrency()
        self.in_flight = 0
        self._surplus = {
            kind: RefusalExcess()
            for kind in (e.RateLimited, e.Overloaded, e.OutOfFiles)
        }
        self._blames_concurrency = False  #: for 429s
        self._full = FULL

    @property
    def has_room(self) -> bool:
        """Whether another call may be in flight."""
        return self.in_flight < self.concurrency.limit

    def ready_at(self, now: float) -> float:
        """Return when the next request may start."""
        when = self.pace.ready_at(now)
        if self.pace.concurrency_evidence.score >= self._full:
            self._blames_concurrency = True
        elif self.pace.is_doubtful:
            self._surplus[e.RateLimited].learn(self.pace.share)
        else:
            return when
        self.pace.drop(now)
        return now

    def sent(self, now: float) -> int:
        """Record a request; return how many others are in flight."""
        among = self.in_flight
        self.in_flight += 1
        self.pace.sent(now, among)
        self.concurrency.sent(now, among)
        return among

    def ended(self) -> None:
        """Record the end of a request, whatever its outcome."""
        self.in_flight -= 1

    def passed(self, now: float, sent_at: float, among: int) -> None:
        """Record an accepted request of *sent_at*, sent beside *among* others."""
        self.concurrency.passed(now, sent_at, among)
        for surplus in self._surplus.values():
            surplus.passed()

    def refused(
        self,
        error: Refusal,
        now: float,
        sent_at: float,
        among: int,
        resume_at: float,
    ) -> bool:
        """Record a refused request; return whether it indicates a limit.

        Args:
            error: the refusal.
            now: when it was received.
            sent_at: when the request was sent.
            among: how many others were in flight then.
            resume_at: end of the pause that the endpoint asked for.
        """
        is_limit = self._surplus[type(error)].refused()
        self.pace.missed(sent_at)
        if not is_limit:
            return False
        if isinstance(error, e.RateLimited) and not self._blames_concurrency:
            self.pace.refused(now, sent_at, among, resume_at)
            return True
        self.concurrency.refused(now, sent_at, among)
        if self.concurrency.is_doubtful:
            self._give_up_concurrency(error)
            return False
        return True

    def _give_up_concurrency(self, error: Refusal) -> None:
        if self._blames_concurrency:
            self._full *= 2  # require more evidence before blaming concurrency again
            self._blames_concurrency = False
        else:
            self._surplus[type(error)].learn(self.concurrency.share)
        self.concurrency.drop()


REQUEST_BURST_S = 0.25
"""Credit for late wake-ups; the loop's timers are accurate to some milliseconds."""
TOKEN_BURST_S = 1.0
"""Tokens are settled late and in batches."""
MOST_CALLS = 100_000
"""Maximum concurrency, whatever the user sets: a machine has 65,536 ports per address,
and memory grows with the loaded tasks."""

BRIEF_S = 1.0
"""A randomly refused call that asks for a wait up to this delays only itself; a longer
wait applies to all calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The user's limits for one model; None: no limit of that kind."""

    concurrency: int  #: the ceiling; the actual number is adaptive
    rpm: float | None = None  #: requests per minute
    tpm: float | None = None  #: tokens per minute, prompt and output together
    weight: float = 1.0  #: share of an endpoint used by several models
    processes: int = 1  #: processes that share the limits evenly
    batched: bool = False
    """Calls wait in batches, for up to a day: nothing is adapted."""

    @property
    def per_process(self) -> Limits:
        """Limits of one process; at least one call at a time."""
        n = self.processes
        return replace(
            self,
            concurrency=max(1, self.concurrency // n),
            rpm=None if self.rpm is None else self.rpm / n,
            tpm=None if self.tpm is None else self.tpm / n,
            processes=1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterStatistics:
    """The limits in force, learned ones included."""

    concurrency: int
    ceiling: int  #: of the concurrency, set by the user
    in_flight: int
    rpm: float | None
    tpm: float | None
    paused_until: float | None  #: monotonic seconds


class Contender(Protocol):
    """A sender of requests to an endpoint, in turn with others."""

    turn: float  #: virtual time at which its share is used up

    def is_able(self, now: float) -> bool:
        """Return whether it could send now, turns aside."""
        ...


class Endpoint:
    """State that all calls to one address share: pauses, limits, health, turns.

    Several models, of one or several runs of this process, may use it.
    """

    def __init__(
        self,
        name: str,
        limits: Limits | None = None,
        *,
        lender: Lender | None = None,
    ) -> None:
        """Create an endpoint; the user's *limits* apply to all its models together.

        Args:
            name: its address.
            limits: None: only each model has limits.
            lender: manages the models' limits if other processes share them.
        """
        by_hand = limits or Limits(concurrency=MOST_CALLS)
        self.name = name
        self.breaker = Breaker(name)
        self.ceiling = LearnedLimits()
        self.paused_until = float("-inf")
        self.concurrency = by_hand.concurrency
        self.requests = MinuteGate(by_hand.rpm, REQUEST_BURST_S)
        self.tokens = MinuteGate(by_hand.tpm, TOKEN_BURST_S)
        self.turn = 0.0  #: virtual time of the last start
        self._lender = lender
        self._starts: dict[str, int] = {}
        self._limiters: dict[str, Limiter] = {}
        self._contenders: list[Contender] = []

    @property
    def has_room(self) -> bool:
        """Whether another call of any model may be in flight."""
        return self.ceiling.in_flight < self.concurrency and self.ceiling.has_room

    def pause(self, until: float) -> None:
        """Send nothing before *until*; never shortens a pause."""
        self.paused_until = max(self.paused_until, until)

    def start_with(self, model: str, concurrency: int) -> None:
        """Let calls of *model* start at *concurrency*, which an earlier run reached.

        Without effect once the model has its limiter.
        """
        self._starts[model] = max(START, concurrency)

    def limiter(self, model: str, limits: Limits) -> Limiter:
        """Return the limiter of a model, shared by all runs; the first creates it."""
        if model not in self._limiters:
            self._limiters[model] = Limiter(
                limits,
                self,
                self._gates(model, limits),
                start=self._starts.get(model, START),
            )
        return self._limiters[model]

    def _gates(self, model: str, limits: Limits) -> tuple[Gate, Gate] | None:
        if self._lender is None:
            return None
        rpm, tpm = limits.rpm, limits.tpm
        return self._lender.gates(self, model, rpm=rpm, tpm=tpm)

    def pause_for_all(self, now: float, until: float) -> None:
        """Pause, and report the pause to other processes that use the endpoint."""
        if self._lender is not None and until > max(now, self.paused_until):
            self._lender.paused(self.name, now, until)
        self.pause(until)

    def join(self, contender: Contender) -> None:
        """Take part in turns."""
        self._contenders.append(contender)

    def leave(self, contender: Contender) -> None:
        """Stop taking turns."""
        self._contenders.remove(contender)

    def turn_order(self, contender: Contender) -> tuple[float, int]:
        """Return its position in the order of turns; the lowest is next."""
        return max(self.turn, contender.turn), self._contenders.index(contender)

    def is_anothers_turn(
        self, contender: Contender, group: Collection[Contender], now: float
    ) -> bool:
        """Return whether a contender outside of *group* can send and is first."""
        if len(self._contenders) == len(group):
            return False
        order = self.turn_order(contender)
        return any(
            self.turn_order(other) < order and other.is_able(now)
            for other in self._contenders
            if other not in group
        )


class Limiter:
    """The limiter of one model at one endpoint."""

    def __init__(
        self,
        limits: Limits,
        endpoint: Endpoint,
        gates: tuple[Gate, Gate] | None = None,
        *,
        start: int = START,
    ) -> None:
        """Create the limiter of a model.

        Args:
            limits: the user's limits.
            endpoint: its endpoint.
            gates: leased gates for requests and for tokens; None: local ones.
            start: calls at a time before anything is known, at most the user's limit.
        """
        self._endpoint = endpoint
        self._ceiling = endpoint.ceiling
        per_process = limits.per_process
        self._slots = AdaptiveConcurrency(
            per_process.concurrency,
            per_process.concurrency if limits.batched else start,
        )
        self._is_lent = gates is not None
        #: processes that share a displayed limit: leased limits are totals
        self._sharing = limits.processes if self._is_lent else 1
        self._requests, self._tokens = gates or (
            MinuteGate(per_process.rpm, REQUEST_BURST_S),
            MinuteGate(per_process.tpm, TOKEN_BURST_S),
        )
        self._in_flight = 0

    @property
    def has_slot(self) -> bool:
        """Whether another call may be in flight."""
        return self._in_flight < self._slots.limit and self._endpoint.has_room

    @property
    def counts_tokens(self) -> bool:
        """Whether there is a token limit, set by the user or in headers."""
        return bool(self._token_buckets)

    @property
    def _request_buckets(self) -> list[Credit]:
        gates = (self._requests, self._endpoint.requests)
        return [gate.bucket for gate in gates if gate.bucket is not None]

    @property
    def _token_buckets(self) -> list[Credit]:
        gates = (self._tokens, self._endpoint.tokens)
        return [gate.bucket for gate in gates if gate.bucket is not None]

    def set(self, limits: Limits, now: float) -> None:
        """Apply new limits of the user; learned rates and limits in headers remain.

        A raised concurrency is tried: what refusals showed before is forgotten. Calls
        in flight above a lowered ceiling finish and are not replaced.
        """
        concurrency = limits.per_process.concurrency
        if concurrency > self._slots.ceiling:
            self._ceiling.concurrency.drop()
        self._slots.set_ceiling(concurrency)
        # leases are parts of the total limit, whatever the number of processes
        rates = limits if self._is_lent else limits.per_process
        self._requests.set(now, rates.rpm)
        self._tokens.set(now, rates.tpm)

    def ready_at(self, now: float, tokens: int) -> float | None:
        """Return when a request of *tokens* may start, slots aside; *now* if at once.

        None: unknown; a call in flight must end or a lease arrive first.
        """
        endpoint = self._endpoint
        probe = endpoint.breaker.ready_at(now, endpoint.ceiling.in_flight)
        if probe is None:
            return None
        when = max(probe, endpoint.paused_until, self._ceiling.ready_at(now))
        for bucket in self._request_buckets:
            when = max(when, bucket.ready_at(now, 1.0))
        for bucket in self._token_buckets:
            when = max(when, bucket.ready_at(now, float(tokens)))
        return None if when == float("inf") else when

    def acquire(self, now: float, tokens: int) -> int:
        """Take a slot and rate credit; return the number of other calls in flight."""
        self._in_flight += 1
        for bucket in self._request_buckets:
            bucket.take(now, 1.0)
        for bucket in self._token_buckets:
            bucket.take(now, float(tokens))
        return self._ceiling.sent(now)

    def release(self, reserved: int, used: int | None) -> None:
        """Free the slot; settle the reservation with the true usage if known."""
        self._in_flight -= 1
        self._ceiling.ended()
        if used is not None:
            for bucket in self._token_buckets:
                bucket.give_back(float(reserved - used))

    def answered(
        self,
        now: float,
        sent_at: float,
        among: int,
        header_limits: HeaderLimits = NO_HEADER_LIMITS,
    ) -> None:
        """Record a reply to a call of *sent_at*, before its slot is freed.

        *among*: how many others were in flight when it was sent.
        """
        self._ceiling.passed(now, sent_at, among)
        self._apply_headers(now, header_limits)
        is_paced = bool(self._request_buckets)
        self._slots.answered(now, sent_at, self._in_flight, is_paced=is_paced)

    def failed(
        self,
        now: float,
        sent_at: float,
        among: int,
        error: e.AttemptError,
        header_limits: HeaderLimits = NO_HEADER_LIMITS,
        *,
        pause_s: float = 0.0,
    ) -> None:
        """Record a call without a reply, before its slot is freed.

        Only refusals that indicate a limit count; other errors and random refusals are
        neutral. *pause_s* is the wait that the endpoint asked for; it applies to all
        calls unless it is brief and the refusal random.
        """
        self._apply_headers(now, header_limits)
        if not isinstance(error, Refusal):
            return
        resume_at = now + pause_s
        is_limit = self._ceiling.refused(error, now, sent_at, among, resume_at)
        if is_limit or pause_s > BRIEF_S:
            self._endpoint.pause_for_all(now, resume_at)
        if is_limit:
            self._slots.refused()

    def _apply_headers(self, now: float, header_limits: HeaderLimits) -> None:
        self._requests.apply_quota(now, header_limits.requests)
        self._tokens.apply_quota(now, header_limits.tokens)

    def statistics(self) -> LimiterStatistics:
        """Return the limiter's state."""
        until = self._endpoint.paused_until
        pace = self._ceiling.pace.rate
        rpms = [bucket.per_minute / self._sharing for bucket in self._request_buckets]
        tpms = [bucket.per_minute / self._sharing for bucket in self._token_buckets]
        if pace is not None:
            # three digits: learned limits change constantly, mostly by very little
            rpms.append(float(f"{pace * MINUTE_S:.3g}"))
        return LimiterStatistics(
            concurrency=int(
                min(
                    self._slots.limit,
                    self._ceiling.concurrency.limit,
                    self._endpoint.concurrency,
                )
            ),
            ceiling=self._slots.ceiling,
            in_flight=self._in_flight,
            rpm=min(rpms, default=None),
            tpm=min(tpms, default=None),
            paused_until=until if until > float("-inf") else None,
        )
