"""One order from several: reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

K = 60
"""Cormack, Clarke and Buettcher, SIGIR 2009."""


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Ids by the sum of 1/(60 + rank) over the rankings, then by id.

    Sums are whole numbers of a unit that every share is a multiple of, so that the
    order of the rankings leaves no trace.
    """
    longest = max(map(len, rankings), default=0)
    whole = lcm(*range(K + 1, K + longest + 1))
    shares = [whole // (K + rank) for rank in range(1, longest + 1)]
    scores: dict[int, int] = {}
    for ranking in rankings:
        for number, share in zip(ranking, shares, strict=False):
            scores[number] = scores.get(number, 0) + share
    return sorted(scores, key=lambda number: (-scores[number], number))
