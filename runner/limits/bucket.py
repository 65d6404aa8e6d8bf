"""Credit for requests or tokens that refills with time; sans-IO.

Virtual-schedule token buckets (GCRA, ITU-T I.371): credit grows steadily up to a small
depth, and a request leaves when its share is there.
"""

from __future__ import annotations

MINUTE_S = 60.0


class Bucket:
    """Credit that refills steadily and may be overdrawn by one large request."""

    def __init__(self, rate: float, depth: float) -> None:
        """A full bucket; *rate* in units a second."""
        self.rate = rate
        self.depth = depth
        self._level = depth
        self._at = float("-inf")

    def _refill(self, now: float) -> None:
        if now > self._at:
            grown = (now - self._at) * self.rate
            self._level = min(self.depth, self._level + grown)
            self._at = now

    def level(self, now: float) -> float:
        """The credit that is left; negative after an overdraft."""
        self._refill(now)
        return self._level

    def ready_at(self, now: float, amount: float) -> float:
        """When *amount* may be taken; an amount over the depth needs a full bucket."""
        lacking = min(amount, self.depth) - self.level(now)
        # a billionth of credit is rounding, not debt
        return now if lacking <= 1e-9 * self.depth else now + lacking / self.rate

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*, into debt if it is larger than what is left."""
        self._level = self.level(now) - amount

    def give_back(self, amount: float) -> None:
        """Return what a reservation did not need; negative: it needed more."""
        self._level = min(self.depth, self._level + amount)

    def at_most(self, now: float, level: float) -> None:
        """Leave no more credit than *level*."""
        self._level = min(self.level(now), level)


class MinuteBucket:
    """A limit a minute that holds in every window of 60 s, wherever it begins.

    It holds in a longer window, if one is named, as for what is used up a little later
    than it is taken.

    Its depth is a short burst, or the largest request so far if that is larger; the
    steady rate is lowered by the depth's share of the minute. The more small the
    requests, the closer it comes to the limit.
    """

    def __init__(
        self, per_minute: float, burst_s: float, *, window_s: float = MINUTE_S
    ) -> None:
        self.per_minute = per_minute
        self._window_s = window_s
        #: at least one request must fit, else nothing would ever leave
        self._bucket = Bucket(1.0, max(1.0, per_minute * burst_s / MINUTE_S))
        self._deepen(0.0)

    def _deepen(self, amount: float) -> None:
        bucket, half = self._bucket, self.per_minute / 2
        bucket.depth = max(bucket.depth, min(amount, half))
        bucket.rate = max(self.per_minute - bucket.depth, half) / self._window_s

    @property
    def depth(self) -> float:
        """What may leave at once."""
        return self._bucket.depth

    def ready_at(self, now: float, amount: float) -> float:
        """When *amount* may be taken; over half a minute's worth goes into debt."""
        self._deepen(amount)
        return self._bucket.ready_at(now, amount)

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*."""
        self._deepen(amount)
        self._bucket.take(now, amount)

    def give_back(self, amount: float) -> None:
        """Return what a reservation did not need; negative: it needed more."""
        self._bucket.give_back(amount)

    def at_most(self, now: float, level: float) -> None:
        """Leave no more credit than *level*."""
        self._bucket.at_most(now, level)
