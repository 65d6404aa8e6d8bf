"""Finds reviews that share papers, and the resulting near misses.

A[r, p] = 1 where review r cites paper p; F is A without the papers that have no
abstract. Two reviews are related where F F' is not 0. The candidates of r are the
papers that its related reviews include and r does not cite. One hop only. The
statistics of candidates are computed for each review, and over the reviews that include
enough papers.

Cost: the sum over shared papers of degree squared, plus the sum over reviews of the
sizes of the related ones. One block of reviews is in memory at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from jobs.kit.metrics.columns import aggregate, ratio
from jobs.screening.citations import Citations, Indices
from jobs.screening.corpus import Corpus
from jobs.screening.data import index_in

BLOCK_PAPERS = 4_000_000
"""Approximate number of papers that the reviews of a block may reach (100 MB)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """A review, its related reviews and its candidates, as ascending indices."""

    review: int
    cited: Indices  #: all that it cites, with abstract or without
    included: Indices  #: those with an abstract
    related: Indices  #: reviews
    shared: Indices  #: papers that each of these shares with it
    n_reached: int  #: distinct papers that the related reviews include
    candidates: Indices  #: papers
    n_links: Indices  #: of each candidate: related reviews that include it
    n_shared: Indices  #: of each candidate: largest overlap among those reviews


class Graph:
    """The citations of a corpus as matrices."""

    def __init__(self, corpus: Corpus, max_degree: int | None = None) -> None:
        """Build the graph of *corpus*.

        Args:
            corpus: its citations, and which papers have an abstract.
            max_degree: papers with more citing reviews relate no reviews; they stay
                positives.
        """
        citations = corpus.citations
        self.reviews, self.papers = citations.reviews, citations.papers
        self.has_abstract = np.fromiter(
            (
                text is not None and text.has_abstract
                for text in map(corpus.papers.get, citations.papers)
            ),
            dtype=np.bool_,
            count=len(citations.papers),
        )
        self.cited = _matrix(citations)
        mask = self.has_abstract[citations.paper]
        self.included = _matrix(citations, mask)
        degree = np.bincount(citations.paper[mask], minlength=len(self.papers))
        self.max_degree = int(degree.max(initial=0))
        is_shared = degree > 1
        self.n_shared = int(is_shared.sum())
        self.n_hubs = 0  #: papers left out because too many reviews cite them
        if max_degree is not None:
            is_hub = degree > max_degree
            self.n_hubs = int(is_hub.sum())
            is_shared &= ~is_hub
        # most papers are cited once, and relate no reviews
        self._relating = _matrix(citations, mask & is_shared[citations.paper])
        # computed once: a product would convert its second factor to rows for every
        # block
        self._related_by = self._relating.T.tocsr()

    def names(self, indices: Indices) -> list[str]:
        """Return the ids of papers."""
        return list(map(self.papers.__getitem__, indices.tolist()))

    def index(self, paper: str) -> int | None:
        """Return the index of a paper, or None if no review cites it."""
        return index_in(self.papers, paper)

    def cited_by(self, review: int) -> Indices:
        """Return all papers that a review cites."""
        return _row(self.cited, review)

    def included_by(self, review: int) -> Indices:
        """Return the papers with an abstract that a review cites."""
        return _row(self.included, review)

    def neighbourhoods(self, block: int = BLOCK_PAPERS) -> Iterator[Neighbourhood]:
        """Yield every review that cites any paper, in order of the ids.

        Args:
            block: papers reached per block, unless a single review reaches more.
        """
        sizes = np.diff(self.included.indptr)
        # number of papers that a review reaches, with repeats: its share of a block
        related = self._relating @ (self._related_by @ sizes)
        begin = 0
        while begin < len(self.reviews):
            reached = np.cumsum(related[begin:])
            end = begin + max(1, int(np.searchsorted(reached, block, "right")))
            yield from self._block(begin, end)
            begin = end

    def neighbourhood(self, review: int) -> Neighbourhood:
        """Return the neighbourhood of one review."""
        return next(self._block(review, review + 1))

    def _block(self, begin: int, end: int) -> Iterator[Neighbourhood]:
        overlaps = self._relating[begin:end] @ self._related_by
        overlaps.sort_indices()
        for row, review in enumerate(range(begin, min(end, len(self.reviews)))):
            others = _row(overlaps, row)
            shared = overlaps.data[overlaps.indptr[row] : overlaps.indptr[row + 1]]
            is_other = others != review
            yield self._of(review, others[is_other], shared[is_other])

    def _of(self, review: int, related: Indices, shared: Indices) -> Neighbourhood:
        cited, included = _row(self.cited, review), _row(self.included, review)
        rows = [_row(self.included, other) for other in related]
        reached = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        if self.n_hubs and rows:
            # hubs relate no reviews, but reviews that are related also share them
            starts = np.cumsum(sizes) - sizes
            shared = np.add.reduceat(np.isin(reached, included), starts, dtype=np.int64)
        overlap = np.repeat(shared, sizes)
        # sorted by paper, then by overlap, so that the last one is the largest
        order = np.lexsort((overlap, reached))
        papers, first, links = np.unique(
            reached[order], return_index=True, return_counts=True
        )
        largest = overlap[order][first + links - 1]
        is_candidate = ~np.isin(papers, included, assume_unique=True)
        return Neighbourhood(
            review=review,
            cited=cited,
            included=included,
            related=related,
            shared=shared,
            n_reached=len(papers),
            candidates=papers[is_candidate],
            n_links=links[is_candidate],
            n_shared=largest[is_candidate],
        )


def _matrix(citations: Citations, mask: np.ndarray | None = None) -> sparse.csr_array:
    review, paper = citations.review, citations.paper
    if mask is not None:
        review, paper = review[mask], paper[mask]
    shape = (len(citations.reviews), len(citations.papers))
    ones = np.ones(len(review), dtype=np.int64)
    return sparse.csr_array((ones, (review, paper)), shape=shape)


def _row(matrix: sparse.csr_array, row: int) -> Indices:
    return matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]].astype(np.int64)


BINS: Mapping[str, tuple[int, float]] = {
    "0": (0, 0),
    "1-9": (1, 9),
    "10-49": (10, 49),
    "50-99": (50, 99),
    "100-199": (100, 199),
    "200+": (200, float("inf")),
}
"""Bins of the histogram of candidates; both ends are included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStatistics:
    """Statistics of one review, over its full set of candidates."""

    review: str
    n_references: int
    n_included: int
    n_related_reviews: int
    n_related_papers: int
    n_candidates: int
    candidates_sha256: str


def statistics_of(graph: Graph, near: Neighbourhood) -> ReviewStatistics:
    """Return the statistics of one review."""
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


def overview(analysed: Sequence[ReviewStatistics]) -> dict[str, Any]:
    """Return the statistics over the reviews with enough papers, as in summary.json.

    A share or a mean over no review is None.
    """
    counts = [statistics.n_candidates for statistics in analysed]
    figures, some = aggregate(counts), sum(n > 0 for n in counts)
    return {
        "reviews_analysed": len(counts),
        "reviews_with_candidates": some,
        "share_with_candidates": ratio(some, len(counts)),
        "total": sum(counts),
        "mean": figures.mean,
        "median": figures.median,
        "min": figures.min,
        "max": figures.max,
        "std": figures.std,
        "histogram": {
            name: sum(low <= n <= high for n in counts)
            for name, (low, high) in BINS.items()
        },
    }
