"""Where a replay stands in the time of its log, and how that moves on. Pure.

Time in which nobody worked on the run is passed over: nothing happened in it, and a
night between two stretches of work would be an hour of looking at a still picture.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from store.sums import US_PER_S

SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, math.inf)
"""That the keys lead to; the last is as fast as events can be read."""
MAX = "max"
STILL_S = 20.0
"""Of a time without anybody at work so much is shown: long enough to see that the
process is gone (`store.estimates.LOST_S`)."""

_SPEED = re.compile(r"(\d+(?:\.\d+)?|\.\d+)x?")


def speed_named(name: str) -> float:
    """The speed that a person means: 10x, 0.5x or max.

    Raises:
        ValueError: it is none.
    """
    if name == MAX:
        return math.inf
    found = _SPEED.fullmatch(name)
    speed = float(found[1]) if found else 0.0
    if not 0 < speed < math.inf:
        raise ValueError(f"{name!r} is no speed: take one such as 1x, 10x, 0.5x or max")
    return speed


def speed_told(speed: float) -> str:
    """A speed as it is typed.

    >>> speed_told(10.0), speed_told(math.inf)
    ('10x', 'max')
    """
    return MAX if math.isinf(speed) else f"{speed:g}x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time of a log; all in microseconds since 1970 UTC."""

    begin_us: int
    end_us: int
    absences: tuple[tuple[int, int], ...] = ()  #: nobody was at work, ascending

    @property
    def skipped(self) -> tuple[tuple[int, int], ...]:
        """The stretches that are passed over."""
        still_us = round(STILL_S * US_PER_S)
        return tuple(
            (since + still_us, until)
            for since, until in self.absences
            if until - since > still_us
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Playhead:
    """A place in the time of a log at a moment of ours, and how fast it moves.

    Ours are seconds of a steady clock.
    """

    span: Span
    at_us: int
    since_s: float  #: when it was there
    speed: float  #: seconds of the log in one of ours
    is_paused: bool = False

    def us(self, now_s: float) -> int:
        """Where it is at *now_s*."""
        if self.is_paused:
            return self.at_us
        if math.isinf(self.speed):
            return self.span.end_us
        left_us = round((now_s - self.since_s) * self.speed * US_PER_S)
        at_us = self.at_us
        for since, until in self.span.skipped:
            if at_us + left_us < since:
                break
            if at_us < until:
                left_us -= max(0, since - at_us)
                at_us = until
        return min(at_us + left_us, self.span.end_us)

    def put(self, at_us: int, now_s: float) -> Playhead:
        """At another place, moving as before."""
        span = self.span
        at_us = max(span.begin_us, min(at_us, span.end_us))
        return replace(self, at_us=at_us, since_s=now_s)

    def toggled(self, at_us: int, now_s: float) -> Playhead:
        """Standing still, or moving again, from a place on."""
        return replace(self.put(at_us, now_s), is_paused=not self.is_paused)

    def at_speed(self, speed: float, at_us: int, now_s: float) -> Playhead:
        """Moving at another speed from a place on."""
        return replace(self.put(at_us, now_s), speed=speed)

    def next_speed(self, by: int) -> float:
        """The next of `SPEEDS` that is faster, or slower; the last of them stays."""
        if by > 0:
            return next((each for each in SPEEDS if each > self.speed), self.speed)
        slower = [each for each in SPEEDS if each < self.speed]
        return slower[-1] if slower else self.speed
