"""Finds the step at which each missed truth paper was lost, and suspicious matches.

The steps are those of an agent's work; a paper was lost at the last step that it
reached. A sentence states the remedy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from jobs.kit.text_format import fixed
from jobs.review_benchmark.benchmark import ThresholdStep, passing_step
from jobs.review_benchmark.data import Review, TruthPaper
from jobs.review_benchmark.database.papers import NORMAL
from jobs.review_benchmark.lookup import NearestTitle
from jobs.review_benchmark.matching import Method, RecordHit, pmid_of
from jobs.review_benchmark.rebuilt_reviews import (
    CandidatePaper,
    MissedByQuery,
    MissedPaper,
    RebuiltReview,
)
from jobs.review_benchmark.settings import ReviewBenchmarkSettings

LostAt: TypeAlias = Literal[
    "not_in_database",
    "near_miss_match",
    "claimed",
    "not_retrieved",
    "date_filtered",
    "unscored",
    "below_threshold",
    "excluded",
]
"""Step at which a truth paper was lost, from the first to the last.

`claimed`: under `unique_claims` its record serves another truth paper. `excluded`: an
imported result leaves it out, by a threshold of its agent.
"""

LOST_AT: tuple[LostAt, ...] = get_args(LostAt)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperMatch:
    """Outcome of a truth paper."""

    index: int  #: in the review's list, from 0
    paper: TruthPaper
    document: str  #: id of its record; empty: none
    method: Method | None
    confidence: float  #: 0.0 without a record
    included: bool
    score: float | None
    rationale: str
    lost_at: LostAt | None  #: None: it was included
    resolution: str  #: the remedy; empty: it was included
    near: NearestTitle | None  #: the most similar title, if there is no record

    @property
    def has_record(self) -> bool:
        """Whether it has a record."""
        return self.method is not None


def by_step(
    lost: Sequence[PaperMatch],
) -> Iterator[tuple[LostAt, Sequence[PaperMatch]]]:
    """Yield the steps that lost papers, from the first on, with their papers."""
    for step in LOST_AT:
        if papers := [match for match in lost if match.lost_at == step]:
            yield step, papers


def paper_matches(
    review: Review,
    rebuilt_review: RebuiltReview,
    steps: Sequence[ThresholdStep],
    settings: ReviewBenchmarkSettings,
) -> tuple[PaperMatch, ...]:
    """Return the matches of a review's truth papers, in the order of the review."""
    candidates: dict[str, CandidatePaper] = {}
    for candidate in rebuilt_review.candidates:
        candidates.setdefault(candidate.document, candidate)
    included = frozenset(rebuilt_review.included)
    matches = []
    for index, (paper, hit) in enumerate(
        zip(review.studies, rebuilt_review.hits, strict=True)
    ):
        document = "" if hit is None else rebuilt_review.documents[hit.index]
        case = _PaperCase(
            index=index,
            paper=paper,
            hit=hit,
            document=document,
            candidate=candidates.get(document),
            rebuilt_review=rebuilt_review,
            review=review,
            steps=steps,
            settings=settings,
        )
        lost_at = None if document in included and hit is not None else case.lost_at()
        matches.append(
            PaperMatch(
                index=index,
                paper=paper,
                document=document,
                method=None if hit is None else hit.method,
                confidence=0.0 if hit is None else hit.confidence,
                included=lost_at is None,
                score=None if case.candidate is None else case.candidate.score,
                rationale="" if case.candidate is None else case.candidate.rationale,
                lost_at=lost_at,
                resolution="" if lost_at is None else _RESOLUTIONS[lost_at](case),
                near=rebuilt_review.nearest.get(index),
            )
        )
    return tuple(matches)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PaperCase:
    """A truth paper with everything that determines its outcome."""

    index: int
    paper: TruthPaper
    hit: RecordHit | None
    document: str
    candidate: CandidatePaper | None
    rebuilt_review: RebuiltReview
    review: Review
    steps: Sequence[ThresholdStep]
    settings: ReviewBenchmarkSettings

    @property
    def near(self) -> NearestTitle | None:
        return self.rebuilt_review.nearest.get(self.index)

    @property
    def missed(self) -> MissedPaper:
        return self.rebuilt_review.missed.get(self.index, MissedPaper())

    def lost_at(self) -> LostAt:
        """Return the last step that a paper reached that was not included."""
        if self.hit is None:
            return self._unmatched()
        if self.candidate is None:
            return "not_retrieved" if self.missed.year is None else "date_filtered"
        if not self.rebuilt_review.searches:
            # an import: its agent decided by its rules, regardless of the scores
            return "excluded"
        score = self.candidate.score
        if score is not None and not self.settings.includes(score):
            return "below_threshold"
        return "unscored"

    def _unmatched(self) -> LostAt:
        if self.rebuilt_review.matched.claimable[self.index]:
            return "claimed"
        if self.near is None or not self.near.is_near_miss(self.settings.title_cutoff):
            return "not_in_database"
        return "near_miss_match"


