"""Recall against the number of candidates kept: what a shorter list would lose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from jobs.metrics import mean
from jobs.review_benchmark.rebuilt import Rebuilt


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What the first candidates hold of a review's truth papers."""

    kept: int  #: candidates, in the fused order
    retrieved: int
    truth: int

    @property
    def recall(self) -> float:
        """Truth papers among them, of all."""
        return self.retrieved / self.truth


def retrieval_curve(own: Rebuilt) -> tuple[Point, ...]:
    """The points at which recall rises, and the end of the list."""
    rank = {each.document: each.rank for each in reversed(own.candidates)}
    ranks = []
    for hits in own.matched.serving:
        served = [rank.get(own.documents[hit.place]) for hit in hits]
        first = min((each for each in served if each is not None), default=None)
        if first is not None:
            ranks.append(first)
    ranks.sort()
    points = {kept: place for place, kept in enumerate(ranks, start=1)}
    points[len(own.candidates)] = len(ranks)
    return tuple(
        Point(kept=kept, retrieved=retrieved, truth=len(own.hits))
        for kept, retrieved in points.items()
    )


def mean_curve(
    every: Mapping[str, Sequence[Point]],
) -> Iterator[tuple[int, float | None]]:
    """Candidates kept, and the mean recall over reviews; a list that ends stays."""
    now = dict.fromkeys(every, 0.0)
    moves = sorted(
        (point.kept, review, point.recall)
        for review, own in every.items()
        for point in own
    )
    for kept, group in groupby(moves, key=lambda move: move[0]):
        now |= {review: recall for _, review, recall in group}
        yield kept, mean(now.values())
