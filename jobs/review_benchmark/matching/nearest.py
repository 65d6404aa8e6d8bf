"""The likest title of a truth paper that no record was found for: a hint for a person.

Here the ratio is only shown, so few pairs need it: difflib's ratio is never above
rapidfuzz's, and pairs are looked at from the likest on until none can come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from jobs.review_benchmark.matching.ratio import MARGIN, ratio

FLOOR = 0.60
"""Below this ratio two titles have nothing to do with each other."""

BAND = 0.05
"""So far below the cutoff a title is one that somebody should look at."""

MOST = 200
"""Pairs of one truth paper that difflib is given, the likest by rapidfuzz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A title that is not alike enough."""

    document: str  #: id of its record
    title: str  #: normalised
    ratio: float

    def is_near_miss(self, cutoff: float) -> bool:
        """Whether it lies so close below the cutoff that it may be the paper."""
        # a little room for 0.85 - 0.05, which is no number of binary floats
        return self.ratio >= cutoff - BAND - MARGIN


Block = Sequence[tuple[str, str]]
"""Documents and their normalised titles."""


def nearest(
    titles: Sequence[str], blocks: Iterable[Block], *, autojunk: bool
) -> list[Near | None]:
    """For each title the likest one, from `FLOOR` on; of equals the first.

    Args:
        titles: normalised titles of truth papers; an empty one is near to none.
        blocks: all records, in an order of their own.
        autojunk: as for `ratio`.
    """
    pairs: list[list[tuple[float, int, str, str]]] = [[] for _ in titles]
    start = 0
    for block in blocks:
        similarity = cdist(
            titles,
            [title for _, title in block],
            scorer=Indel.normalized_similarity,
            score_cutoff=FLOOR - MARGIN,
            dtype=np.float64,
        )
        for row, column in zip(*np.nonzero(similarity), strict=True):
            document, title = block[column]
            if titles[row] and title:
                found = (-similarity[row, column], start + column, document, title)
                pairs[row].append(found)
        for row, own in enumerate(pairs):
            pairs[row] = sorted(own)[:MOST]
        start += len(block)
    return [
        _best(truth, own, autojunk=autojunk)
        for truth, own in zip(titles, pairs, strict=True)
    ]


def _best(
    truth: str, pairs: Sequence[tuple[float, int, str, str]], *, autojunk: bool
) -> Near | None:
    best: tuple[float, int] | None = None
    near = None
    for falling, place, document, title in pairs:
        if best is not None and -falling < -best[0] - MARGIN:
            break
        exact = ratio(truth, title, autojunk=autojunk)
        if exact >= FLOOR and (best is None or (-exact, place) < best):
            best = -exact, place
            near = Near(document=document, title=title, ratio=exact)
    return near
