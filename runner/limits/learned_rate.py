"""Learns the request rate that an endpoint allows from its refusals; sans-IO.

Most servers use a token bucket. At a 429 the bucket is empty; at the next 429 it is
empty again; so the number of accepted requests between the two, divided by the time
between, *is* the rate at which the bucket fills, whatever its size. This holds if the
bucket never overflowed in between, that is, while only this rate held requests back and
it was not below the true rate: such a window is *firm*.

After a refusal nothing is sent for a moment. Calls in flight return, the count is
complete, and the server accumulates a little credit. The new rate is slightly above the
estimate: it uses up that credit slowly, at the cost of one or two refusals at the end,
and measures again. Between two refusals the allowed rate is fully used.

A rate that is refused again before it was raised is lowered a little each time. If that
does not help, the refusals do not depend on the rate, and the rate is *doubtful*.

After a refusal a limit stays unchanged for a while. If nothing is refused then, the
true limit may be higher, so it is raised by 5 %, 10 %, 20 %, ... as long as it is the
bottleneck.

If concurrency is limited, every refused call found as many others in flight as the
previous refused one, and no accepted call did. If the rate is limited, or refusals are
random, the refused call is like any other: its rank among accepted calls, by calls in
flight when sent, is uniformly distributed.

Some endpoints refuse one request in fifty at random. Once such a share is known, a
single refusal shows nothing; only a larger share does. Page's cumulative sum
(Biometrika 41, 1954) detects that in the fewest requests: it adds for every refusal and
every accepted request the log-likelihood ratio of a grown share to the usual one.
"""

from __future__ import annotations

import math
from collections import Counter

from runner.limits.rate_limits import TokenBucket

QUIET_S, QUIET_REQUESTS = 30.0, 300
"""Both must pass without a refusal before the first step; a probe costs one or two
refusals."""
STEP_S, STEP_REQUESTS = 5.0, 10
"""Distance between steps: a full bucket hides the first seconds of an increase."""
FIRST_STEP = 0.05
SEVERAL = 3
"""Refusals in vain from which chance is a possible cause."""


class UpwardSteps:
    """Upward steps of one limit."""

    def __init__(self) -> None:
        #: consecutive refusals although the limit had not been raised
        self.in_vain = 0
        self._sent = 0  #: since the first of those
        self._refused = 0
        self._steps = 0  #: upward steps, neither measured nor undone
        self.rest(float("-inf"))

    def rest(
        self, now: float, seconds: float = math.inf, requests: float = math.inf
    ) -> None:
        """Delay the next step by *seconds* and *requests*, at most a full rest.

        After several refusals in vain, also wait for three times the mean number of
        requests between them: if they are random, one pause in twenty is that long.
        """
        usual = self._sent // self.in_vain if self.in_vain >= SEVERAL else 0
        self._due_at = now + min(seconds, QUIET_S)
        self._due_in = max(min(requests, QUIET_REQUESTS), 3 * usual)
        self._step = FIRST_STEP
        self._had_slack = False

    @property
    def share(self) -> float:
        """Share of requests refused, counted while refused in vain."""
        return self._refused / max(1, self._sent)

    def refused(self) -> None:
        """Record that the limit was refused; undo the last upward step, if any.

        Without a step, the limit was too high, or refusals have another cause.
        """
        if self._steps:
            self._steps -= 1
            self.in_vain = self._sent = self._refused = 0
        else:
            self.in_vain += 1

    def measured(self) -> None:
        """Record that the limit was measured, which replaces all steps."""
        self._steps = 0

    def missed(self) -> None:
        """Count a refused request, whatever its cause."""
        self._refused += 1

    def slack(self) -> None:
        """Record that the limit is not the bottleneck."""
        self._had_slack = True

    def sent(self, now: float) -> float:
        """Count a request; return by how much to raise the limit now: 0.05 is 5 %."""
        self._sent += 1
        self._due_in -= 1
        if self._due_in > 0 or now < self._due_at:
            return 0.0
        self._due_at, self._due_in = now + STEP_S, STEP_REQUESTS
        if self._had_slack:
            self._had_slack = False
            return 0.0
        step = self._step
        self._step = min(1.0, 2 * step)
        self._steps += 1
        return step


CALLS_TOLERANCE = 0.1
"""Relative difference of calls in flight below which two refusals may have the same
limit."""
USUAL_RANK = 2.0
"""-log(rank) is 1 on average if calls in flight do not matter, and slightly more while
the rate rises, since calls in flight rise with it."""
MOST_EVIDENCE = 1.5
"""Maximum evidence of one window; at least two must agree."""


