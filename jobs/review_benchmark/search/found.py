"""A plan carried out: the papers of each query, and the candidates of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.review_benchmark.database.merging import NORMAL
from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.fusion import fused
from jobs.review_benchmark.search.query import Query, expression
from jobs.review_benchmark.settings import Settings

ANY_YEAR = (-(1 << 31), 1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search plan has found."""

    rankings: tuple[tuple[int, ...], ...]  #: ids by query, best first, at most `top_k`
    ranked: tuple[int, ...]  #: ids of all queries in one order
    most: int  #: how many of them are candidates

    @property
    def candidates(self) -> tuple[int, ...]:
        """The papers that are scored, best first."""
        return self.ranked[: self.most]

    @property
    def cut(self) -> int:
        """Papers that were found and are too many."""
        return len(self.ranked) - len(self.candidates)


def years(review: Review, settings: Settings) -> tuple[int, int]:
    """The years that are searched."""
    if review.date_range is None or not settings.use_date_range:
        return ANY_YEAR
    return review.date_range


def found(
    review: Review, queries: Sequence[Query], database: Database, settings: Settings
) -> Found:
    """Search the database for one review.

    The review itself is no candidate, nor is any other one of its publisher: by their
    DOIs, or by its title.
    """
    span = years(review, settings)
    itself: frozenset[int] = frozenset()
    if settings.exclude_reviews:
        itself = frozenset(database.titled(NORMAL.title(review.title)))
    rankings = []
    for query in queries:
        hits = database.search(
            expression(query),
            span,
            settings.top_k + len(itself),
            with_reviews=not settings.exclude_reviews,
        )
        kept = [number for number in hits if number not in itself]
        rankings.append(tuple(kept[: settings.top_k]))
    return Found(
        rankings=tuple(rankings),
        ranked=tuple(fused(rankings)),
        most=settings.max_candidates,
    )
