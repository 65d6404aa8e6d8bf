"""One order from several: reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

K = 60
"""Cormack, Clarke and Buettcher, SIGIR 2009."""


def fused(rankings: Iterable[Sequence[int]]) -> list[int]:
    """Ids by the sum of 1/(60 + rank) over the rankings, then by id.

    Sums are exact, so that the order of the rankings leaves no trace.
    """
    scores: dict[int, Fraction] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, start=1):
            scores[number] = scores.get(number, Fraction()) + Fraction(1, K + rank)
    return sorted(scores, key=lambda number: (-scores[number], number))
