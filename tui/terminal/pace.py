"""How often the monitor looks, and how long looking and drawing take it.

A terminal that is slow to write to, as over a bad line, is looked at less often by
itself; a person who has chosen a pace keeps it. Knows neither a clock nor a screen.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

RATES = (0.5, 1.0, 2.0, 4.0)
"""Looks a second."""
USUAL = 2.0
REMOTE = 1.0
"""Where every frame crosses a network."""
SLOW_S = 0.05
"""A frame that takes longer makes the monitor slower, by section 11 of its budget."""
KEPT = 512
"""Times kept: some minutes of them."""
ENOUGH = 8
"""Frames before they are judged; the first ones build the screen."""


@dataclass(slots=True)
class Timings:
    """The latest of the times that something took, in seconds."""

    taken: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, seconds: float) -> None:
        """Once more."""
        self.taken.append(seconds)

    def percentile(self, share: float) -> float | None:
        """The time that *share* of them did not pass (nearest rank); None: no time."""
        if not self.taken:
            return None
        rank = math.ceil(share * len(self.taken))
        return sorted(self.taken)[max(0, rank - 1)]


class Pace:
    """Looks a second: chosen by a person, or fitting to the terminal."""

    def __init__(self, chosen: float | None, environment: Mapping[str, str]) -> None:
        """A pace to begin with.

        Args:
            chosen: one of `RATES`; None: as the terminal allows.
            environment: says whether it is a remote one.
        """
        is_remote = bool(environment.get("SSH_CONNECTION"))
        self._at = RATES.index(chosen or (REMOTE if is_remote else USUAL))
        self._is_chosen = chosen is not None
        self.looks = Timings()
        self.frames = Timings()

    @property
    def rate(self) -> float:
        """Looks a second."""
        return RATES[self._at]

    def step(self, by: int) -> None:
        """More often or less, because a person wants so."""
        self._at = min(len(RATES) - 1, max(0, self._at + by))
        self._is_chosen = True

    def is_relieved(self) -> bool:
        """Whether frames took so long that it has just become slower."""
        median = self.frames.percentile(0.5)
        if self._is_chosen or self.rate <= REMOTE or median is None:
            return False
        if len(self.frames.taken) < ENOUGH or median <= SLOW_S:
            return False
        self._at = RATES.index(REMOTE)
        return True
