"""Reads a run's answers in one pass into the result of each agent for each review.

Answers of one model are matched against the whole database. Replicates are combined: a
paper is included by the mean of the available scores. For a paper of the database that
no search found, each query states the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from jobs.kit.metrics import mean
from jobs.review_benchmark import parsing, rebuilt_reviews
from jobs.review_benchmark.coverage import ReviewStock, review_stocks
from jobs.review_benchmark.data import AgentRecord, Review, SearchQuery, expression
from jobs.review_benchmark.database.papers import NORMAL
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.lookup import DatabaseLookup, DatabasePool
from jobs.review_benchmark.matching import MatchedPapers, match_papers
from jobs.review_benchmark.rebuilt_reviews import (
    CandidatePaper,
    MissedByQuery,
    MissedPaper,
    RebuiltReview,
    ReviewPredictions,
    ScoreOutcome,
    total_usage,
)
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.search import searched_years
from jobs.review_benchmark.search_replies import (
    STAGES,
    ScoredPaper,
    SearchAnswers,
    TruthVectors,
    read_search,
)
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.job import Answers
from runner.scorecard import Finding

_NEAREST: tuple[ScoreOutcome, ...] = (
    "scored",
    "unparsed",
    "failed",
    "too_long",
    "no_text",
    "open",
)
"""Outcomes of a candidate, in descending order of preference."""


def join_candidates(
    replicate_searches: Sequence[SearchAnswers],
    replicates: int,
    settings: ReviewBenchmarkSettings,
) -> tuple[CandidatePaper, ...]:
    """Return the candidates of all replicates, by their best rank, then by id."""
    begun = {search.replicate: search.scored for search in replicate_searches}
    scored = [begun.get(number, {}) for number in range(1, replicates + 1)]
    ranks: dict[int, int] = {}
    for search in replicate_searches:
        # in the order of the candidates
        for rank, number in enumerate(search.scored, start=1):
            ranks[number] = min(rank, ranks.get(number, rank))
    order = sorted(ranks, key=lambda number: (ranks[number], number))
    return tuple(
        _candidate(
            number,
            rank,
            [replicate_scores.get(number) for replicate_scores in scored],
            settings,
        )
        for rank, number in enumerate(order, start=1)
    )


def _candidate(
    number: int,
    rank: int,
    scored: Sequence[ScoredPaper | None],
    settings: ReviewBenchmarkSettings,
) -> CandidatePaper:
    score = mean(
        None if scored_paper is None else scored_paper.score for scored_paper in scored
    )
    nearest = min(
        (scored_paper for scored_paper in scored if scored_paper is not None),
        key=lambda scored_paper: _NEAREST.index(scored_paper.outcome),
    )
    return CandidatePaper(
        document=str(number),
        rank=rank,
        included=settings.includes(score),
        outcome=nearest.outcome,
        failure=nearest.failure,
        score=score,
        votes=tuple(
            scored_paper is not None and settings.includes(scored_paper.score)
            for scored_paper in scored
        ),
        rationale=nearest.rationale,
    )


COCHRANE = "10.1002/14651858"
"""Prefix of the DOI of every Cochrane review."""

ALL = -1
"""SQLite's limit for all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDiagnosis:
    """The searches of one model for one review; explains why they missed papers."""

    dataset: ReviewDataset
    review: Review
    replicate_searches: Sequence[SearchAnswers]
    _ranks: dict[str, Mapping[int, int]] = field(default_factory=dict, repr=False)

    def missed(self, paper: AgentRecord) -> MissedPaper:
        """Return why *paper*, which the database has, is no candidate."""
        if self.dataset.settings.exclude_reviews and self._is_review(paper):
            return MissedPaper(is_review=True)
        number = int(paper.document)
        span = searched_years(self.review, self.dataset.settings)
        is_within = paper.year is None or span[0] <= paper.year <= span[1]
        queries = tuple(
            self._missed_by(query, searched.replicate, number, is_within=is_within)
            for search in self.replicate_searches
            if (searched := search.searched) is not None
            for query in searched.queries
        )
        fits = any(not query.unmet and not query.unwanted for query in queries)
        return MissedPaper(
            queries=queries,
            rank=self._fused_rank(number),
            year=paper.year if fits and not is_within else None,
        )

    def _missed_by(
        self, query: SearchQuery, replicate: int, number: int, *, is_within: bool
    ) -> MissedByQuery:
        if self.dataset.papers.fits(number, expression(query)):
            rank = self._rank(query).get(number) if is_within else None
            return MissedByQuery(label=query.label, replicate=replicate, rank=rank)
        return MissedByQuery(
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
        """Return whether a paper matches any synonym; True if none can be searched."""
        fts_query = expression(SearchQuery(label="", all_of=(group,)))
        return not fts_query or self.dataset.papers.fits(number, fts_query)

    def _rank(self, query: SearchQuery) -> Mapping[int, int]:
        """Return the rank, from 1, of all papers that a query finds."""
        fts_query = expression(query)
        ranks = self._ranks.get(fts_query)
        if ranks is None:
            numbers = self.dataset.papers.search(
                fts_query,
                searched_years(self.review, self.dataset.settings),
                ALL,
                with_reviews=not self.dataset.settings.exclude_reviews,
            )
            ranks = {number: rank for rank, number in enumerate(numbers, start=1)}
            self._ranks[fts_query] = ranks
        return ranks

    def _fused_rank(self, number: int) -> int | None:
        """Return the best rank of a paper that was found beyond the candidates."""
        ranks = [
            rank
            for search in self.replicate_searches
            if search.searched is not None
            and (rank := search.searched.search_hits.rank(number)) is not None
        ]
        return min(ranks, default=None)

    def _is_review(self, paper: AgentRecord) -> bool:
        if paper.doi.startswith(COCHRANE):
            return True
        title = self.review.title
        return bool(title) and NORMAL.title(paper.title) == NORMAL.title(title)


def rebuild_from_answers(
    dataset: ReviewDataset,
    review: Review,
    model: str,
    replicate_searches: Sequence[SearchAnswers],
    stock: ReviewStock,
    *,
    replicates: int,
) -> RebuiltReview:
    """Build a review's result from the replicates of a model."""
    candidates = join_candidates(replicate_searches, replicates, dataset.settings)
    first = [candidate for candidate in candidates if candidate.included]
    rest = [candidate for candidate in candidates if not candidate.included]
    order = {
        int(candidate.document): index
        for index, candidate in enumerate((*first, *rest))
    }

    def of(lookups: Sequence[DatabaseLookup]) -> MatchedPapers:
        pools = [DatabasePool(order=order, lookup=lookup) for lookup in lookups]
        return match_papers(
            stock.truth_keys, pools, dataset.settings.rules, range(len(first))
        )

    matched = of(stock.lookups)
    otherwise = None if stock.otherwise is None else of(stock.otherwise)
    documents = _documents(order, matched, otherwise)
    diagnosis = SearchDiagnosis(
        dataset=dataset, review=review, replicate_searches=replicate_searches
    )
    records = {}
    missed = {}
    for paper, hit in enumerate(matched.hits):
        if hit is not None:
            document = documents[hit.index]
            records[document] = stock.record(int(document))
            if hit.index >= len(order):
                missed[paper] = diagnosis.missed(records[document])
    return RebuiltReview(
        review=review.id,
        model=model,
        matched=matched,
        otherwise=otherwise,
        documents=documents,
        records=records,
        nearest=stock.nearest,
        papers={
            candidate.document: stock.record(int(candidate.document))
            for candidate in candidates
        },
        missed=missed,
        included=tuple(candidate.document for candidate in first),
        candidates=candidates,
        searches=tuple(
            search.searched
            for search in replicate_searches
            if search.searched is not None
        ),
        conclusions=tuple(search.concluded for search in replicate_searches),
        spent=total_usage([search.spent for search in replicate_searches]),
        skip="" if candidates else _skip(replicate_searches),
    )


def _skip(replicate_searches: Sequence[SearchAnswers]) -> str:
    """Return why there are no candidates: a failed search, or one without hits."""
    return next(
        (search.failure for search in replicate_searches if search.failure),
        "no_candidates",
    )


def _documents(
    order: Mapping[int, int], *every: MatchedPapers | None
) -> dict[int, str]:
    """Return papers by index: those of the order, and matched ones beyond it."""
    documents = {index: str(number) for number, index in order.items()}
    for matched in every:
        for hits in () if matched is None else (*matched.serving, *matched.claimable):
            for hit in hits:
                documents.setdefault(hit.index, str(hit.index - len(order)))
    return documents


_Value = TypeVar("_Value")


def collect_predictions(dataset: ReviewDataset, answers: Answers) -> ReviewPredictions:
    """Return the results of all answers, by the current rules."""
    return (
        _imported(dataset, answers)
        if answers.imported
        else _from_answers(dataset, answers)
    )


def _from_answers(dataset: ReviewDataset, answers: Answers) -> ReviewPredictions:
    replicate_searches: dict[tuple[str, str], list[SearchAnswers]] = {}
    missing = stale = 0
    truths = TruthVectors(dataset=dataset, replicates=answers.replicates)
    for family in answers.families():
        if family[0].task.stage in STAGES:
            truths.add(family)
            continue
        search = read_search(dataset, family)
        if search is None:
            stale += sum(answer.reply is not None for answer in family)
            continue
        missing += search.missing
        stale += search.stale
        if not search.is_open:
            replicate_searches.setdefault((search.model, search.review), []).append(
                search
            )
    searched = {review for _, review in replicate_searches}
    stock = review_stocks(
        dataset, [review for review in dataset.reviews if review.id in searched]
    )
    return ReviewPredictions(
        reviews=dataset.reviews,
        models=answers.models,
        rebuilt=tuple(
            rebuild_from_answers(
                dataset,
                review,
                model,
                searches,
                stock[review.id],
                replicates=answers.replicates,
            )
            for model, review, searches in _in_order(
                dataset, answers, replicate_searches
            )
        ),
        replicates=answers.replicates,
        imported=False,
        vectors=truths.vectors,
        missing=truths.missing + missing,
        stale=truths.stale + stale,
    )


def _imported(dataset: ReviewDataset, answers: Answers) -> ReviewPredictions:
    results: dict[tuple[str, str], dict[int, AgentResult]] = {}
    findings: list[Finding] = []
    stale = 0
    for family in answers.families():
        for answer in family:
            task = answer.task
            if answer.chat is None or dataset.find(task.key) is None:
                stale += 1
                continue
            result = parsing.read_result(dataset, task, answer.chat)
            if isinstance(result, AgentResult):
                by_replicate = results.setdefault((task.model, task.key), {})
                by_replicate[task.replicate] = result
                findings += result.findings
            else:
                findings.append(
                    Finding(
                        code=result.reason,
                        severity="error",
                        where=f"{task.key} of {task.model}",
                        message=f"The result cannot be read: {result.detail}",
                    )
                )
    return ReviewPredictions(
        reviews=dataset.reviews,
        models=answers.models,
        rebuilt=tuple(
            rebuilt_reviews.rebuild_from_result(
                dataset, review, model, review_results, replicates=answers.replicates
            )
            for model, review, review_results in _in_order(dataset, answers, results)
        ),
        replicates=answers.replicates,
        imported=True,
        findings=tuple(findings),
        stale=stale,
    )


def _in_order(
    dataset: ReviewDataset, answers: Answers, by_key: Mapping[tuple[str, str], _Value]
) -> Iterator[tuple[str, Review, _Value]]:
    """Yield the values that exist, by model, then review, in the run's order."""
    for model in answers.models:
        for review in dataset.reviews:
            if (model, review.id) in by_key:
                yield model, review, by_key[model, review.id]
