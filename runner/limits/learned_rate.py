"""Learns the request rate that an endpoint allows from its refusals; sans-IO.

Most servers hold a bucket of credit. At a 429 the bucket is empty; at the next 429 it
is empty again; so the number of accepted requests between the two, divided by the time
between, *is* the rate at which the bucket fills, whatever its size. That is true as
long as the bucket never overflowed in between, that is, while only this rate held
requests back and it was not below the true rate: such a window is *firm*.

After a refusal nothing is sent for a moment. Calls in flight return, the count is
complete, and the server accumulates a little credit. The new rate is slightly above the
estimate: it uses up that credit slowly, at the cost of one or two refusals at the end,
and measures again. Between two refusals nothing of the allowed rate is lost.

A rate that is refused again before it was raised is lowered a little each time. If that
does not help, the refusals do not depend on the rate, and the rate is *doubtful*.

After a refusal a limit stays unchanged for a while. If nothing is refused then, the
true limit may be higher, and it is tried with 5 % more, 10 %, 20 %, ... as long as this
limit is the bottleneck.

If concurrency is limited, every refused call found as many others in flight as the
previous refused one, and no accepted call did. If the rate is limited, or refusals are
random, the refused call is like any other: its rank among those let through, by calls
in flight at the sending, is evenly distributed.

Some endpoints refuse one request in fifty at random. Once such a share is known, a
single refusal shows nothing; only a larger share does. Page's cumulative sum
(Biometrika 41, 1954) finds that in the fewest requests: every refusal adds to it, every
request let through takes away, each as much as it is likelier under a grown share than
under the usual one.
"""

from __future__ import annotations

import math
from collections import Counter

from runner.limits.rate_limits import TokenBucket

QUIET_S, QUIET_REQUESTS = 30.0, 300
"""So much without a refusal comes before the first step: a look costs one or two."""
STEP_S, STEP_REQUESTS = 5.0, 10
"""Steps are so far apart: a bucket that is full hides the first seconds of a rise."""
FIRST_STEP = 0.05
SEVERAL = 3
"""Refusals in vain from which they may be a matter of chance."""


class UpwardSteps:
    """The steps upwards of one limit."""

    def __init__(self) -> None:
        #: refusals in a row that came although the limit had not been raised
        self.in_vain = 0
        self._sent = 0  #: since the first of those
        self._refused = 0
        self._steps = 0  #: upwards, not measured and not undone
        self.rest(float("-inf"))

    def rest(
        self, now: float, seconds: float = math.inf, requests: float = math.inf
    ) -> None:
        """No step before *seconds* and *requests*, at most those of a full rest.

        After several refusals in vain, nor before three times as many requests as came
        between them: if they come by chance, such a pause is one of twenty.
        """
        usual = self._sent // self.in_vain if self.in_vain >= SEVERAL else 0
        self._due_at = now + min(seconds, QUIET_S)
        self._due_in = max(min(requests, QUIET_REQUESTS), 3 * usual)
        self._step = FIRST_STEP
        self._had_slack = False

    @property
    def share(self) -> float:
        """Share of the requests that were refused, of those refused in vain."""
        return self._refused / max(1, self._sent)

    def refused(self) -> None:
        """The limit was refused; the last step upwards, if any, is undone.

        Without a step, it was taken too high, or it is no limit of this kind.
        """
        if self._steps:
            self._steps -= 1
            self.in_vain = self._sent = self._refused = 0
        else:
            self.in_vain += 1

    def measured(self) -> None:
        """The limit was learned anew, whatever steps there were."""
        self._steps = 0

    def missed(self) -> None:
        """A request was refused, whatever for."""
        self._refused += 1

    def slack(self) -> None:
        """Something else held requests back: the limit is not what matters."""
        self._had_slack = True

    def sent(self, now: float) -> float:
        """A request leaves; by how much the limit is to be raised now: 0.05 is 5 %."""
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
"""Calls in flight at two refusals that differ by less may be the same limit."""
USUAL_RANK = 2.0
"""-log(rank) is 1 on average where calls in flight do not matter, and some more while
the rate rises, since calls in flight rise with it."""
MOST_EVIDENCE = 1.5
"""Evidence of one window; two at the least must agree before anything is believed."""


class ConcurrencyEvidence:
    """Compares the calls of one window after the other."""

    def __init__(self) -> None:
        self.score = 0.0  #: evidence: a sum of -log(rank), never negative
        self._before: int | None = None  #: others in flight at the refusal before
        self.begin()

    def begin(self) -> None:
        """A new window."""
        self._sent: Counter[int] = Counter()
        self._level: int | None = None

    def sent(self, among: int) -> None:
        """A call leaves, while *among* others are in flight."""
        self._sent[among] += 1

    def refused(self, among: int) -> None:
        """The first refused call of the window left while *among* were in flight."""
        self._level = among

    def compare(self, refused: int, *, is_steady: bool) -> None:
        """The window has ended; *refused* of its calls were.

        While the rate rises or is free, in a window that is not *steady*, calls in
        flight rise up to the refusal by themselves; such a window counts only if the
        refusals came at exactly the same number.
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
        # none of n is like half a call of n: the rank is known no better
        rank = min(1.0, max(0.5, above) / passed)
        evidence = min(MOST_EVIDENCE, -math.log(rank) - USUAL_RANK)
        self.score = max(0.0, self.score + evidence)


BURST_S = 0.25
"""Credit kept for late wake-ups; the loop's timers are good to some milliseconds."""
HOLD_S = 0.25
"""After a refusal; less, and refusals come often, more, and small buckets run over."""
GAIN = 0.005
"""Above the estimate: what HOLD_S gathers is used up after 50 s, if nothing grows."""
LESS = 0.01
"""Below it, for each time in a row that the pace was refused before it was raised."""
ENOUGH = 20
"""Requests let through that make an estimate; one more or less is then 5 %."""
FEW = 4
"""The same for a first estimate, or where as many were refused: to wait for more would
only have more refused."""
SLACK_S = 5.0
"""A window with slack is firm for so long; then the server may have run over."""
FLOOD = 0.2
"""Where this share is refused, no bucket runs over either."""
TRUST = 5
"""An estimate is left alone for so many times as long as it took to make."""
OFTEN = 4
"""Refused so often in a row, a pace is doubtful."""


