"""Measures how long a person looks at an item: a clock that can be stopped."""

from __future__ import annotations

from store.clock import Clock


class FocusClock:
    """A clock whose `monotonic` stands still while nobody looks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._away_s = 0.0
        self._since: float | None = None  #: when the person left; None: present

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01 UTC."""
        return self._clock.now_us()

    def monotonic(self) -> float:
        """Seconds of attention from an arbitrary start."""
        now = self._clock.monotonic() if self._since is None else self._since
        return now - self._away_s

    async def sleep_until(self, when: float) -> None:
        """Return once the seconds of attention would reach *when* without a pause."""
        left = max(0.0, when - self.monotonic())
        await self._clock.sleep_until(self._clock.monotonic() + left)

    def pause(self) -> None:
        """Stop: the person looks at something else."""
        if self._since is None:
            self._since = self._clock.monotonic()

    def resume(self) -> None:
        """Go on."""
        if self._since is not None:
            self._away_s += self._clock.monotonic() - self._since
            self._since = None

    def exclude(self, seconds: float, *, since: float) -> None:
        """Leave out seconds that somebody else has measured.

        Args:
            seconds: when nobody looked; more than have passed count as all of them.
            since: when they can have begun, as `monotonic` returned it.
        """
        self._away_s += min(max(0.0, seconds), max(0.0, self.monotonic() - since))