class ConcurrencyEvidence:
    """Compares the calls of consecutive windows."""

    def __init__(self) -> None:
        self.score = 0.0  #: evidence: a sum of -log(rank), never negative
        self._before: int | None = None  #: others in flight at the previous refusal
        self.begin()

    def begin(self) -> None:
        """Start a new window."""
        self._sent: Counter[int] = Counter()
        self._level: int | None = None

    def sent(self, among: int) -> None:
        """Record a call sent while *among* others are in flight."""
        self._sent[among] += 1

    def refused(self, among: int) -> None:
        """Record the first refused call of the window, sent beside *among* others."""
        self._level = among

    def compare(self, refused: int, *, is_steady: bool) -> None:
        """End the window, of whose calls *refused* were refused.

        While the rate rises or is free, in a window that is not *steady*, calls in
        flight rise up to the refusal anyway; such a window counts only if the refusals
        came at exactly the same number.
        """
        level, before = self._level, self._before
        self._before = level
        if (
            level is None
            or before is None
            or abs(level - before) > CALLS_TOLERANCE * before
        ):
            self.score = 0.0
            return
        if not is_steady and level != before:
            return
        full = min(level, before)
        above = sum(n for among, n in self._sent.items() if among >= full) - refused
        passed = max(1, self._sent.total() - refused)
        # zero of n counts as half a call: the rank is not known more precisely
        rank = min(1.0, max(0.5, above) / passed)
        evidence = min(MOST_EVIDENCE, -math.log(rank) - USUAL_RANK)
        self.score = max(0.0, self.score + evidence)


BURST_S = 0.25
"""Credit for late wake-ups; the loop's timers are accurate to some milliseconds."""
HOLD_S = 0.25
"""Pause after a refusal; with less, refusals are frequent, with more, small buckets
overflow."""
GAIN = 0.005
"""Relative surplus over the estimate: it uses up the credit of HOLD_S in 50 s, if
nothing grows."""
LESS = 0.01
"""Relative cut for each consecutive refusal of a rate that was not raised."""
ENOUGH = 20
"""Accepted requests needed for an estimate; an error of one is then 5 %."""
FEW = 4
"""The same after as many refusals: waiting for more would only cause more refusals. A
first estimate needs no fewer: one or two random refusals while the first calls are
still in flight would look like a very low rate, and so be rejected very slowly."""
SLACK_S = 5.0
"""Time for which a window with slack is firm; after that the bucket may have
overflowed."""
FLOOD = 0.2
"""With this share of refusals, no bucket overflows either."""
TRUST = 5
"""An estimate is kept for this many times the duration of its window."""
OFTEN = 4
"""Consecutive refusals that make a rate doubtful."""


