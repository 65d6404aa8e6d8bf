"""A search plan on a page: each query, what it found, and what became of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.review_benchmark import reading
from jobs.review_benchmark.answered import SearchPlan
from jobs.review_benchmark.asking.plan import queries, searched
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering.course import n_hits
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.found import Found
from jobs.review_benchmark.search.query import Query, expression
from jobs.text import (
    NONE,
    TextColumn,
    clip,
    hanging_lines,
    one_line,
    plural,
    text_table,
)
from runner.job import Answer
from runner.messages import ParseFailure

LABEL = 40
"""Characters of a query's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One plan, carried out."""

    origin: str  #: where the plan comes from, in words
    queries: tuple[Query, ...]
    hits: tuple[int, ...]  #: papers that fit each query, of any year
    found: Found

    def ranks(self, paper: int) -> Sequence[int | None]:
        """The place of a paper among those of each query, from 1."""
        return [
            ranking.index(paper) + 1 if paper in ranking else None
            for ranking in self.found.rankings
        ]

    def rank(self, paper: int) -> int | None:
        """The place of a paper in the order of all queries, from 1."""
        ranked = self.found.ranked
        return ranked.index(paper) + 1 if paper in ranked else None


def planned_search(dataset: Dataset, review: Review) -> Search:
    """What the plan that needs no model finds."""
    return _search(dataset, review, None, "the fixed plan, which needs no model")


def answered_search(dataset: Dataset, review: Review, answer: Answer) -> Search | str:
    """What a reply's plan finds, or why there is no search."""
    if answer.chat is None:
        return answer.error or answer.skip or "not answered yet"
    parsed = reading.read_plan(dataset, answer.task, answer.chat)
    return _search(dataset, review, parsed, _origin(parsed))


def _origin(parsed: SearchPlan | ParseFailure) -> str:
    if isinstance(parsed, ParseFailure):
        return f"the fixed plan, since the reply could not be read: {parsed.reason}"
    dropped = plural(parsed.dropped, "query", "queries")
    return f"the model's plan{f', {dropped} dropped' if parsed.dropped else ''}"


def _search(dataset: Dataset, review: Review, parsed: object, origin: str) -> Search:
    asked = queries(review, parsed, dataset.settings.queries)
    return Search(
        origin=origin,
        queries=asked,
        hits=tuple(n_hits(dataset, query) for query in asked),
        found=searched(dataset, review, parsed),
    )


def search_lines(search: Search, paper: int | None = None) -> Iterator[str]:
    """The queries of a search.

    Args:
        search: the plan, and what it found.
        paper: whose places are shown; None: of no paper.
    """
    yield f"  {search.origin}"
    places = [str(place) for place, _ in enumerate(search.queries, start=1)]
    columns = [
        TextColumn(title="query", cells=places),
        TextColumn(title="hits", cells=[f"{hits:,}" for hits in search.hits]),
        TextColumn(
            title="kept", cells=[f"{len(own):,}" for own in search.found.rankings]
        ),
        TextColumn(
            title="label",
            cells=[clip(query.label, LABEL) for query in search.queries],
            has_words=True,
        ),
    ]
    if paper is not None:
        ranks = [NONE if rank is None else str(rank) for rank in search.ranks(paper)]
        columns.insert(1, TextColumn(title="rank", cells=ranks))
    yield from text_table(columns)
    for place, query in zip(places, search.queries, strict=True):
        # what can be searched of a model's words stands between quotation marks
        asked = expression(query) or "nothing that can be searched"
        yield from hanging_lines(f"    {place}  ", one_line(asked))
    found = search.found
    cut = f", {found.cut:,} more cut" if found.cut else ""
    yield f"  candidates: {len(found.candidates):,}{cut}"
