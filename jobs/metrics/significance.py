"""Tests of differences: McNemar's, permutations by cluster, Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jobs.metrics.aggregate import ratio
from jobs.metrics.columns import quotient
from jobs.metrics.intervals import Interval, Ratio

#: Differences no larger than this are rounding, not effects.
NEGLIGIBLE = 1e-12

#: Up to this many clusters every pattern of signs is looked at.
_EXACT_CLUSTERS = 16
_DRAWS = 10_000
_BLOCK_SIGNS = 1 << 18
"""Signs drawn at a time; larger blocks fall out of the processor's cache."""


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
        p=min(1.0, 2 * tail / 2**n),
        chi2=ratio(max(0, abs(b - c) - 1) ** 2, n),
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
    sums = [math.fsum(own) for own in by_group.values()]
    kept = np.array([total for total in sums if abs(total) > NEGLIGIBLE])
    m = len(kept)
    if not m:
        return 1.0
    observed = abs(math.fsum(kept)) - NEGLIGIBLE
    if m <= _EXACT_CLUSTERS:
        return float(np.mean(_totals(_all_signs(m), kept) >= observed))
    rng = np.random.default_rng(seed)
    # many draws at a time: the generator's stream is the same as one by one
    extreme = sum(
        int(np.sum(_totals(2 * rng.integers(0, 2, (rows, m)) - 1, kept) >= observed))
        for rows in _blocks(max(1, _BLOCK_SIGNS // m))
    )
    return (1 + extreme) / (_DRAWS + 1)


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

    def gaps(signs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        up, down = ((signs * half).sum(axis=1) for half in halves)
        return np.abs(
            quotient(tops + up, bottoms + down) - quotient(tops - up, bottoms - down)
        )

    observed = float(gaps(np.ones((1, m), dtype=np.int64))[0])
    if math.isnan(observed):
        return None
    if not m:
        return 1.0

    def extreme(signs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return ~(gaps(signs) < observed - NEGLIGIBLE)

    if m <= _EXACT_CLUSTERS:
        return float(np.mean(extreme(_all_signs(m))))
    rng = np.random.default_rng(seed)
    count = sum(
        int(np.sum(extreme(2 * rng.integers(0, 2, (rows, m)) - 1)))
        for rows in _blocks(max(1, _BLOCK_SIGNS // m))
    )
    return (1 + count) / (_DRAWS + 1)


def bootstrap_p(differences: npt.NDArray[np.float64]) -> float | None:
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


def _blocks(rows: int) -> Iterator[int]:
    """All draws, in blocks of at most *rows*."""
    for start in range(0, _DRAWS, rows):
        yield min(rows, _DRAWS - start)


def _all_signs(m: int) -> npt.NDArray[np.int64]:
    """All 2^m rows of m signs."""
    return 1 - 2 * (np.arange(2**m)[:, None] >> np.arange(m) & 1)


def _totals(
    signs: npt.NDArray[np.int64], sums: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    totals: npt.NDArray[np.float64] = np.abs((signs * sums).sum(axis=1))
    return totals


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
