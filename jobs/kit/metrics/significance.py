"""Tests of differences: McNemar's, permutations, Holm's correction, sequential.

An interval of fixed size is right at one look that was chosen beforehand; looked at
again and again until it leaves 0 out, it leaves 0 out sooner or later whatever is true.
A confidence sequence is right at all looks together: the chance that it ever misses the
mean is at most `alpha`, so anyone who watches it may stop at any time.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

import numpy as np

from jobs.kit.metrics.cluster_statistics import Ratio
from jobs.kit.metrics.columns import Bools, Floats, mean, quotient, ratio
from jobs.kit.metrics.intervals import Interval, round12

#: Differences no larger than this are rounding, not effects.
NEGLIGIBLE = 1e-12

#: Up to this many clusters every pattern of signs is looked at.
_EXACT_CLUSTERS = 16
_DRAWS = 10_000
_BLOCK_SIGNS = 1 << 18
"""Signs drawn at a time; larger blocks fall out of the processor's cache."""
_STORED_SIGNS = 1 << 27
"""Signs that are kept at most, in 16 MB: enough for 13,421 clusters."""
_UNPACKED_SIGNS = 1 << 21
"""Signs of the last number of clusters that are kept as numbers too, in 16 MB."""


Signs: TypeAlias = Floats
"""1 or -1 for each cluster, a pattern a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """McNemar's test; also the sign test, of wins against losses."""

    p: float  #: exact, two-sided; 1 where nothing is discordant
    chi2: float | None  #: with continuity correction; None where nothing is discordant


def mcnemar(b: int, c: int) -> McNemar:
    """Test whether *b* and *c*, the discordant pairs of each kind, differ by chance.

    The p-value is binomial with 1/2, added up in integers and so exactly rounded.

    Raises:
        ValueError: where a count is negative.
    """
    if b < 0 or c < 0:
        raise ValueError(f"b and c count pairs and cannot be negative: {b}, {c}.")
    n = b + c
    ways = tail = 1  # of picking i of n, and of picking at most i
    for i in range(1, min(b, c) + 1):
        ways = ways * (n - i + 1) // i
        tail += ways
    return McNemar(
        p=min(1.0, 2 * tail / 2**n), chi2=ratio(max(0, abs(b - c) - 1) ** 2, n)
    )


def sign_flip(
    differences: Sequence[float], groups: Sequence[str], seed: int = 20260118
) -> float:
    """The p-value of a mean paired difference, permuting signs by cluster.

    With at most 16 clusters that differ all patterns of signs are counted, else 10,000
    drawn ones, the observed one among them. 1 where no cluster differs.

    Raises:
        ValueError: where the lengths differ.
    """
    if len(differences) != len(groups):
        raise ValueError(
            f"differences has {len(differences)} values for {len(groups)} groups."
        )
    by_group: dict[str, list[float]] = {group: [] for group in sorted(set(groups))}
    for difference, group in zip(differences, groups, strict=True):
        by_group[group].append(difference)
    sums = [math.fsum(group_differences) for group_differences in by_group.values()]
    nonzero = np.array([total for total in sums if abs(total) > NEGLIGIBLE])
    m = len(nonzero)
    if not m:
        return 1.0
    observed = abs(math.fsum(nonzero)) - NEGLIGIBLE

    def extreme(signs: Signs) -> Bools:
        is_extreme: Bools = np.abs(_weighed(signs, nonzero)) >= observed
        return is_extreme

    return _permuted(extreme, m, seed)


