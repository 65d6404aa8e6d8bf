"""Near-miss statistics: of each review, and over those that include enough."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.metrics.columns import Aggregate, aggregate, ratio
from jobs.screening.graph.relations import Graph, Neighbourhood

BINS: Mapping[str, tuple[int, float]] = {
    "0": (0, 0),
    "1-9": (1, 9),
    "10-49": (10, 49),
    "50-99": (50, 99),
    "100-199": (100, 199),
    "200+": (200, float("inf")),
}
"""Of the histogram of candidates: both ends belong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStatistics:
    """One review; on its full set of candidates, whatever is drawn."""

    review: str
    n_references: int
    n_included: int
    n_related_reviews: int
    n_related_papers: int
    n_candidates: int
    candidates_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The reviews that are analysed."""

    analysed: int
    with_candidates: int
    share: float | None  #: of those with candidates; None: none is analysed
    candidates: Aggregate
    total: int
    histogram: Mapping[str, int]


def statistics_of(graph: Graph, near: Neighbourhood) -> ReviewStatistics:
    """The figures of one review."""
    candidates = "\n".join(graph.names(near.candidates))
    return ReviewStatistics(
        review=graph.reviews[near.review],
        n_references=len(near.cited),
        n_included=len(near.included),
        n_related_reviews=len(near.related),
        n_related_papers=near.n_reached,
        n_candidates=len(near.candidates),
        candidates_sha256=hashlib.sha256(candidates.encode()).hexdigest(),
    )


def overview(analysed: Sequence[ReviewStatistics]) -> Overview:
    """The figures over the reviews that have enough papers."""
    counts = [one.n_candidates for one in analysed]
    some = sum(n > 0 for n in counts)
    return Overview(
        analysed=len(counts),
        with_candidates=some,
        share=ratio(some, len(counts)),
        candidates=aggregate(counts),
        total=sum(counts),
        histogram={
            name: sum(low <= n <= high for n in counts)
            for name, (low, high) in BINS.items()
        },
    )
