"""The one rule by which a comparison calls a model better or worse.

Three things must hold: the comparison has enough clusters, the interval of the paired
difference leaves 0 out, and the p-value of the metric's test, corrected by Holm's
method, is at most 1 - level. An interval and a permutation test can disagree at the
margin; the word is then `undecided`, as it is where a metric lacks an interval or a
test.

Every part of the program that says better or worse calls `Rule.verdict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobs.metrics import FEW_CLUSTERS, Interval

Verdict: TypeAlias = Literal["better", "worse", "undecided", "too few"]
"""Of one model against another."""

OPPOSITE: Mapping[Verdict, Verdict] = {
    "better": "worse",
    "worse": "better",
    "undecided": "undecided",
    "too few": "too few",
}
"""The word on A against B, by that on B against A."""

MIN_CLUSTERS = FEW_CLUSTERS
"""Clusters (10) below which a comparison has no winner, unless set otherwise.

With five clusters the smallest two-sided p of a permutation test is 1/16, so that no
result could count; at ten it is 1/512, and percentile intervals begin to hold.
"""

_BY_SIDE: Mapping[tuple[bool, bool], Verdict] = {
    (True, False): "better",
    (True, True): "worse",
    (False, False): "worse",
    (False, True): "better",
}
"""By whether the interval lies above 0, and whether lower values are better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a difference has a winner."""

    level: float = 0.95  #: of the interval; 1 - level bounds the corrected p
    min_clusters: int = MIN_CLUSTERS

    def verdict(
        self,
        interval: Interval | None,
        p_holm: float | None,
        clusters: int,
        *,
        lower_is_better: bool,
    ) -> Verdict:
        """The word for a difference, of the side that it was not subtracted from.

        Args:
            interval: of the paired difference.
            p_holm: of the metric's own test, corrected for its family.
            clusters: that the compared items are part of.
            lower_is_better: whether lower values of the metric are better.
        """
        if clusters < self.min_clusters:
            return "too few"
        lo, hi = (None, None) if interval is None else (interval.lo, interval.hi)
        if lo is None or hi is None or p_holm is None or lo <= 0 <= hi:
            return "undecided"
        if p_holm > self.alpha:
            return "undecided"
        return _BY_SIDE[lo > 0, lower_is_better]

    @property
    def alpha(self) -> float:
        """The largest corrected p that decides."""
        # 1 - 0.95 is 0.050000000000000044 in doubles, and p = 0.05 must decide
        return round(1 - self.level, 12)

    def sentence(self, cluster: str) -> str:
        """The rule as a reader should know it.

        >>> Rule(min_clusters=3).sentence("paper").partition("; ")[2]
        'too few: fewer than 3 papers'
        """
        return (
            f"better, worse: the {100 * self.level:.4g}% interval leaves 0 out and "
            f"p (Holm) <= {self.alpha:.4g}; too few: fewer than {self.min_clusters} "
            f"{cluster}s"
        )


def standing_words(wins: int, losses: int, ties: int) -> str:
    """Items by outcome, in the one order that is used everywhere.

    >>> standing_words(6, 1, 1)
    'won 6, lost 1, tied 1'
    """
    return f"won {wins:,}, lost {losses:,}, tied {ties:,}"