def swap_sides(first: Ratio, second: Ratio, seed: int = 20260118) -> float | None:
    """The p-value of a difference of two ratios of sums, permuting sides by cluster.

    Under no difference either side could have given a cluster's sums, so each pattern
    exchanges the two sides of some clusters and compares the absolute difference of the
    ratios with the observed one. With equal denominators this is `sign_flip`. Patterns
    are counted or drawn as there; one without a value counts as extreme. None where
    the observed difference has no value; 1 where no cluster differs.

    Args:
        first: one number of each sum a cluster.
        second: the other side, over the same clusters in the same order.
        seed: of the draws.

    Raises:
        ValueError: where the lengths differ.
    """
    columns = [
        np.asarray(column, dtype=np.float64)
        for side in (first, second)
        for column in (side.numerators, side.denominators)
    ]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"sums of {[len(column) for column in columns]} clusters.")
    above, below, above2, below2 = columns
    differs = (abs(above - above2) > NEGLIGIBLE) | (abs(below - below2) > NEGLIGIBLE)
    m = int(differs.sum())
    # half of the sum of both sides stays; the signs move half of the difference
    middles = (above + above2) / 2, (below + below2) / 2
    halves = (above - above2)[differs] / 2, (below - below2)[differs] / 2
    tops, bottoms = (math.fsum(column) for column in middles)

    def gaps(signs: Signs) -> Floats:
        up, down = (_weighed(signs, half) for half in halves)
        return np.abs(
            quotient(tops + up, bottoms + down) - quotient(tops - up, bottoms - down)
        )

    observed = float(gaps(np.ones((1, m)))[0])
    if math.isnan(observed):
        return None
    if not m:
        return 1.0

    return _permuted(lambda signs: ~(gaps(signs) < observed - NEGLIGIBLE), m, seed)


def _weighed(signs: Signs, values: Floats) -> Floats:
    """The sum of *values* under each pattern."""
    sums: Floats = np.einsum("ij,j->i", signs, values)
    return sums


def bootstrap_p(differences: Floats) -> float | None:
    """The two-sided p-value that a statistic's resampled *differences* give.

    Twice the share on the smaller side of 0, the observed sample counted once. For
    statistics that neither permutation nor DeLong's test fits, such as the average
    precision. Replicates without a value are left out; None where all are.
    """
    used = differences[~np.isnan(differences)]
    if not len(used):
        return None
    tail = min(int(np.sum(used <= 0)), int(np.sum(used >= 0)))
    return min(1.0, 2 * (1 + tail) / (1 + len(used)))


def _permuted(extreme: Callable[[Signs], Bools], m: int, seed: int) -> float:
    """The share of the patterns of *m* signs that are *extreme*: of all, or of draws.

    Of drawn patterns the observed one counts as one more.
    """
    if m <= _EXACT_CLUSTERS:
        every = 1 - 2 * (np.arange(2**m)[:, None] >> np.arange(m) & 1)
        return float(np.mean(extreme(every.astype(np.float64))))
    drawn = _stream_of(seed).patterns(m)
    return (1 + sum(int(np.sum(extreme(signs))) for signs in drawn)) / (_DRAWS + 1)


