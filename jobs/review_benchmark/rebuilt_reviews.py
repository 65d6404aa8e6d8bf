"""Defines an agent's result for a review, and builds it from an imported result.

Runs and imports both produce `ReviewPredictions`, the only input of scoring.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from jobs.kit.metrics import mean
from jobs.review_benchmark.data import (
    AgentRecord,
    Certainty,
    Direction,
    JudgedSimilarity,
    Review,
    SearchQuery,
    Vector,
)
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.lookup import (
    JUNK_FROM,
    NearestTitle,
    RecordListPool,
    nearest_titles,
)
from jobs.review_benchmark.matching import (
    LookupKeys,
    MatchedPapers,
    RecordHit,
    lookup_keys,
    match_papers,
)
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.search import SearchHits
from runner.job import Answer
from runner.scorecard import Finding

ScoreOutcome: TypeAlias = Literal[
    "scored", "unparsed", "failed", "no_text", "too_long", "open"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePaper:
    """A paper that was offered to an agent."""

    document: str  #: id in the database, or `document_id` of an import
    rank: int  #: from 1, in the fused order; of an import, in the file's order
    included: bool
    outcome: ScoreOutcome = "scored"
    failure: str = ""  #: class of the failure, if it has no score
    score: float | None = None  #: mean of the replicates that have one
    votes: tuple[bool, ...] = ()  #: whether each single replicate would include it
    rationale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedSearch:
    """A search plan and its hits."""

    replicate: int
    queries: tuple[SearchQuery, ...]
    hits: tuple[int, ...]  #: papers that each query found, before `top_k`
    search_hits: SearchHits
    is_fallback: bool  #: no usable plan: the deterministic one was searched


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConclusion:
    """One replicate's conclusion about a review, and its comparisons."""

    text: str = ""  #: empty: there is none
    direction: Direction | None = None  #: as stated in the reply; None: not stated
    certainty: Certainty | None = None  #: the same
    failure: str = ""
    """Reason for a missing conclusion or comparison with the authors' conclusion: that
    of a skip, a class of errors, that of a parse failure, or `open`."""
    judged: Mapping[str, JudgedSimilarity] = field(default_factory=dict)
    """Judged similarity to the authors' conclusions, by review, with its review."""
    vector: Vector = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedByQuery:
    """The reason why one query did not find a paper of the database."""

    label: str  #: of the query
    replicate: int
    unmet: tuple[tuple[str, ...], ...] = ()  #: groups without a synonym in its text
    unwanted: tuple[str, ...] = ()  #: exclusions in its text
    rank: int | None = None  #: among the query's papers, if it is one of them


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedPaper:
    """The reason why a paper of the database is no candidate."""

    queries: tuple[MissedByQuery, ...] = ()  #: by replicate, then in the plan's order
    rank: int | None = None  #: in the fused order, if it ranks beyond the candidates
    year: int | None = None  #: its year, if a query matches but the years do not
    is_review: bool = False  #: whether it was left out as a Cochrane review


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUsage:
    """Calls, tokens and cost of the replies about one review.

    Replies that compare its conclusion are not the agent's, and do not count.
    """

    calls: int = 0
    tokens_in: int | None = None  #: None: no endpoint reported them
    tokens_out: int | None = None
    cost_usd: float | None = None  #: None: no price is known


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltReview:
    """One agent's result for one review.

    Fields about truth papers have one entry for each, in the review's order.
    """

    review: str
    model: str
    matched: MatchedPapers
    otherwise: MatchedPapers | None = None
    """Matches under the other value of `autojunk`; None: it makes no difference."""
    documents: Mapping[int, str]  #: ids of the records that may match, by index
    records: Mapping[str, AgentRecord]  #: the matched records, by id
    nearest: Mapping[int, NearestTitle] = field(default_factory=dict)
    """Most similar title for each truth paper without a record, if one is near."""
    papers: Mapping[str, AgentRecord] = field(default_factory=dict)
    """Record of every candidate, by id."""
    missed: Mapping[int, MissedPaper] = field(default_factory=dict)
    """Reasons why the search did not find truth papers' records, by index."""
    included: tuple[str, ...]  #: ids of the included rows, with duplicates
    candidates: tuple[CandidatePaper, ...]  #: by rank
    searches: tuple[ExecutedSearch, ...] = ()  #: by replicate; empty for an import
    conclusions: tuple[AgentConclusion, ...] = ()  #: by replicate
    spent: AgentUsage = field(default_factory=AgentUsage)
    skip: str = ""  #: why the review was skipped, such as `no_candidates`

    @property
    def hits(self) -> tuple[RecordHit | None, ...]:
        """Record of each truth paper."""
        return self.matched.hits

    @property
    def concluded(self) -> AgentConclusion:
        """Conclusion of the first replicate that has one; empty if none has."""
        stated = (conclusion for conclusion in self.conclusions if conclusion.text)
        return next(stated, AgentConclusion())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPredictions:
    """All inputs of a scoring."""

    reviews: tuple[Review, ...]  #: ascending by id
    models: tuple[str, ...]
    rebuilt: tuple[RebuiltReview, ...]  #: by model, then review
    replicates: int = 1
    imported: bool
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    """Vectors of authors' conclusions, by review; empty unless they are compared."""
    findings: tuple[Finding, ...] = ()
    missing: int = 0  #: tasks of the current plan that the run does not have
    stale: int = 0  #: stored answers that the current plan no longer needs

    def of(self, model: str) -> list[RebuiltReview]:
        """Return a model's results, ascending by review."""
        return [rebuilt for rebuilt in self.rebuilt if rebuilt.model == model]