class LearnedRate:
    """The learned rate of one endpoint; free until it is refused too much."""

    def __init__(self) -> None:
        self._last_sent = float("-inf")
        self._settle_at: float | None = None  #: a refusal is waiting for stragglers
        self._settled_at = float("-inf")
        self.drop(float("-inf"))

    def drop(self, now: float) -> None:
        """Forget the rate: requests are free again."""
        self._bucket: TokenBucket | None = None
        self._measured: float | None = None
        self._climb = UpwardSteps()
        self._before_step: float | None = None  #: the rate, until it held or did not
        self.concurrency_evidence = ConcurrencyEvidence()
        self._open(now, is_firm=False)

    def _open(self, now: float, *, is_firm: bool) -> None:
        """Begin a window after *now*."""
        self._from = now
        self._is_firm = is_firm
        self._sent = 0
        self._refused = 0  #: of those sent
        self.concurrency_evidence.begin()

    @property
    def rate(self) -> float | None:
        """Requests a second; None: nothing was learned."""
        return self._bucket.rate if self._bucket is not None else None

    @property
    def is_doubtful(self) -> bool:
        """Whether lowering the pace does not lessen the refusals."""
        return self._climb.in_vain >= OFTEN

    @property
    def share(self) -> float:
        """Share of the requests that were refused since the pace was in doubt."""
        return self._climb.share

    def ready_at(self, now: float) -> float:
        """When the next request may leave."""
        if self._settle_at is not None:
            if now < self._settle_at:
                return self._settle_at
            self._settle(now)
        return now if self._bucket is None else self._bucket.ready_at(now, 1.0)

    def sent(self, now: float, among: int) -> None:
        """A request leaves, while *among* others are in flight."""
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
        """A request of *sent_at* was not let through, whatever for."""
        self._climb.missed()
        if sent_at > self._from:
            self._refused += 1

    def refused(self, now: float, sent_at: float, among: int, resume_at: float) -> None:
        """What `missed` told was no chance; nothing is sent until *resume_at*."""
        if self._settle_at is not None:
            self._settle_at = max(self._settle_at, resume_at)
        elif sent_at > self._settled_at:
            self._settle_at = max(now + HOLD_S, resume_at)
            self.concurrency_evidence.refused(among)

    def _settle(self, now: float) -> None:
        """Set the pace by what the window let through."""
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
            # the last step upwards was one too many
            self._measured = self._before_step or self._measured
        self._before_step = None
        if self._measured is not None:
            gain = GAIN - LESS * self._climb.in_vain
            self._set_rate(self._measured * (1 + gain)).at_most(now, 0.0)
            self._climb.rest(now, TRUST * duration_s, TRUST * passed)

    def _measure(self, duration_s: float, passed: float) -> None:
        few_will_do = self._measured is None or self._refused >= FEW
        if passed >= (FEW if few_will_do else ENOUGH):
            self._measured = passed / max(duration_s, HOLD_S)
            self._climb.measured()
            self._open(self._last_sent, is_firm=True)

    def _set_rate(self, rate: float) -> TokenBucket:
        # one whole request beside the credit, or slack could not be told from none
        depth = 1.0 + rate * BURST_S
        if self._bucket is None:
            self._bucket = TokenBucket(rate, depth)
        self._bucket.rate, self._bucket.depth = rate, depth
        return self._bucket


GROWN_SHARE = 0.1
"""A share this much above the usual one is what is looked for; it notices half of it,
and a bucket that is empty refuses more."""
MOST_BY_CHANCE = 0.25
"""A share above is no chance, whatever else it is."""
SURE_EXCESS = math.log(1e6)
"""A false alarm in a million requests or fewer (Lorden's bound)."""
MEMORY = 5000
"""Requests over which the usual share is averaged; it may change."""
NO_SHARE = 0.0001
"""A usual share below is none: then every refusal counts again."""


class RefusalExcess:
    """Tells refusals that mean something from those that come by chance."""

    def __init__(self) -> None:
        self.usual = 0.0  #: share of requests that is refused by chance
        self._learned = 0.0  #: the usual share sinks below, and never rises above
        self._score = 0.0

    def learn(self, share: float) -> None:
        """Take *share* of the requests to be refused whatever is done.

        If so many are refused that it can be no chance, nothing is learned: an
        endpoint that refuses nearly everything is not to be pressed.
        """
        self.usual = self._learned = share if share <= MOST_BY_CHANCE else 0.0
        self._score = 0.0

    def passed(self) -> None:
        """A request was let through."""
        if self.usual:
            self._count(0.0)

    def refused(self) -> bool:
        """A request was refused; whether that is more than chance."""
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
