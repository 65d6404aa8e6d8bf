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

A pace that is refused again before it was raised is lowered a little each time. If even
that does not help, the refusals are no matter of the rate, and the pace is *doubtful*.
"""

from __future__ import annotations

import math

from runner.bucket import Bucket
from runner.climb import Climb
from runner.crowd import Crowd

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


class Pace:
    """The learned rate of one endpoint; free until it is refused too much."""

    def __init__(self) -> None:
        self._last_sent = float("-inf")
        self._settle_at: float | None = None  #: a refusal is waiting for stragglers
        self._settled_at = float("-inf")
        self.drop(float("-inf"))

    def drop(self, now: float) -> None:
        """Forget the rate: requests are free again."""
        self._bucket: Bucket | None = None
        self._measured: float | None = None
        self._climb = Climb()
        self._before_step: float | None = None  #: the rate, until it held or did not
        self.crowd = Crowd()
        self._open(now, is_firm=False)

    def _open(self, now: float, *, is_firm: bool) -> None:
        """Begin a window after *now*."""
        self._from = now
        self._is_firm = is_firm
        self._sent = 0
        self._refused = 0  #: of those sent
        self.crowd.begin()

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
        self.crowd.sent(among)
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
            self.crowd.refused(among)

    def _settle(self, now: float) -> None:
        """Set the pace by what the window let through."""
        self._settle_at = None
        self._settled_at = now
        is_steady = self._is_firm and self._bucket is not None
        self.crowd.compare(self._refused, is_steady=is_steady)
        if self._bucket is not None:
            self._climb.refused()
        took_s, passed = math.inf, math.inf
        if self._is_firm:
            took_s = self._last_sent - self._from
            passed = self._sent - self._refused
            self._measure(took_s, passed)
        else:
            self._open(self._last_sent, is_firm=True)
            # the last step upwards was one too many
            self._measured = self._before_step or self._measured
        self._before_step = None
        if self._measured is not None:
            gain = GAIN - LESS * self._climb.in_vain
            self._set_rate(self._measured * (1 + gain)).at_most(now, 0.0)
            self._climb.rest(now, TRUST * took_s, TRUST * passed)

    def _measure(self, took_s: float, passed: float) -> None:
        few_will_do = self._measured is None or self._refused >= FEW
        if passed >= (FEW if few_will_do else ENOUGH):
            self._measured = passed / max(took_s, HOLD_S)
            self._climb.measured()
            self._open(self._last_sent, is_firm=True)

    def _set_rate(self, rate: float) -> Bucket:
        # one whole request beside the credit, or slack could not be told from none
        depth = 1.0 + rate * BURST_S
        if self._bucket is None:
            self._bucket = Bucket(rate, depth)
        self._bucket.rate, self._bucket.depth = rate, depth
        return self._bucket