class LearnedRate:
    """The learned rate of one endpoint; unlimited until refusals exceed chance."""

    def __init__(self) -> None:
        self._last_sent = float("-inf")
        self._settle_at: float | None = None  #: end of the wait after a refusal
        self._settled_at = float("-inf")
        self.drop(float("-inf"))

    def drop(self, now: float) -> None:
        """Forget the rate."""
        self._bucket: TokenBucket | None = None
        self._measured: float | None = None
        self._climb = UpwardSteps()
        self._before_step: float | None = None  #: rate before an open step
        self.concurrency_evidence = ConcurrencyEvidence()
        self._open(now, is_firm=False)

    def _open(self, now: float, *, is_firm: bool) -> None:
        """Start a window after *now*."""
        self._from = now
        self._is_firm = is_firm
        self._sent = 0
        self._refused = 0  #: of those sent
        self.concurrency_evidence.begin()

    @property
    def rate(self) -> float | None:
        """Requests per second; None: nothing was learned."""
        return self._bucket.rate if self._bucket is not None else None

    @property
    def is_doubtful(self) -> bool:
        """Whether a lower rate does not reduce refusals."""
        return self._climb.in_vain >= OFTEN

    @property
    def share(self) -> float:
        """Share of refused requests since the rate became doubtful."""
        return self._climb.share

    def ready_at(self, now: float) -> float:
        """Return when the next request may start."""
        if self._settle_at is not None:
            if now < self._settle_at:
                return self._settle_at
            self._settle(now)
        return now if self._bucket is None else self._bucket.ready_at(now, 1.0)

    def sent(self, now: float, among: int) -> None:
        """Record a request sent while *among* others are in flight."""
        bucket = self._bucket
        if bucket is None or bucket.level(now) >= bucket.depth:
            self._climb.slack()
            if now > self._from + SLACK_S and self._refused <= FLOOD * self._sent:
                self._open(now, is_firm=False)
        if bucket is not None:
            bucket.take(now, 1.0)
            if step := self._climb.sent(now):
                self._before_step = bucket.rate
                self._set_rate(bucket.rate * (1 + step))
                self._open(now, is_firm=False)
        self._sent += 1
        self.concurrency_evidence.sent(among)
        self._last_sent = now

    def missed(self, sent_at: float) -> None:
        """Count a refused request of *sent_at*, whatever its cause."""
        self._climb.missed()
        if sent_at > self._from:
            self._refused += 1

    def refused(self, now: float, sent_at: float, among: int, resume_at: float) -> None:
        """Treat the last `missed` request as a limit; pause until *resume_at*."""
        if self._settle_at is not None:
            self._settle_at = max(self._settle_at, resume_at)
        elif sent_at > self._settled_at:
            self._settle_at = max(now + HOLD_S, resume_at)
            self.concurrency_evidence.refused(among)

    def _settle(self, now: float) -> None:
        """Set the rate from the requests accepted in the window."""
        self._settle_at = None
        self._settled_at = now
        is_steady = self._is_firm and self._bucket is not None
        self.concurrency_evidence.compare(self._refused, is_steady=is_steady)
        if self._bucket is not None:
            self._climb.refused()
        duration_s, passed = math.inf, math.inf
        if self._is_firm:
            duration_s = self._last_sent - self._from
            passed = self._sent - self._refused
            self._measure(duration_s, passed)
        else:
            self._open(self._last_sent, is_firm=True)
            # the last upward step was too high
            self._measured = self._before_step or self._measured
        self._before_step = None
        if self._measured is not None:
            gain = GAIN - LESS * self._climb.in_vain
            self._set_rate(self._measured * (1 + gain)).at_most(now, 0.0)
            self._climb.rest(now, TRUST * duration_s, TRUST * passed)

    def _measure(self, duration_s: float, passed: float) -> None:
        if passed >= (FEW if self._refused >= FEW else ENOUGH):
            self._measured = passed / max(duration_s, HOLD_S)
            self._climb.measured()
            self._open(self._last_sent, is_firm=True)

    def _set_rate(self, rate: float) -> TokenBucket:
        # one whole request besides the credit, or slack could not be detected
        depth = 1.0 + rate * BURST_S
        if self._bucket is None:
            self._bucket = TokenBucket(rate, depth)
        self._bucket.rate, self._bucket.depth = rate, depth
        return self._bucket


GROWN_SHARE = 0.1
"""Increase over the usual share that is tested for; half of it is detected, and an
empty bucket refuses more."""
MOST_BY_CHANCE = 0.25
"""Higher shares are never attributed to chance."""
SURE_EXCESS = math.log(1e6)
"""At most one false alarm in a million requests (Lorden's bound)."""
MEMORY = 5000
"""Number of requests over which the usual share is averaged; it may change."""
NO_SHARE = 0.0001
"""Lower usual shares count as none: then every refusal counts again."""


class RefusalExcess:
    """Separates refusals that indicate a limit from random ones."""

    def __init__(self) -> None:
        self.usual = 0.0  #: share of requests refused at random
        self._learned = 0.0  #: upper bound of the usual share
        self._score = 0.0

    def learn(self, share: float) -> None:
        """Expect *share* of the requests to be refused at random.

        A share too high for chance is not learned: an endpoint that refuses nearly
        everything must not be pressed.
        """
        self.usual = self._learned = share if share <= MOST_BY_CHANCE else 0.0
        self._score = 0.0

    def passed(self) -> None:
        """Count an accepted request."""
        if self.usual:
            self._count(0.0)

    def refused(self) -> bool:
        """Count a refused request; return whether refusals exceed chance."""
        if not self.usual:
            return True
        self._count(1.0)
        return self._score >= SURE_EXCESS

    def _count(self, refused: float) -> None:
        usual, grown = self.usual, self.usual + GROWN_SHARE
        gain = grown / usual if refused else (1 - grown) / (1 - usual)
        self._score = min(SURE_EXCESS, max(0.0, self._score + math.log(gain)))
        self.usual = min(self._learned, usual + (refused - usual) / MEMORY)
        if self.usual < NO_SHARE:
            self.learn(0.0)