def rebuild_from_result(
    dataset: ReviewDataset,
    review: Review,
    model: str,
    results: Mapping[int, AgentResult],
    *,
    replicates: int,
) -> RebuiltReview:
    """Build an agent's result from its replicates, whose records are its database.

    Args:
        dataset: reviews and settings.
        review: the review.
        model: the agent.
        results: by the number of the replicate, from 1.
        replicates: number of replicates of any review.
    """
    rules = dataset.settings.rules
    rows = _rows(results, replicates)
    offered = [row.record for row in rows]
    # papers of the database that no search found; they come after all others
    unseen = {
        record.document: record
        for result in results.values()
        for record in result.unseen
    }
    offered_documents = {record.document for record in offered}
    records = [
        *offered,
        *(
            record
            for record in unseen.values()
            if record.document not in offered_documents
        ),
    ]
    # another title of a paper becomes a separate record, found only by that title
    records += [
        AgentRecord(document=record.document, title=title)
        for record in tuple(records)
        for title in record.other_titles
    ]
    included = tuple(record.document for record in records if record.included)
    included_documents = frozenset(included)
    included_indices = {
        at for at, record in enumerate(records) if record.document in included_documents
    }
    truth_keys = [lookup_keys(paper, rules.normal) for paper in review.studies]
    pool = RecordListPool.of(
        records, rules.normal, cutoff=rules.title_cutoff, autojunk=rules.autojunk
    )

    def of(record_pool: RecordListPool) -> MatchedPapers:
        return match_papers(
            truth_keys, [record_pool] * len(truth_keys), rules, included_indices
        )

    matched = other = of(pool)
    if any(len(title) >= JUNK_FROM for title in pool.titles):
        other = of(replace(pool, autojunk=not rules.autojunk))
    hit = [records[hit.index] for hit in matched.hits if hit is not None]
    return RebuiltReview(
        review=review.id,
        model=model,
        matched=matched,
        otherwise=None if other == matched else other,
        documents={at: record.document for at, record in enumerate(records)},
        records={record.document: record for record in hit},
        nearest=_nearest(truth_keys, matched, records, pool),
        papers={record.document: record for record in reversed(records)},
        included=included,
        candidates=tuple(_candidates(rows, included_documents)),
        conclusions=tuple(map(_stated_conclusion, results.values())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of a result, or the combined rows of one paper in several replicates."""

    record: AgentRecord
    votes: tuple[bool, ...]  #: by replicate: whether it includes the paper


def _rows(results: Mapping[int, AgentResult], replicates: int) -> Sequence[_Row]:
    """Return the rows, included ones first.

    If there are several replicates, each paper has one row: included by more than half
    of them, with the mean of the available scores.
    """
    numbers = range(1, replicates + 1)
    if len(results) == 1:
        ((only, result),) = results.items()
        return [
            _Row(
                record=record,
                votes=tuple(record.included and number == only for number in numbers),
            )
            for record in result.records
        ]
    by_number = {
        # if a paper occurs twice, the first row counts: included ones come first
        number: {record.document: record for record in reversed(result.records)}
        for number, result in results.items()
    }
    first: dict[str, AgentRecord] = {}
    for by_document in by_number.values():
        for document in reversed(by_document):
            first.setdefault(document, by_document[document])
    joined = []
    for record in first.values():
        rows = [by_number.get(number, {}).get(record.document) for number in numbers]
        votes = tuple(row is not None and row.included for row in rows)
        score = mean(None if row is None else row.score for row in rows)
        is_included = 2 * sum(votes) > len(results)
        joined.append(
            _Row(
                record=replace(record, score=score, included=is_included),
                votes=votes,
            )
        )
    return sorted(joined, key=lambda row: not row.record.included)


def _candidates(
    rows: Sequence[_Row], included_documents: AbstractSet[str]
) -> Iterator[CandidatePaper]:
    """Yield the rows as candidates; an excluded row of an included paper is dropped."""
    for rank, row in enumerate(rows, start=1):
        record = row.record
        if record.included or record.document not in included_documents:
            yield CandidatePaper(
                document=record.document,
                rank=rank,
                included=record.included,
                outcome=_outcome(record),
                score=record.score,
                votes=row.votes,
                rationale=record.rationale,
            )


def _outcome(record: AgentRecord) -> ScoreOutcome:
    """Return a paper's outcome: from siftlog's result files, else by its score.

    A paper without a score may not have been scored yet.
    """
    stated = record.further.get("outcome")
    outcome = next(
        (outcome for outcome in get_args(ScoreOutcome) if outcome == stated), None
    )
    return outcome or ("open" if record.score is None else "scored")


def _nearest(
    truth_keys: Sequence[LookupKeys],
    matched: MatchedPapers,
    records: Sequence[AgentRecord],
    pool: RecordListPool,
) -> dict[int, NearestTitle]:
    missing = [at for at, hits in enumerate(matched.serving) if not hits]
    documents = [record.document for record in records]
    nearest = nearest_titles(
        [truth_keys[at].title for at in missing],
        [list(zip(documents, pool.titles, strict=True))],
        autojunk=pool.autojunk,
    )
    return {
        at: near for at, near in zip(missing, nearest, strict=True) if near is not None
    }


def _stated_conclusion(result: AgentResult) -> AgentConclusion:
    """Return the conclusion in a file, if there is one."""
    if not result.conclusion:
        return AgentConclusion(failure="no_conclusion")
    return AgentConclusion(
        text=result.conclusion,
        direction=result.direction,
        certainty=result.certainty,
    )


def usage_of(answers: Iterable[Answer]) -> AgentUsage:
    """Return the usage of the replies among *answers*."""
    return total_usage(
        AgentUsage(
            calls=1,
            tokens_in=None if usage is None else usage.tokens_in,
            tokens_out=None if usage is None else usage.tokens_out,
            cost_usd=answer.cost_usd,
        )
        for answer in answers
        if answer.reply is not None
        for usage in [answer.reply.usage]
    )


def total_usage(parts: Iterable[AgentUsage]) -> AgentUsage:
    """Return the sum of several usages; None for values that none of them knows."""
    parts = list(parts)
    tokens_in = [usage.tokens_in for usage in parts if usage.tokens_in is not None]
    tokens_out = [usage.tokens_out for usage in parts if usage.tokens_out is not None]
    costs = [usage.cost_usd for usage in parts if usage.cost_usd is not None]
    return AgentUsage(
        calls=sum(usage.calls for usage in parts),
        tokens_in=sum(tokens_in) if tokens_in else None,
        tokens_out=sum(tokens_out) if tokens_out else None,
        cost_usd=math.fsum(costs) if costs else None,
    )
