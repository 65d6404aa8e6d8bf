"""The draw: each review's included papers and its negatives, in set order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.screening.corpus import Corpus, Exclusion
from jobs.screening.drawing.lot import drawn, shuffled
from jobs.screening.drawing.pools import Pools, pools
from jobs.screening.graph.relations import Graph, Neighbourhood
from jobs.screening.settings import Settings
from jobs.screening.validation_set import KINDS, Kind, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What was drawn for one review."""

    review: str
    records: tuple[Record, ...]  #: by kind, then by paper
    pools: Pools
    short: Mapping[Kind, int]  #: papers wanting, by kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A review that is not in the set."""

    review: str
    why: str
    """`too_few_included`, `no_candidates`, or `no_text`: nothing can be read of the
    review, or of any paper that it includes."""


class Draw:
    """Draws for one review after another; none depends on another's."""

    def __init__(self, corpus: Corpus, graph: Graph, settings: Settings) -> None:
        """A draw from *graph*, of the reviews that the settings name."""
        self._corpus = corpus
        self._graph = graph
        self._settings = settings
        self._wanted = frozenset(
            shuffled(settings.review or graph.reviews, settings.seed)[
                : settings.max_reviews
            ]
        )

    def of(
        self, near: Neighbourhood, known: Mapping[str, Exclusion]
    ) -> Drawn | Dropped | None:
        """What is drawn for a review; None where it was not asked for.

        Args:
            near: its neighbourhood.
            known: what it has excluded or not decided, by paper.
        """
        corpus, graph, settings = self._corpus, self._graph, self._settings
        review = graph.reviews[near.review]
        if review not in self._wanted:
            return None
        why = _dropped(corpus, review, near, settings)
        if why:
            return Dropped(review=review, why=why)
        pool = pools(corpus, graph, near, known, settings)
        return _drawn(review, pool, known, settings)


def _dropped(
    corpus: Corpus, review: str, near: Neighbourhood, settings: Settings
) -> str:
    """Why a review is not in the set; empty: it is."""
    if not is_analysed(near, settings):
        return "too_few_included"
    is_wanted = "near-miss" in settings.negatives
    may_lack = settings.keep_without_negatives
    if is_wanted and not may_lack and not len(near.candidates):
        return "no_candidates"
    text = corpus.reviews.get(review)
    has_text = text is not None and (text.title or text.has_abstract)
    can_be_asked = has_text or review in corpus.criteria
    return "" if can_be_asked and len(near.included) else "no_text"


def is_analysed(near: Neighbourhood, settings: Settings) -> bool:
    """Whether a review has enough papers to count in the statistics and be drawn."""
    with_abstract = settings.min_included_basis == "with_abstract"
    basis = near.included if with_abstract else near.cited
    return len(basis) >= settings.min_included


def wanted(pool: Pools, settings: Settings) -> dict[Kind, int]:
    """How many papers of each kind are asked for, in set order; a pool may have less.

    Args:
        pool: of the review.
        settings: kinds, ratio and caps.
    """
    positives = min(settings.max_included or len(pool.included), len(pool.included))
    negatives = settings.per_review or math.floor(settings.ratio * positives + 0.5)
    return {
        kind: positives if kind == "included" else negatives
        for kind in KINDS
        if kind == "included" or kind in settings.negatives
    }


def _drawn(
    review: str, pool: Pools, known: Mapping[str, Exclusion], settings: Settings
) -> Drawn:
    records: list[Record] = []
    short: dict[Kind, int] = {}
    for kind, n in wanted(pool, settings).items():
        papers = drawn(pool.of(kind), n, seed=settings.seed, review=review, kind=kind)
        if len(papers) < n:
            short[kind] = n - len(papers)
        records += (
            _record(review, paper, kind, pool, known.get(paper))
            for paper in sorted(papers)
        )
    return Drawn(review=review, records=tuple(records), pools=pool, short=short)


def _record(
    review: str, paper: str, kind: Kind, pool: Pools, known: Exclusion | None
) -> Record:
    links, shared = pool.candidates.get(paper, (0, 0))
    is_excluded = kind == "true-excluded" and known is not None
    return Record(
        review=review,
        paper=paper,
        kind=kind,
        also_near_miss=is_excluded and paper in pool.candidates,
        reason=known.reason if is_excluded and known else "",
        reason_code=known.reason_code if is_excluded and known else "",
        n_links=links,
        n_shared=shared,
    )
