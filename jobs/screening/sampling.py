"""Draws each review's included papers and its negatives, in set order.

The pools of a review are disjoint by precedence: included, true-excluded, near-miss,
random. Papers are drawn from a pool in the order of a hash, so the draw is the same on
every machine, does not depend on any library's generator, and a larger draw only adds
papers.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.kit.metrics.columns import Bools
from jobs.screening.corpus import Corpus
from jobs.screening.data import (
    KINDS,
    NO_TEXT,
    Exclusion,
    Ids,
    RecordKind,
    ScreeningRecord,
)
from jobs.screening.graph import Graph, Neighbourhood
from jobs.screening.settings import ScreeningSettings

_PART = "\x1f"
"""Separator of the hashed parts (unit separator)."""


def sampling_hash(seed: int, review: str, kind: str, paper: str) -> str:
    """Return the hexadecimal SHA-256 that orders a paper in its pool."""
    ((digest, _),) = _hashed((paper,), seed, review, kind)
    return digest.hex()


def first_by_hash(
    papers: Iterable[str], n: int, *, seed: int, review: str, kind: str
) -> list[str]:
    """Return the first *n* papers of a pool, or all, in order of their hashes.

    No more than *n* are in memory at a time.
    """
    lots = _hashed(papers, seed, review, kind)
    return [paper for _, paper in heapq.nsmallest(n, lots)]


def shuffled_reviews(reviews: Iterable[str], seed: int) -> list[str]:
    """Return reviews in seeded order; `max_reviews` takes the first."""
    return sorted(
        reviews, key=lambda review: (sampling_hash(seed, review, "review", ""), review)
    )


def _hashed(
    papers: Iterable[str], seed: int, review: str, kind: str
) -> Iterator[tuple[bytes, str]]:
    """Yield papers with their sort hashes, which share a prefix."""
    begun = hashlib.sha256(_PART.join((str(seed), review, kind, "")).encode())
    for paper in papers:
        hasher = begun.copy()
        hasher.update(paper.encode())
        yield hasher.digest(), paper


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePools:
    """Papers by kind, ascending as text, and facts about the candidates."""

    included: Ids
    true_excluded: Ids
    near_miss: Ids
    random: Ids
    candidates: Mapping[str, tuple[int, int]]
    """Links and shared papers of every candidate, drawn or not, by id."""

    def of(self, kind: str) -> Ids:
        """Return the pool of a kind."""
        pool: Ids = getattr(self, kind.replace("-", "_"))
        return pool


def candidate_pools(
    corpus: Corpus,
    graph: Graph,
    near: Neighbourhood,
    exclusions: Mapping[str, Exclusion],
    settings: ScreeningSettings,
) -> CandidatePools:
    """Return the pools of the review whose neighbourhood is *near*.

    Args:
        corpus: all texts.
        graph: the citations.
        near: neighbourhood of the review.
        exclusions: papers that the review has excluded or not decided, by paper.
        settings: settings with the kinds to draw.
    """
    candidates = dict(
        zip(
            graph.names(near.candidates),
            zip(near.n_links.tolist(), near.n_shared.tolist(), strict=True),
            strict=True,
        )
    )
    has_true = "true-excluded" in settings.negatives
    excluded = exclusions.keys() if has_true else set()
    far: Ids = ()
    if "random" in settings.negatives:
        far = tuple(
            graph.names(np.flatnonzero(unrelated_papers(graph, near, exclusions)))
        )
    return CandidatePools(
        included=tuple(graph.names(near.included)),
        true_excluded=tuple(corpus.true_exclusions(graph.names(near.cited), exclusions))
        if has_true
        else (),
        near_miss=tuple(paper for paper in candidates if paper not in excluded),
        random=far,
        candidates=candidates,
    )


def unrelated_papers(
    graph: Graph, near: Neighbourhood, exclusions: Iterable[str]
) -> Bools:
    """Return a mask of the papers that may be random negatives of a review.

    Args:
        graph: the citations.
        near: neighbourhood of the review; its citations and candidates are left out.
        exclusions: papers that it has excluded or not decided; also left out.
    """
    indices = map(graph.index, exclusions)
    excluded_indices = [index for index in indices if index is not None]
    is_far = graph.has_abstract.copy()
    for taken in (near.cited, near.candidates, excluded_indices):
        is_far[taken] = False
    return is_far


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnReview:
    """The papers drawn for one review."""

    review: str
    records: tuple[ScreeningRecord, ...]  #: by kind, then by paper
    pools: CandidatePools
    short: Mapping[RecordKind, int]  #: number of missing papers, by kind


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedReview:
    """A review that is not in the set."""

    review: str
    reason: str
    """`too_few_included`, `no_candidates`, or `no_text`: neither the review nor any
    paper that it includes has a text."""


class NegativeSampler:
    """Draws papers review by review; each draw is independent of the others."""

    def __init__(
        self, corpus: Corpus, graph: Graph, settings: ScreeningSettings
    ) -> None:
        """Draw from *graph*, for the reviews that the settings name."""
        self._corpus = corpus
        self._graph = graph
        self._settings = settings
        self._selected_reviews = frozenset(
            shuffled_reviews(settings.review or graph.reviews, settings.seed)[
                : settings.max_reviews
            ]
        )

    def of(
        self, near: Neighbourhood, exclusions: Mapping[str, Exclusion]
    ) -> DrawnReview | DroppedReview | None:
        """Draw papers for a review; None if the settings leave it out.

        Args:
            near: its neighbourhood.
            exclusions: papers that it has excluded or not decided, by paper.
        """
        corpus, graph, settings = self._corpus, self._graph, self._settings
        review = graph.reviews[near.review]
        if review not in self._selected_reviews:
            return None
        reason = _reason_to_drop(corpus, review, near, settings)
        if reason:
            return DroppedReview(review=review, reason=reason)
        pool = candidate_pools(corpus, graph, near, exclusions, settings)
        return _draw_review(review, pool, exclusions, settings)


def _reason_to_drop(
    corpus: Corpus, review: str, near: Neighbourhood, settings: ScreeningSettings
) -> str:
    """Return the reason to drop a review, or ""."""
    if not is_analysed(near, settings):
        return "too_few_included"
    needs_near_misses = "near-miss" in settings.negatives
    may_lack = settings.keep_without_negatives
    if needs_near_misses and not may_lack and not len(near.candidates):
        return "no_candidates"
    text = corpus.reviews.get(review, NO_TEXT)
    has_description = text.title or text.has_abstract or review in corpus.criteria
    return "" if has_description and len(near.included) else "no_text"


def is_analysed(near: Neighbourhood, settings: ScreeningSettings) -> bool:
    """Return whether a review has enough papers for statistics and the draw."""
    with_abstract = settings.min_included_basis == "with_abstract"
    basis = near.included if with_abstract else near.cited
    return len(basis) >= settings.min_included


def wanted_counts(
    pool: CandidatePools, settings: ScreeningSettings
) -> dict[RecordKind, int]:
    """Return the requested number of papers by kind, in set order.

    A pool may have fewer.

    Args:
        pool: pools of the review.
        settings: kinds, ratio and caps.
    """
    positives = min(settings.max_included or len(pool.included), len(pool.included))
    negatives = settings.per_review or math.floor(settings.ratio * positives + 0.5)
    return {
        kind: positives if kind == "included" else negatives
        for kind in KINDS
        if kind == "included" or kind in settings.negatives
    }


def _draw_review(
    review: str,
    pool: CandidatePools,
    exclusions: Mapping[str, Exclusion],
    settings: ScreeningSettings,
) -> DrawnReview:
    records: list[ScreeningRecord] = []
    short: dict[RecordKind, int] = {}
    for kind, n in wanted_counts(pool, settings).items():
        papers = first_by_hash(
            pool.of(kind), n, seed=settings.seed, review=review, kind=kind
        )
        if len(papers) < n:
            short[kind] = n - len(papers)
        records += (
            _record(review, paper, kind, pool, exclusions.get(paper))
            for paper in sorted(papers)
        )
    return DrawnReview(review=review, records=tuple(records), pools=pool, short=short)


def _record(
    review: str,
    paper: str,
    kind: RecordKind,
    pool: CandidatePools,
    exclusion: Exclusion | None,
) -> ScreeningRecord:
    links, shared = pool.candidates.get(paper, (0, 0))
    is_excluded = kind == "true-excluded" and exclusion is not None
    return ScreeningRecord(
        review=review,
        paper=paper,
        kind=kind,
        also_near_miss=is_excluded and paper in pool.candidates,
        reason=exclusion.reason if is_excluded and exclusion else "",
        reason_code=exclusion.reason_code if is_excluded and exclusion else "",
        n_links=links,
        n_shared=shared,
    )
