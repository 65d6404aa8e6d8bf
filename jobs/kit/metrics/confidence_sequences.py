"""Confidence sequences for a mean: intervals that hold at all looks together.

An interval of a fixed number of labels is right at one look that was chosen before. Of
a confidence sequence the chance that it ever misses the mean is at most alpha, so
people may look after each label and stop when they like.

Method: testing by betting, Waudby-Smith and Ramdas, "Estimating means of bounded
random variables by betting", JRSS B 86 (2024), theorems 3 and 4. Against each possible
mean m two gamblers bet on the next value, one that it is above what m says, one that
it is below. If m is the mean, neither gains in expectation, whatever the bets; by
Ville's inequality a capital ever reaches 2 / alpha with a chance of at most alpha / 2.
The means against which nobody got so rich are the interval. Bets are the predictable
plug-in of section 4.2: from the values before, never the one that is bet on.

Each item is drawn at most once (Waudby-Smith and Ramdas, "Confidence sequences for
sampling without replacement", NeurIPS 2020): of N items with sum N m, those before draw
t have the sum S. The next value has the mean (N m - S) / (N - t + 1), and this takes
the place of m: the sequence narrows to the truth itself once all items are drawn.

`significance` has the same method for paired differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from jobs.kit.metrics.columns import Bools, Column, Floats, probabilities
from jobs.kit.metrics.intervals import Interval, round12
from jobs.kit.metrics.significance import MAX_BET_SHARE

_HALVINGS: Final = 50


@dataclass(frozen=True, kw_only=True)
class DrawnValues:
    """Values of items in the order of their draws, on the last axis.

    Each draw takes one of the items that are left, all with the same chance. Leading
    axes hold independent sequences, as in simulations.

    Raises:
        ValueError: there are more draws than items.
    """

    values: Floats  #: from 0 to 1
    population: int  #: items drawn from, each at most once

    def __post_init__(self) -> None:
        if self.values.shape[-1] > self.population:
            raise ValueError(
                f"{self.values.shape[-1]} draws from {self.population} items."
            )

    def capital(self, mean: Floats, alpha: float) -> Floats:
        """After each draw, of who began with 1 and bets that the mean is above *mean*.

        Infinite from the draw on at which *mean* has become impossible.
        """
        expected = self._expected(mean)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            most = np.where(expected > 0, MAX_BET_SHARE / np.abs(expected), math.inf)
            bets = np.minimum(self._bets(alpha), most)
            capital = np.cumprod(1 + bets * (self.values - expected), axis=-1)
        return _with_impossible(np.asarray(capital), expected < 0)

    def mirrored_capital(self, mean: Floats, alpha: float) -> Floats:
        """The same, of who bets that the mean is below *mean*."""
        expected = self._expected(mean)
        room = 1 - expected  # how far a value may be above
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            most = np.where(room > 0, MAX_BET_SHARE / np.abs(room), math.inf)
            bets = np.minimum(self._bets(alpha), most)
            capital = np.cumprod(1 - bets * (self.values - expected), axis=-1)
        return _with_impossible(np.asarray(capital), expected > 1)

    def _expected(self, mean: Floats) -> Floats:
        """Return the expectation of each draw under *mean*, given those before."""
        mean = np.asarray(mean)[..., None]
        before = np.cumsum(self.values, axis=-1) - self.values
        left = self.population - np.arange(self.values.shape[-1], dtype=np.float64)
        return np.asarray((self.population * mean - before) / left)

    def _bets(self, alpha: float) -> Floats:
        """sqrt(2 log(2 / alpha) / (v t log(t + 1))), v the variance of those before.

        One value of mean 1/2 and variance 1/4 is put before them.
        """
        z = self.values
        t = np.arange(1, z.shape[-1] + 1)
        means = (0.5 + np.cumsum(z, axis=-1)) / (t + 1)
        squares = np.cumsum((z - means) ** 2, axis=-1)
        start = np.full((*z.shape[:-1], 1), 0.25)
        variance = np.concatenate([start, (0.25 + squares[..., :-1]) / t[1:]], axis=-1)
        spread = np.maximum(variance, 1e-12) * t * np.log(t + 1)
        return np.asarray(np.sqrt(2 * math.log(2 / alpha) / spread))


@dataclass(frozen=True, kw_only=True)
class MeanSequence:
    """A confidence sequence of a mean: valid now and at every earlier look.

    Raises:
        ValueError: a value is not from 0 to 1, or see `DrawnValues`.
    """

    values: Column  #: from 0 to 1, in the order of the draws
    population: int  #: items drawn from, each at most once
    alpha: float = 0.05

    @cached_property
    def _drawn(self) -> DrawnValues:
        values = probabilities("values", self.values)
        return DrawnValues(values=values, population=self.population)

    @property
    def interval(self) -> Interval:
        """The means that no look so far has ruled out; all of them before a draw."""
        lowest, highest = self._possible
        lo = _end(self._is_above, lowest, highest)
        hi = _end(self._is_below, highest, lowest)
        return Interval(lo=round12(lo), hi=round12(hi))

    @property
    def _possible(self) -> tuple[float, float]:
        """The means that the values leave possible, whatever the rest is."""
        total = math.fsum(self._drawn.values)
        rest = self.population - len(self._drawn.values)
        return total / self.population, (total + rest) / self.population

    def _is_above(self, mean: float) -> bool:
        capital = self._drawn.capital(np.asarray(mean), self.alpha)
        return bool((capital >= 2 / self.alpha).any())

    def _is_below(self, mean: float) -> bool:
        capital = self._drawn.mirrored_capital(np.asarray(mean), self.alpha)
        return bool((capital >= 2 / self.alpha).any())


def _end(
    is_ruled_out: Callable[[float], bool], ruled_out: float, other: float
) -> float:
    """Where, from one end on, means are no longer ruled out."""
    if not is_ruled_out(ruled_out):
        return ruled_out
    for _ in range(_HALVINGS):
        middle = (ruled_out + other) / 2
        if is_ruled_out(middle):
            ruled_out = middle
        else:
            other = middle
    return ruled_out


def _with_impossible(capital: Floats, impossible: Bools) -> Floats:
    """Capital that is infinite from the first impossible draw on."""
    since = np.logical_or.accumulate(impossible, axis=-1)
    return np.asarray(np.where(since, math.inf, capital))
