"""Why the search of a model did not offer a paper that the database has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jobs.review_benchmark.database.merging import NORMAL
from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.gathering.course import Course
from jobs.review_benchmark.rebuilt import Missed, MissedBy
from jobs.review_benchmark.record import Record
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.found import years
from jobs.review_benchmark.search.query import Query, expression
from jobs.review_benchmark.settings import Settings

COCHRANE = "10.1002/14651858"
"""The beginning of the DOI of every Cochrane review."""

ALL = -1
"""No limit, to SQLite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """The searches of one model for one review, which papers are held against."""

    review: Review
    settings: Settings
    database: Database
    courses: Sequence[Course]
    _ranks: dict[str, Mapping[int, int]] = field(default_factory=dict, repr=False)

    def missed(self, paper: Record) -> Missed:
        """Why *paper*, which the database has, is no candidate."""
        if self.settings.exclude_reviews and self._is_review(paper):
            return Missed(is_review=True)
        number = int(paper.document)
        span = years(self.review, self.settings)
        is_within = paper.year is None or span[0] <= paper.year <= span[1]
        queries = tuple(
            self._missed_by(query, searched.replicate, number, is_within=is_within)
            for course in self.courses
            if (searched := course.searched) is not None
            for query in searched.queries
        )
        fits = any(not own.unmet and not own.unwanted for own in queries)
        return Missed(
            queries=queries,
            rank=self._fused_rank(number),
            year=paper.year if fits and not is_within else None,
        )

    def _missed_by(
        self, query: Query, replicate: int, number: int, *, is_within: bool
    ) -> MissedBy:
        if self.database.fits(number, expression(query)):
            rank = self._rank(query).get(number) if is_within else None
            return MissedBy(label=query.label, replicate=replicate, rank=rank)
        return MissedBy(
            label=query.label,
            replicate=replicate,
            unmet=tuple(
                group for group in query.all_of if not self._has(number, group)
            ),
            unwanted=tuple(
                term for term in query.none_of if self._has(number, (term,))
            ),
        )

    def _has(self, number: int, group: tuple[str, ...]) -> bool:
        """Whether a paper has one of some synonyms; True where none can be searched."""
        asked = expression(Query(label="", all_of=(group,)))
        return not asked or self.database.fits(number, asked)

    def _rank(self, query: Query) -> Mapping[int, int]:
        """Places of all papers that a query finds, from 1."""
        asked = expression(query)
        known = self._ranks.get(asked)
        if known is None:
            found = self.database.search(
                asked,
                years(self.review, self.settings),
                ALL,
                with_reviews=not self.settings.exclude_reviews,
            )
            known = {number: rank for rank, number in enumerate(found, start=1)}
            self._ranks[asked] = known
        return known

    def _fused_rank(self, number: int) -> int | None:
        """The best place of a paper that was found and is beyond the candidates."""
        ranks = [
            course.ranked.index(number) + 1
            for course in self.courses
            if number in course.ranked
        ]
        return min(ranks, default=None)

    def _is_review(self, paper: Record) -> bool:
        return paper.doi.startswith(COCHRANE) or NORMAL.title(
            paper.title
        ) == NORMAL.title(self.review.title)
