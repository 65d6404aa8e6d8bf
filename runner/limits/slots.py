"""How many calls at a time are worth it: slow start, then small steps; sans-IO.

A round is the time in which half as many calls as there are slots were sent and came
back. While the slots are used the limit doubles each round, until that makes calls much
slower; from then on it grows by a twentieth (the figures are those of inspect_ai's
adaptive concurrency). In a round in which something was refused it does not grow, nor
where less than four fifths of it were used: that says nothing. What refusals show of
calls at a time is `runner.limits.places`' affair.
"""

from __future__ import annotations

from statistics import median

START = 8
DOUBLING = 2.0
GROWTH = 1.05
USED = 0.8
"""Share of the slots that must have been used for a limit to have mattered."""
FEWEST = 8
"""A median of fewer would jump about by itself; calls of one model differ widely."""
KNEE = 1.7
"""A doubling that makes calls take this much longer bought less than a fifth more."""
KNEE_S = 0.005
"""Differences below are the loop's own, not the endpoint's."""


class Slots:
    """The limit on calls at a time of one model, never above the user's ceiling."""

    def __init__(self, ceiling: int, start: int = START) -> None:
        """Begin with *start* slots, or with all there may be."""
        self._ceiling = ceiling
        self._limit = float(min(start, ceiling))
        self._is_doubling = True
        self._last_median: float | None = None
        self._begin(float("-inf"))

    def _begin(self, now: float) -> None:
        self._began = now
        self._took: list[float] = []
        self._most = 0
        self._is_clean = True

    @property
    def limit(self) -> int:
        """Calls that may be in flight."""
        return int(self._limit)

    def set_ceiling(self, ceiling: int) -> None:
        """Never more than *ceiling* from now on; up to it as fast as at first."""
        self._ceiling = ceiling
        self._limit = min(self._limit, float(ceiling))

    def answered(self, now: float, sent_at: float, in_flight: int) -> None:
        """A reply came to a call of *sent_at*; *in_flight* calls, it included."""
        self._most = max(self._most, in_flight)
        if sent_at < self._began:
            return
        self._took.append(now - sent_at)
        if len(self._took) >= self.limit / 2:
            self._close_round(now)

    def _close_round(self, now: float) -> None:
        if self._is_clean and self._most >= USED * self.limit:
            self._look_for_knee()
            grown = max(self._limit * GROWTH, self._limit + 1.0)
            self._limit = min(
                self._limit * DOUBLING if self._is_doubling else grown, self._ceiling
            )
        self._begin(now)

    def _look_for_knee(self) -> None:
        if len(self._took) < FEWEST:
            return
        took = median(self._took)
        before, self._last_median = self._last_median, took
        if before is not None and took > KNEE * before + KNEE_S:
            self._is_doubling = False

    def refused(self) -> None:
        """Something was too much, calls at a time or not: this is no time to grow."""
        self._is_clean = False