class _SignStream:
    """Signs drawn from one seed; their beginning is kept for the next test.

    Tests of any number of clusters read the same stream, since a pattern is so many
    signs in a row.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._stored = np.empty(
            _STORED_SIGNS // 8, dtype=np.uint8
        )  # eight signs a byte
        self._drawn = 0  # bytes
        self._unpacked: Signs = np.empty((0, 0))

    def patterns(self, m: int) -> Iterator[Signs]:
        """Draw patterns of *m* signs, many at a time."""
        rows = max(1, _BLOCK_SIGNS // m)
        sizes = (min(rows, _DRAWS - start) for start in range(0, _DRAWS, rows))
        if _DRAWS * m > _STORED_SIGNS:
            rng = np.random.default_rng(self._seed)
            for size in sizes:
                yield (2 * rng.integers(0, 2, (size, m)) - 1).astype(np.float64)
            return
        if _DRAWS * m <= _UNPACKED_SIGNS and self._unpacked.shape[1] != m:
            # metrics of a run mostly have the same clusters
            self._unpacked = self._signs(0, _DRAWS * m).reshape(_DRAWS, m)
        start = 0
        for size in sizes:
            end = start + size
            if self._unpacked.shape[1] == m:
                yield self._unpacked[start:end]
            else:
                yield self._signs(start * m, end * m).reshape(size, m)
            start = end

    def _signs(self, start: int, end: int) -> Floats:
        first, last = start // 8, -(-end // 8)
        while self._drawn < last:
            block = np.packbits(self._rng.integers(0, 2, _BLOCK_SIGNS) != 0)
            self._stored[self._drawn : self._drawn + len(block)] = block
            self._drawn += len(block)
        signs: Floats = _SIGNS_OF_BYTE[self._stored[first:last]].reshape(-1)
        return signs[start - 8 * first : end - 8 * first]


_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)).reshape(256, 8)
_SIGNS_OF_BYTE: Final[Floats] = 2 * _BITS_OF_BYTE.astype(np.float64) - 1

_stream_of = lru_cache(maxsize=1)(_SignStream)


def holm(p: Sequence[float | None]) -> tuple[float | None, ...]:
    """P-values corrected for being a family, by Holm's step-down method.

    They stay in their order; undefined ones stay undefined and do not count.
    """
    ranked = sorted(
        (value, index) for index, value in enumerate(p) if value is not None
    )
    corrected: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, index) in enumerate(ranked):
        largest = max(largest, min(1.0, (len(ranked) - rank) * value))
        corrected[index] = largest
    return tuple(corrected)


def noninferiority(difference: Interval, margin: float) -> bool | None:
    """Whether the whole interval lies above -*margin*; None where it is undefined."""
    return None if difference.lo is None else difference.lo > -margin


MAX_BET_SHARE = 0.5
"""Largest part of the capital that is bet at a time, so it never reaches 0."""
_HALVINGS = 50
"""Halvings of [-1, 1] to find an end: finer than the 12 digits that are printed."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceSequence:
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
        """Mean of the units so far; None without any."""
        return mean(self.values)

    @property
    def interval(self) -> Interval:
        """Values of the mean that no look so far has excluded."""
        return Interval(lo=round12(_lowest(self)), hi=round12(-_lowest(self._mirror)))

    def first_above(self, bound: float) -> int | None:
        """Return how many units showed the mean to be above *bound*; None: not yet.

        Later units and earlier looks do not change the number.
        """
        rich = np.flatnonzero(self._capital(bound) >= 2 / self.alpha)
        return int(rich[0]) + 1 if len(rich) else None

    def first_below(self, bound: float) -> int | None:
        """Return how many units showed the mean to be below *bound*; None: not yet."""
        return self._mirror.first_above(-bound)

    def after(self, units: int) -> ConfidenceSequence:
        """Return the sequence after the first *units*."""
        return ConfidenceSequence(values=self.values[:units], alpha=self.alpha)

    @cached_property
    def _mirror(self) -> ConfidenceSequence:
        return ConfidenceSequence(
            values=[-value for value in self.values], alpha=self.alpha
        )

    def _capital(self, bound: float) -> Floats:
        """After each unit, of who began with 1 and bets that the mean is above *bound*.

        Theorem 3 with values x = (d + 1) / 2 in [0, 1] and m = (bound + 1) / 2: the
        product of 1 + min(lambda_t, c / m) * (x_t - m). Products, and no logarithms,
        are the same on every machine.
        """
        m = (bound + 1) / 2
        most = MAX_BET_SHARE / m if m > 0 else math.inf
        bets = np.minimum(self._bets, most)
        with np.errstate(over="ignore", under="ignore"):
            capital = np.cumprod(1 + bets * (self._scaled - m))
        return np.asarray(capital, dtype=np.float64)

    @cached_property
    def _scaled(self) -> Floats:
        return (np.array(self.values, dtype=np.float64) + 1) / 2

    @cached_property
    def _bets(self) -> Floats:
        """Return the bet on each unit, from those before it alone.

        The predictable plug-in of section 4.2: sqrt(2 log(2/alpha) / (v t log(t + 1)))
        with v the variance of the units before t, estimated with one unit of mean 1/2
        and variance 1/4 put before them.
        """
        log_odds = math.log(2 / self.alpha)
        total, squares, variance = 0.5, 0.25, 0.25
        bets = []
        for t, x in enumerate(self._scaled.tolist(), 1):
            spread = variance * t * math.log(t + 1)
            bets.append(math.sqrt(2 * log_odds / spread))
            total += x
            squares += (x - total / (t + 1)) ** 2
            variance = squares / (t + 1)
        return np.array(bets, dtype=np.float64)


def _lowest(seen: ConfidenceSequence) -> float:
    """The largest bound that the mean was shown to lie above, or -1.

    The higher the bound, the less is won against it by betting on more.
    """
    proven, possible = -1.0, 1.0
    if seen.first_above(proven) is None:
        return proven
    for _ in range(_HALVINGS):
        middle = (proven + possible) / 2
        if seen.first_above(middle) is None:
            possible = middle
        else:
            proven = middle
    return proven
