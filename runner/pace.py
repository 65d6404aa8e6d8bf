"""The request rate that an endpoint allows, learned from its refusals; sans-IO.

Most servers hold a bucket of credit. At a 429 the bucket is empty; at the next 429 it
is empty again; so what was let through between the two, divided by the time between,
*is* the rate at which the bucket fills, whatever its size. That holds as long as the
bucket never ran over in between, that is, while requests were held back by this pace
alone and it stood no lower than the truth: such a window is *firm*.

After a refusal nothing is sent for a moment. What was under way comes back, the count
is settled, and the server gathers a little credit. The new pace is a trifle above the
estimate: it eats up that credit slowly, at the cost of one or two refusals when it is
gone, and measures again. Between two refusals nothing of the allowed rate is lost.
"""

from __future__ import annotations

from runner.bucket import Bucket

BURST_S = 0.25
"""Credit kept for late wake-ups; the loop's timers are good to some milliseconds."""
HOLD_S = 0.25
"""After a refusal; less, and refusals come often, more, and small buckets run over."""
GAIN = 0.005
"""Above the estimate: what HOLD_S gathers is used up after 50 s, if nothing grows."""
ENOUGH = 20
"""Requests let through that make an estimate; one more or less is then 5 %."""
FEW = 4
"""The same where the estimate is less than half of the pace."""
SLACK_S = 5.0
"""A window with slack is firm for so long; then the server may have run over."""
QUIET_S, QUIET_REQUESTS = 30.0, 300
"""So much without a refusal, and the limit may have risen..."""
TRUST = 5
"""...or the estimate was too low: one made of few requests is trusted for few."""
GROW_S, GROW_REQUESTS = 5.0, 10
FIRST_STEP = 0.05
"""It is then tried with 5 % more, 10 %, 20 %, ... so far apart."""
SOON = 100
"""Requests; a window that ends earlier has more refusals than a right pace brings."""
OFTEN = 4
"""More in a row, and refusals have nothing to do with the rate."""
DEAF_S = 60.0
"""For so long they are then not listened to; twice as long each time."""
FLOOD = 0.2
"""Share of refusals that ends it for good: sending freely must not make things worse.
Where so much is refused, no bucket runs over either."""


class Pace:
    """The learned rate of one endpoint; free until it is refused too much."""

    def __init__(self) -> None:
        self._bucket: Bucket | None = None
        self._open(float("-inf"), is_firm=False)
        self._last_sent = float("-inf")
        self._settle_at: float | None = None  #: a refusal is waiting for stragglers
        self._settled_at = float("-inf")
        self._grow_at = float("-inf")
        self._step = FIRST_STEP
        self._made_of = 0  #: requests let through that the rate was learned from
        self._had_slack = False  #: since growing was last thought of
        self._soon = 0  #: windows in a row that ended too soon
        self._deaf_s = DEAF_S
        self._deaf_until = float("-inf")
        self._is_sure = False  #: refusals were not listened to once, and became many

    def _open(self, now: float, *, is_firm: bool) -> None:
        """Begin a window after *now*."""
        self._from = now
        self._is_firm = is_firm
        self._sent = 0
        self._refused = 0  #: of those sent

    @property
    def rate(self) -> float | None:
        """Requests a second; None: nothing was learned."""
        return self._bucket.rate if self._bucket is not None else None

    def is_deaf(self, now: float) -> bool:
        """Whether refusals were found to have nothing to do with the rate."""
        return now < self._deaf_until

    @property
    def _is_flooded(self) -> bool:
        return self._refused > FLOOD * self._sent

    def ready_at(self, now: float) -> float:
        """When the next request may leave."""
        if self._settle_at is not None:
            if now < self._settle_at:
                return self._settle_at
            self._settle(now)
        return now if self._bucket is None else self._bucket.ready_at(now, 1.0)

    def sent(self, now: float) -> None:
        """A request leaves."""
        bucket = self._bucket
        if bucket is None or bucket.level(now) >= bucket.depth:
            # something else held requests back
            self._had_slack = True
            if now > self._from + SLACK_S and not self._is_flooded:
                self._open(now, is_firm=False)
        if bucket is not None:
            bucket.take(now, 1.0)
            if now >= self._grow_at:
                self._grow(now, bucket)
        self._sent += 1
        self._last_sent = now

    def _grow(self, now: float, bucket: Bucket) -> None:
        if not self._had_slack:
            self._set_rate(bucket.rate * (1 + self._step))
            self._step = min(1.0, 2 * self._step)
            self._soon = 0  # it held for long enough to be right
            self._open(now, is_firm=False)
        self._had_slack = False
        self._grow_at = now + max(GROW_S, GROW_REQUESTS / bucket.rate)

    def refused(self, now: float, sent_at: float, resume_at: float) -> None:
        """A 429 to a request of *sent_at*; the endpoint is paused until *resume_at*."""
        if sent_at > self._from:
            self._refused += 1
        if self.is_deaf(now) and self._is_flooded and self._refused >= ENOUGH:
            self._deaf_until = now
            self._is_sure = True
        if self._settle_at is not None:
            self._settle_at = max(self._settle_at, resume_at)
        elif sent_at > self._settled_at and not self.is_deaf(now):
            self._settle_at = max(now + HOLD_S, resume_at)

    def _settle(self, now: float) -> None:
        """Set the pace by what the window let through."""
        self._settle_at = None
        self._settled_at = now
        if not self._is_firm:
            self._open(self._last_sent, is_firm=True)
        else:
            self._estimate(now)
        if self._bucket is None:
            return
        self._bucket.at_most(now, 0.0)
        self._step = FIRST_STEP
        trusted = min(QUIET_REQUESTS, TRUST * self._made_of)
        self._grow_at = now + max(QUIET_S, trusted / self._bucket.rate)
        self._had_slack = False

    def _estimate(self, now: float) -> None:
        passed = self._sent - self._refused
        rate = max(passed, 1) / max(self._last_sent - self._from, HOLD_S)
        is_far_off = self.rate is None or rate < self.rate / 2
        if passed < (FEW if is_far_off else ENOUGH):
            return
        self._soon = self._soon + 1 if self._sent < SOON else 0
        if self._soon > OFTEN and not self._is_sure:
            self._give_up(now)
            return
        self._made_of = passed
        self._set_rate(rate * (1 + GAIN))
        self._open(self._last_sent, is_firm=True)

    def _give_up(self, now: float) -> None:
        self._bucket = None
        self._soon = 0
        self._deaf_until = now + self._deaf_s
        self._deaf_s *= 2
        self._open(now, is_firm=False)

    def _set_rate(self, rate: float) -> None:
        # one whole request beside the credit, or slack could not be told from none
        depth = 1.0 + rate * BURST_S
        if self._bucket is None:
            self._bucket = Bucket(rate, depth)
        self._bucket.rate, self._bucket.depth = rate, depth