def _not_in_database(case: _PaperCase) -> str:
    paper = case.paper
    ids = ("PMID", pmid_of(paper.pmid)), ("DOI", NORMAL.doi(paper.doi))
    identifiers = " ".join(f"{name} {value}" for name, value in ids if value)
    suffix = f" ({identifiers})" if identifiers else ""
    near = case.near
    nearest = (
        ""
        if near is None
        else f"; the most similar title, at {near.ratio:.2f}, is that of "
        f"{near.document}"
    )
    return f"import it{suffix}, or record it as a limitation{nearest}"


def _near_miss_match(case: _PaperCase) -> str:
    near = case.near
    assert near is not None  # noqa: S101 - guaranteed by the step
    return (
        f"check the title of {near.document}: its ratio is {near.ratio:.4f}, and "
        f"{case.settings.title_cutoff:g} would match"
    )


def _claimed(case: _PaperCase) -> str:
    documents = dict.fromkeys(
        case.rebuilt_review.documents[hit.index]
        for hit in case.rebuilt_review.matched.claimable[case.index]
    )
    return f"{', '.join(documents)} serves another study; see whether both are one"


def _not_retrieved(case: _PaperCase) -> str:
    missed = case.missed
    if missed.is_review:
        return "it is a Cochrane review itself: search with --exclude-reviews=false"
    if missed.rank is not None:
        return (
            f"it ranks {missed.rank} of all queries together: raise --max-candidates "
            f"({case.settings.max_candidates})"
        )
    if not missed.queries:
        again = _UNASKED.get(case.rebuilt_review.skip) or _retry_hint(
            case.rebuilt_review.skip
        )
        return f"no search was run: {again}"
    return "; ".join(_query_reason(query, case.settings) for query in missed.queries)


def _query_reason(missed: MissedByQuery, settings: ReviewBenchmarkSettings) -> str:
    """Return why a query did not find the paper."""
    if missed.rank is not None:
        reason = f"it ranks {missed.rank}: raise --top-k ({settings.top_k})"
    elif missed.unmet:
        groups = (f"({' | '.join(group)})" for group in missed.unmet)
        reason = f"its text has nothing of {', '.join(groups)}"
    elif missed.unwanted:
        reason = f"its text has {', '.join(missed.unwanted)}, which it excludes"
    else:
        reason = "the years do not fit"
    return f"{missed.label or 'query'}: {reason}"


def _date_filtered(case: _PaperCase) -> str:
    years = case.review.date_range
    span = "" if years is None else f" {years[0]} to {years[1]}"
    return (
        f"it is of {case.missed.year}, and the review's years are{span}: correct them, "
        "or search with --use-date-range=false"
    )


