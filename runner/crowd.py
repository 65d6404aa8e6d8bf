"""Whether refusals come when most calls are in flight; sans-IO.

Where calls at a time are limited, every refused call found as many others in flight as
the one refused before, and none that found as many passed. Where the rate is limited,
or chance refuses, the refused call is one like any other: its rank among those let
through, by calls in flight at the sending, is evenly distributed.
"""

from __future__ import annotations

import math
from collections import Counter

ALIKE = 0.1
"""Calls in flight at two refusals that differ by less may be the same limit."""
USUAL = 2.0
"""-log(rank) is 1 on average where calls in flight do not matter, and some more while
the rate rises, since calls in flight rise with it."""
MOST = 1.5
"""Evidence of one window; two at the least must agree before anything is believed."""


class Crowd:
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
        if level is None or before is None or abs(level - before) > ALIKE * before:
            self.score = 0.0
            return
        if not is_steady and level != before:
            return
        full = min(level, before)
        above = sum(n for among, n in self._sent.items() if among >= full) - refused
        passed = max(1, self._sent.total() - refused)
        # none of n is like half a call of n: the rank is known no better
        rank = min(1.0, max(0.5, above) / passed)
        told = min(MOST, -math.log(rank) - USUAL)
        self.score = max(0.0, self.score + told)
