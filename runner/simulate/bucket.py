"""The endpoint's own limit: a token bucket, told the time by its caller.

Kept apart from `runner.limiter` on purpose: the limiter is proved against this, and a
mistake that both shared would prove nothing.
"""

from __future__ import annotations


class Bucket:
    """Fills at *rate* a second up to *capacity*; what it holds may be taken."""

    def __init__(self, *, rate: float, capacity: float, now: float) -> None:
        self._rate = rate
        self._capacity = capacity
        self._level = capacity
        self._now = now

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until *amount* can be taken; 0.0: now.

        More than the bucket can ever hold is served from a full one.
        """
        missing = min(amount, self._capacity) - self.level(now)
        return max(0.0, missing / self._rate)

    def take(self, amount: float, now: float) -> None:
        """Take *amount*; the level may fall below zero by what was too large."""
        self._level = self.level(now) - amount

    def level(self, now: float) -> float:
        """What the bucket holds."""
        self._level = min(
            self._capacity, self._level + max(0.0, now - self._now) * self._rate
        )
        self._now = max(now, self._now)
        return self._level

    def change(self, *, rate: float, capacity: float, now: float) -> None:
        """Fill at another rate up to another capacity from now on."""
        self._level = min(capacity, self.level(now))
        self._rate, self._capacity = rate, capacity

    def full_in_s(self, now: float) -> float:
        """Seconds until it is full again."""
        return (self._capacity - self.level(now)) / self._rate
