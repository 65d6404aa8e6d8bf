"""Searches the database for a plan of queries and fuses the hits into one order.

The deterministic plan is made from content words of the question and its parts. It is
what the offline baseline answers, and what is searched where a model's plan cannot be
used, so that a review is never lost silently.
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
"""Cormack, Clarke and Buettcher, SIGIR 2009."""


def fuse_rankings(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Ids by the sum of 1/(60 + rank) over the rankings, then by id.

    Sums are whole numbers of a unit that every share is a multiple of, so that the
    order of the rankings leaves no trace.
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

    def ranks(self, paper: int) -> Sequence[int | None]:
        """The place of a paper among those of each query, from 1."""
        return [_rank(ranking, paper) for ranking in self.rankings]

    def rank(self, paper: int) -> int | None:
        """The place of a paper in the order of all queries, from 1."""
        return _rank(self.ranked, paper)


def _rank(ranking: Sequence[int], paper: int) -> int | None:
    return ranking.index(paper) + 1 if paper in ranking else None


def searched_years(
    review: Review, settings: ReviewBenchmarkSettings
) -> tuple[int, int]:
    """The years that are searched."""
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

    The review itself is no candidate, nor is any other one of its publisher: by their
    DOIs, or by its title.
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
    """The queries for a review."""
    return deterministic_plan(review.question, review.pico or QuestionParts())


def deterministic_plan(question: str, pico: QuestionParts) -> tuple[SearchQuery, ...]:
    """Population and intervention, the intervention alone, and any word at all.

    The words are those of the parts; of the question where it is not in parts.
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