def _unscored(case: _PaperCase) -> str:
    candidate = case.candidate
    assert candidate is not None  # noqa: S101 - guaranteed by the step
    if candidate.outcome == "failed":
        return f"its call failed: {_retry_hint(candidate.failure)}"
    if candidate.outcome == "unparsed":
        return f"its reply could not be read: {_retry_hint(candidate.failure)}"
    return _UNASKED[candidate.outcome]


def _retry_hint(reason: str) -> str:
    """Return the commands that repeat calls that failed for a reason."""
    return f"siftlog retry RUN --reason {reason}, then siftlog resume RUN"


_UNASKED: Mapping[str, str] = {
    "no_text": "the database has neither title nor abstract: import the record again",
    "too_long": "the prompt is too long: raise --max-prompt-tokens",
    "open": "not sent yet: siftlog resume RUN",
}


def _below_threshold(case: _PaperCase) -> str:
    candidate, settings = case.candidate, case.settings
    assert candidate is not None  # noqa: S101 - guaranteed by the step
    assert candidate.score is not None  # noqa: S101 - the same
    short = settings.least_score - candidate.score
    reason = f"its score {candidate.score:g} is {short:.3g} too low"
    return reason + _passing(
        case,
        "no threshold would pass the review",
        "the review passes from {} down, with a precision of {}",
    )


def _excluded(case: _PaperCase) -> str:
    reason = f"the agent has {case.document} among the excluded"
    score = None if case.candidate is None else case.candidate.score
    if score is None:
        return f"{reason}: see its rationale"
    reason = f"{reason}, with a score of {score:g}"
    return reason + _passing(
        case,
        "no threshold on its scores would pass the review",
        "included from {} up, the review would pass, with a precision of {}",
    )


def _passing(case: _PaperCase, never: str, passes: str) -> str:
    """Return the effect of another threshold, by one of two sentences."""
    step = passing_step(case.steps)
    if step is None:
        return f"; {never}"
    return f"; {passes.format(f'{step.threshold:g}', fixed(step.precision, '.1%'))}"


_RESOLUTIONS: Mapping[LostAt, Callable[[_PaperCase], str]] = {
    "not_in_database": _not_in_database,
    "near_miss_match": _near_miss_match,
    "claimed": _claimed,
    "not_retrieved": _not_retrieved,
    "date_filtered": _date_filtered,
    "unscored": _unscored,
    "below_threshold": _below_threshold,
    "excluded": _excluded,
}


SuspicionReason: TypeAlias = Literal["other_pmid", "other_year", "shared"]

YEARS = 1
"""Years by which a match may differ: in print, and online before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspiciousMatch:
    """A match that may be wrong, with the reason."""

    index: int  #: of the truth paper
    document: str
    reason: SuspicionReason
    message: str  #: without a full stop


def suspicious_matches(
    matches: Sequence[PaperMatch], rebuilt_review: RebuiltReview
) -> tuple[SuspiciousMatch, ...]:
    """Return title matches with other PMIDs or years, and records that are shared."""
    uses = Counter(match.document for match in matches if match.has_record)
    return tuple(
        SuspiciousMatch(
            index=match.index, document=match.document, reason=reason, message=message
        )
        for match in matches
        if match.has_record
        for reason, message in _reasons(match, rebuilt_review, uses[match.document])
    )


def _reasons(
    match: PaperMatch, rebuilt_review: RebuiltReview, uses: int
) -> Iterator[tuple[SuspicionReason, str]]:
    paper, record = match.paper, rebuilt_review.records[match.document]
    if match.method == "title_fuzzy":
        pmid, other = pmid_of(paper.pmid), pmid_of(record.pmid)
        if pmid and other and pmid != other:
            yield (
                "other_pmid",
                f"matched by its title; PMIDs differ: {pmid} and {other}",
            )
        if (
            paper.year is not None
            and record.year is not None
            and abs(paper.year - record.year) > YEARS
        ):
            yield (
                "other_year",
                f"matched by its title; years differ: {paper.year} and {record.year}",
            )
    if uses > 1:
        yield "shared", f"{match.document} is the record of {uses} studies"
