"""Searches the database for a plan of queries and fuses the hits into one order.

The deterministic plan consists of content words of the question and its parts. It is
the answer of the offline baseline, and the fallback if a model's plan is unusable, so
that a review is never lost silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from jobs.kit.lexical import content_words
from jobs.review_benchmark.data import (
    TERMS,
    QuestionParts,
    Review,
    SearchQuery,
    expression,
)
from jobs.review_benchmark.database.papers import NORMAL
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.settings import ReviewBenchmarkSettings

RANK_CONSTANT = 60
"""Constant of reciprocal rank fusion: Cormack, Clarke and Buettcher, SIGIR 2009."""


def fuse_rankings(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Return ids by the sum of 1/(60 + rank) over the rankings, then by id.

    Sums are whole multiples of a common unit, so the order of the rankings does not
    matter.
    """
    longest = max(map(len, rankings), default=0)
    whole = lcm(*range(RANK_CONSTANT + 1, RANK_CONSTANT + longest + 1))
    shares = [whole // (RANK_CONSTANT + rank) for rank in range(1, longest + 1)]
    scores: dict[int, int] = {}
    for ranking in rankings:
        for number, share in zip(ranking, shares, strict=False):
            scores[number] = scores.get(number, 0) + share
    return sorted(scores, key=lambda number: (-scores[number], number))


ANY_YEAR = (-(1 << 31), 1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """The papers that a search plan found."""

    rankings: tuple[tuple[int, ...], ...]  #: ids by query, best first, at most `top_k`
    ranked: tuple[int, ...]  #: ids of all queries in one order
    most: int  #: number of candidates among them

    @property
    def candidates(self) -> tuple[int, ...]:
        """The papers that are scored, best first."""
        return self.ranked[: self.most]

    @property
    def cut(self) -> int:
        """Number of papers found beyond the candidates."""
        return len(self.ranked) - len(self.candidates)

    def ranks(self, paper: int) -> Sequence[int | None]:
        """Return the rank of a paper in each query, from 1."""
        return [_rank(ranking, paper) for ranking in self.rankings]

    def rank(self, paper: int) -> int | None:
        """Return the rank of a paper in the order of all queries, from 1."""
        return _rank(self.ranked, paper)


def _rank(ranking: Sequence[int], paper: int) -> int | None:
    return ranking.index(paper) + 1 if paper in ranking else None


def searched_years(
    review: Review, settings: ReviewBenchmarkSettings
) -> tuple[int, int]:
    """Return the years to search."""
    if review.date_range is None or not settings.use_date_range:
        return ANY_YEAR
    return review.date_range


def search_database(
    review: Review,
    queries: Sequence[SearchQuery],
    database: PaperDatabase,
    settings: ReviewBenchmarkSettings,
) -> SearchHits:
    """Search the database for one review.

    The review itself and other Cochrane reviews are no candidates; they are recognised
    by their DOIs, and the review by its title too.
    """
    span = searched_years(review, settings)
    itself: frozenset[int] = frozenset()
    if settings.exclude_reviews and review.title:
        itself = frozenset(database.titled(NORMAL.title(review.title)))
    rankings = []
    for query in queries:
        hits = database.search(
            expression(query),
            span,
            settings.top_k + len(itself),
            with_reviews=not settings.exclude_reviews,
        )
        numbers = [number for number in hits if number not in itself]
        rankings.append(tuple(numbers[: settings.top_k]))
    return SearchHits(
        rankings=tuple(rankings),
        ranked=tuple(fuse_rankings(rankings)),
        most=settings.max_candidates,
    )


def deterministic_queries(review: Review) -> tuple[SearchQuery, ...]:
    """Return the deterministic queries for a review."""
    return deterministic_plan(review.question, review.pico or QuestionParts())


def deterministic_plan(question: str, pico: QuestionParts) -> tuple[SearchQuery, ...]:
    """Return queries for population and intervention, for intervention, and any word.

    The words are those of the parts, or of the question if it has no parts.
    """
    people, treated = content_words(pico.population), content_words(pico.intervention)
    words = [*treated, *people, *content_words(f"{pico.outcome} {pico.comparison}")]
    all_words = list(dict.fromkeys(words)) or content_words(question)
    queries = {
        "population and intervention": (people, treated),
        "intervention": (treated,),
        "any word": (all_words,),
    }
    return tuple(
        SearchQuery(label=label, all_of=tuple(tuple(group[:TERMS]) for group in groups))
        for label, groups in queries.items()
        if all(groups)
    )
