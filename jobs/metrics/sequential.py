"""An interval for a mean that may be looked at after every unit: a confidence sequence.

An interval of fixed size is right at one look that was chosen beforehand; looked at
again and again until it leaves 0 out, it leaves 0 out sooner or later whatever is true.
A confidence sequence is right at all looks together: the chance that it ever misses the
mean is at most `alpha`, so whoever watches it may stop when they like.

Method: testing by betting, the hedged capital of Waudby-Smith and Ramdas, "Estimating
means of bounded random variables by betting", JRSS B 86 (2024), section 4.2, theorem 3.
Against each possible mean m two gamblers bet on what comes next, one that it is higher
and one that it is lower. If m is the mean neither gains by it, and by Ville's
inequality a capital grows to 2/alpha with a chance of at most alpha/2; the means that
made no one so rich are the interval.

What it takes: units (such as papers) with values from -1 to 1, in an order that was
fixed before anything was known of them, each with the same expected value given those
before it. Exchangeable units drawn from many are such; a list sorted by difficulty is
not, and is to be shuffled before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jobs.metrics.aggregate import mean
from jobs.metrics.columns import Floats
from jobs.metrics.intervals import Interval, round12

MOST_AT_STAKE = 0.5
"""Part of its capital that a gambler risks at most; so none is ever ruined."""
_HALVINGS = 50
"""Of [-1, 1] in looking for an end: finer than the 12 digits that are told."""


@dataclass(frozen=True, kw_only=True)
class Sequential:
    """The differences of the units so far, in their order."""

    values: Sequence[float]  #: from -1 to 1
    alpha: float = 0.05  #: chance that the mean is ever missed, at most

    def __post_init__(self) -> None:
        """Refuse what the method does not hold for.

        Raises:
            ValueError: a value is not from -1 to 1, or alpha not between 0 and 1.
        """
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, and is {self.alpha}.")
        # a NaN is not from -1 to 1 either
        if not all(-1 <= value <= 1 for value in self.values):
            raise ValueError("A value is not from -1 to 1.")

    @property
    def mean(self) -> float | None:
        """Of the units so far; None of none."""
        return mean(self.values)

    @property
    def interval(self) -> Interval:
        """What the mean has not been shown to be outside of, at any look so far."""
        return Interval(lo=round12(_lowest(self)), hi=round12(-_lowest(self._mirror)))

    def first_above(self, bound: float) -> int | None:
        """After how many units the mean was shown to lie above *bound*; None: not yet.

        It is the same number however many units followed, and however often was looked.
        """
        rich = np.flatnonzero(self._capital(bound) >= 2 / self.alpha)
        return int(rich[0]) + 1 if len(rich) else None

    def first_below(self, bound: float) -> int | None:
        """After how many units it was shown to lie below *bound*; None: not yet."""
        return self._mirror.first_above(-bound)

    def upto(self, units: int) -> Sequential:
        """How it stood after the first *units*."""
        return Sequential(values=self.values[:units], alpha=self.alpha)

    @cached_property
    def _mirror(self) -> Sequential:
        return Sequential(values=[-value for value in self.values], alpha=self.alpha)

    def _capital(self, bound: float) -> Floats:
        """After each unit, of who began with 1 and bets that the mean is above *bound*.

        Theorem 3 with values x = (d + 1) / 2 in [0, 1] and m = (bound + 1) / 2: the
        product of 1 + min(lambda_t, c / m) * (x_t - m). Products, and no logarithms,
        are the same on every machine.
        """
        m = (bound + 1) / 2
        most = MOST_AT_STAKE / m if m > 0 else math.inf
        stakes = np.minimum(self._stakes, most)
        with np.errstate(over="ignore", under="ignore"):
            capital = np.cumprod(1 + stakes * (self._scaled - m))
        return np.asarray(capital, dtype=np.float64)

    @cached_property
    def _scaled(self) -> Floats:
        return (np.array(self.values, dtype=np.float64) + 1) / 2

    @cached_property
    def _stakes(self) -> Floats:
        """What is staked on each unit, from those before it alone.

        The predictable plug-in of section 4.2: sqrt(2 log(2/alpha) / (v t log(t + 1)))
        with v the variance of the units before t, estimated with one unit of mean 1/2
        and variance 1/4 put before them.
        """
        log_odds = math.log(2 / self.alpha)
        total, squares, variance = 0.5, 0.25, 0.25
        stakes = []
        for t, x in enumerate(self._scaled.tolist(), 1):
            spread = variance * t * math.log(t + 1)
            stakes.append(math.sqrt(2 * log_odds / spread))
            total += x
            squares += (x - total / (t + 1)) ** 2
            variance = squares / (t + 1)
        return np.array(stakes, dtype=np.float64)


def _lowest(seen: Sequential) -> float:
    """The largest bound that the mean was shown to lie above, or -1.

    The higher the bound, the less is won against it by betting on more.
    """
    shown, possible = -1.0, 1.0
    if seen.first_above(shown) is None:
        return shown
    for _ in range(_HALVINGS):
        middle = (shown + possible) / 2
        if seen.first_above(middle) is None:
            possible = middle
        else:
            shown = middle
    return shown
