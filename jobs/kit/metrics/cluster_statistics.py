"""Statistics over clusters: ratios and differences, with their range and support.

A statistic knows the values that it can take and the clusters that it rests on, so that
an interval can be made where drawing again says too little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics.columns import Floats, as_value, quotient, ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The values that a statistic can take."""

    lowest: float
    highest: float

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.lowest) and math.isfinite(self.highest)

    @property
    def width(self) -> float:
        """From end to end."""
        return self.highest - self.lowest

    def cut(self, value: float) -> float:
        """*value*, or the nearest value of the range."""
        return min(self.highest, max(self.lowest, value))


SHARE = Range(lowest=0.0, highest=1.0)


PER_THOUSAND = Range(lowest=0.0, highest=1000.0)


SIGNED = Range(lowest=-1.0, highest=1.0)
"""Range of correlations and of differences of shares."""


ANY = Range(lowest=-math.inf, highest=math.inf)


NOT_NEGATIVE = Range(lowest=0.0, highest=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The clusters that a statistic rests on."""

    effective: float
    """Kish's number, the square of the sum of weights by the sum of their squares: one
    paper with nearly all predictions counts as little more than one cluster."""
    independent: int  #: values that bound it where none varies

    @classmethod
    def of(cls, weights: Floats | Sequence[float]) -> Support:
        """Return the support of a mean or a ratio, from each cluster's denominator."""
        column = np.abs(np.asarray(weights, dtype=np.float64))
        return cls(effective=_kish(column), independent=int(np.count_nonzero(column)))

    @classmethod
    def of_classes(cls, positives: Floats, negatives: Floats) -> Support:
        """Return the support of a statistic of two classes, such as an AUROC.

        A pair of clusters, one with a positive and one with a negative, gives one
        independent comparison; no cluster is in two pairs.
        """
        has = positives > 0, negatives > 0
        return cls(
            effective=min(_kish(positives), _kish(negatives)),
            independent=min(
                int(has[0].sum()), int(has[1].sum()), int((has[0] | has[1]).sum()) // 2
            ),
        )

    def both(self, other: Support) -> Support:
        """Return the support of a difference: the smaller one of both sides."""
        return Support(
            effective=min(self.effective, other.effective),
            independent=min(self.independent, other.independent),
        )


def _kish(weights: Floats) -> float:
    squares = math.fsum(weights**2)
    return math.fsum(weights) ** 2 / squares if squares else 0.0


Counts: TypeAlias = npt.NDArray[np.uint8]
"""Number of times each cluster was drawn: replicates x clusters."""


Order: TypeAlias = npt.NDArray[np.intp]
"""Places of the clusters, by their keys ascending."""


_ROUNDING = 1e-12


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A sum over clusters divided by another, one number of each per cluster."""

    numerators: Sequence[float] | Floats
    denominators: Sequence[float] | Floats
    range: Range = SHARE  #: the values that the ratio can take

    @classmethod
    def of(
        cls,
        clusters: Iterable[Item],
        terms: Callable[[Item], tuple[float, float]],
        within: Range = SHARE,
    ) -> Ratio:
        """The ratio whose *terms* are a cluster's numerator and denominator."""
        pairs = [terms(cluster) for cluster in clusters]
        return cls([above for above, _ in pairs], [below for _, below in pairs], within)

    @property
    def n(self) -> int:
        """The sum of the denominators."""
        return int(np.sum(self.denominators))

    @property
    def value(self) -> float | None:
        """The ratio of all clusters together; columns hold whole numbers."""
        return ratio(float(np.sum(self.numerators)), self.n)

    def by_cluster(self) -> list[float | None]:
        """The ratio of each cluster by itself; None where it is 0/0."""
        return [*map(as_value, quotient(self.numerators, self.denominators))]

    @property
    def support(self) -> Support:
        """The clusters with a denominator."""
        return Support.of(self.denominators)

    def left_out(self, order: Order) -> tuple[float | None, Floats]:
        """The ratio, and what it is without each cluster; NaN where it has none."""
        above, below = (
            np.asarray(column, dtype=np.float64)[order]
            for column in (self.numerators, self.denominators)
        )
        a, b = math.fsum(above), math.fsum(below)
        rest = quotient(a - above, b - below)
        # what is left of a sum may be rounding alone
        rest[np.abs(b - below) <= _ROUNDING * abs(b)] = np.nan
        return ratio(a, b), rest


@dataclass(frozen=True, slots=True)
class ResampledDifference:
    """*left* minus *right* on the same replicates."""

    left: Ratio
    right: Ratio

    @property
    def range(self) -> Range:
        """-1 to 1 for two shares."""
        sides = self.left.range, self.right.range
        return SIGNED if sides == (SHARE, SHARE) else ANY

    @property
    def support(self) -> Support:
        """Support of both sides."""
        return self.left.support.both(self.right.support)

    def left_out(self, order: Order) -> tuple[float | None, Floats]:
        """The difference, and what it is without each cluster."""
        (left, left_without), (right, right_without) = (
            side.left_out(order) for side in (self.left, self.right)
        )
        return (
            None if left is None or right is None else left - right,
            left_without - right_without,
        )


Statistic: TypeAlias = Ratio | ResampledDifference


@dataclass(frozen=True, slots=True)
class ResampledStatistic:
    """A statistic that is no ratio of sums, such as an area under a curve."""

    value_of: Callable[[Counts], Floats]
    """Its value under each row of a block of multiplicities; NaN where it has none."""
    support: Support
    range: Range = SHARE

    def __call__(self, block: Counts) -> Floats:
        """The value under each row of *block*."""
        return self.value_of(block)

    def minus(self, other: ResampledStatistic) -> ResampledStatistic:
        """The difference of two on the same replicates."""
        return ResampledStatistic(
            lambda counts: self.value_of(counts) - other.value_of(counts),
            self.support.both(other.support),
            SIGNED if (self.range, other.range) == (SHARE, SHARE) else ANY,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A formula over sums of whole numbers, such as a correlation of four counts.

    A draw makes it of the sums of what it drew.
    """

    columns: Sequence[Floats]  #: one number a cluster, by the clusters' keys ascending
    formula: Callable[..., Floats]  #: takes each column, or its sums under each draw
    n: int  #: items that it speaks about
    support: Support
    range: Range = SHARE

    @property
    def value(self) -> float | None:
        """The value of all clusters together."""
        sums = (np.asarray(column.sum()) for column in self.columns)
        return as_value(float(self.formula(*sums)))

    def by_cluster(self) -> list[float | None]:
        """The value of each cluster by itself; None where it is undefined."""
        return [*map(as_value, self.formula(*self.columns))]

    @property
    def statistic(self) -> ResampledStatistic:
        """The statistic that is resampled."""
        table = np.stack(self.columns, axis=1).astype(np.float64)

        def value_of(block: Counts) -> Floats:
            # whole numbers, so that the order of additions cannot matter
            return self.formula(*np.einsum("ij,jk->ki", block.astype(float), table))

        return ResampledStatistic(value_of, self.support, self.range)


def mean_of(values: Sequence[float | None], within: Range = SHARE) -> Ratio:
    """The mean over the clusters whose value is not None."""
    return Ratio(
        [0.0 if value is None else value for value in values],
        [value is not None for value in values],
        within,
    )
