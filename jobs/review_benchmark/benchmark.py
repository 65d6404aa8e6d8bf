"""Measures how much of a review's ground truth an agent rebuilt, at every threshold.

As the threshold falls, papers are included one by one: one sort of the scores, and no
new call. A truth paper has a record as soon as one that serves it is included; of
several, the record is the one that ranks first, as in a new scoring of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from jobs.kit.metrics import mean, ratio
from jobs.review_benchmark.matching import ClaimMatching, MatchedPapers
from jobs.review_benchmark.rebuilt_reviews import RebuiltReview
from jobs.review_benchmark.settings import Precision, ReviewBenchmarkSettings
from runner.evaluation import STAYS

NONE = "null"
"""Method of a truth paper without a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewBenchmarkCounts:
    """Counts of matches and decisions; they count truth papers or rows."""

    truth: int
    included_rows: int  #: rows of the list of included papers, with duplicates
    found: int  #: truth papers with a record
    found_and_included: int
    right_rows: int  #: included rows that are the record of a truth paper
    credited: int  #: numerator of precision: right rows, unless set otherwise
    documents: int  #: distinct records that are matched
    distinct: int  #: truth papers included, if a record may serve only one
    retrieved: int  #: truth papers whose record is a candidate
    methods: Mapping[str, int] = field(metadata=STAYS)
    """Truth papers by method of matching; `null`: not matched."""

    @property
    def not_found(self) -> int:
        """Number of truth papers without a record."""
        return self.truth - self.found

    @property
    def found_but_excluded(self) -> int:
        """Number of truth papers whose record is not included."""
        return self.found - self.found_and_included

    @property
    def recall(self) -> float:
        """Share of truth papers that were included."""
        return self.found_and_included / self.truth

    @property
    def recall_distinct(self) -> float:
        """Recall, if a record may serve only one truth paper."""
        return self.distinct / self.truth

    @property
    def precision(self) -> float | None:
        """Share of included rows that are truth papers; None if no row is included."""
        return ratio(self.credited, self.included_rows)

    @property
    def nnr(self) -> float | None:
        """Number needed to read: included rows for each that is a truth paper."""
        return ratio(self.included_rows, self.right_rows)

    @property
    def ceiling(self) -> float:
        """Recall of a perfect screening of the records."""
        return self.found / self.truth

    @property
    def retrieval_recall(self) -> float:
        """Share of truth papers that became candidates."""
        return self.retrieved / self.truth

    @property
    def screening_recall(self) -> float | None:
        """Share of the truth papers among the candidates that were included."""
        return ratio(self.found_and_included, self.retrieved)

    def passes(self, target: float) -> bool:
        """Return whether recall reaches *target*; one of 1 compares whole numbers."""
        return passes(self.found_and_included, self.truth, target)


def passes(included: int, truth: int, target: float) -> bool:
    """Return whether *included* of the truth papers are enough."""
    return included == truth if target == 1.0 else included / truth >= target


CREDITED: Mapping[Precision, Callable[[int, int], int]] = {
    "rows": lambda right_rows, _: right_rows,
    "gt_over_included": lambda _, papers: papers,
}
"""Numerator of precision, from right rows and truth papers included."""


def benchmark_review(
    rebuilt_review: RebuiltReview, matched: MatchedPapers, precision: Precision
) -> ReviewBenchmarkCounts:
    """Count an agent's matches and decisions for a review.

    Args:
        rebuilt_review: with its decisions.
        matched: its matches, or those under the other value of `autojunk`.
        precision: selects the numerator of precision.
    """
    hits = matched.hits
    included = frozenset(rebuilt_review.included)
    offered = frozenset(candidate.document for candidate in rebuilt_review.candidates)
    matched_documents = [
        rebuilt_review.documents[hit.index] for hit in hits if hit is not None
    ]
    right = {document for document in matched_documents if document in included}
    right_rows = sum(document in right for document in rebuilt_review.included)
    n_included = sum(document in included for document in matched_documents)
    return ReviewBenchmarkCounts(
        truth=len(hits),
        included_rows=len(rebuilt_review.included),
        found=len(matched_documents),
        found_and_included=n_included,
        right_rows=right_rows,
        credited=CREDITED[precision](right_rows, n_included),
        documents=len(set(matched_documents)),
        distinct=_distinct(rebuilt_review),
        retrieved=sum(document in offered for document in matched_documents),
        methods=Counter(NONE if hit is None else hit.method for hit in hits),
    )


def served_by_replicate(rebuilt_review: RebuiltReview, replicate: int) -> int:
    """Count the truth papers that a single replicate would include.

    Replicates are numbered from 0.
    """
    included = {
        candidate.document
        for candidate in rebuilt_review.candidates
        if candidate.votes[replicate]
    }
    return sum(
        any(rebuilt_review.documents[hit.index] in included for hit in hits)
        for hits in rebuilt_review.matched.serving
    )


def _distinct(rebuilt_review: RebuiltReview) -> int:
    included = frozenset(rebuilt_review.included)
    claims = ClaimMatching(rebuilt_review.matched.claimable)
    for index, document in sorted(rebuilt_review.documents.items()):
        if document in included:
            claims.add(index)
    return len(claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdStep:
    """Results of a review at one threshold."""

    threshold: float  #: an occurring score; papers with at least this are included
    truth: int
    included_rows: int
    found_and_included: int
    credited: int  #: numerator of precision
    passed: bool

    @property
    def recall(self) -> float:
        """Share of truth papers that would be included."""
        return self.found_and_included / self.truth

    @property
    def precision(self) -> float | None:
        """Share of included rows that would be truth papers."""
        return ratio(self.credited, self.included_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallStep:
    """Results over reviews at one threshold."""

    threshold: float
    reviews: int
    passed: int
    included_rows: int
    recall: float | None  #: mean over reviews
    precision: float | None  #: mean over reviews that include anything
    micro_recall: float | None
    micro_precision: float | None


def sweep_review(
    rebuilt_review: RebuiltReview, settings: ReviewBenchmarkSettings
) -> tuple[ThresholdStep, ...]:
    """Return a step for each distinct score, falling.

    Papers without a score are unaffected: included or not by the settings, or as in
    their file.
    """
    served = (_Claimed if settings.unique_claims else _Shared)(rebuilt_review)
    rows: Counter[str] = Counter()
    steps = []
    scored = sorted(
        (
            (candidate.score, candidate.document)
            for candidate in rebuilt_review.candidates
            if candidate.score is not None
        ),
        key=lambda pair: -pair[0],
    )
    for candidate in rebuilt_review.candidates:
        if candidate.score is None and candidate.included:
            rows[candidate.document] += 1
            served.add(candidate.document)
    for score, group in groupby(scored, key=lambda pair: pair[0]):
        for _, document in group:
            rows[document] += 1
            served.add(document)
        right_rows = sum(rows[document] for document in served.documents)
        steps.append(
            ThresholdStep(
                threshold=score,
                truth=len(rebuilt_review.hits),
                included_rows=rows.total(),
                found_and_included=served.papers,
                credited=CREDITED[settings.precision](right_rows, served.papers),
                passed=passes(
                    served.papers, len(rebuilt_review.hits), settings.target_recall
                ),
            )
        )
    return tuple(steps)


def passing_step(steps: Sequence[ThresholdStep]) -> ThresholdStep | None:
    """Return the step of the highest threshold at which the review passes, if any."""
    return next((step for step in steps if step.passed), None)


def sweep_overall(
    every: Mapping[str, Sequence[ThresholdStep]], truth: Mapping[str, int]
) -> Iterator[OverallStep]:
    """Yield a step for each distinct score of any review, falling.

    A review counts from its highest score on: above it, nothing is included.

    Args:
        every: the steps of each review.
        truth: number of truth papers of each review.
    """
    now: dict[str, ThresholdStep | None] = dict.fromkeys(every)
    moves = sorted(
        (
            (step.threshold, review, step)
            for review, steps in every.items()
            for step in steps
        ),
        key=lambda move: (-move[0], move[1]),
    )
    for threshold, group in groupby(moves, key=lambda move: move[0]):
        now |= {review: step for _, review, step in group}
        yield _overall(threshold, now, truth)


def _overall(
    threshold: float,
    now: Mapping[str, ThresholdStep | None],
    truth: Mapping[str, int],
) -> OverallStep:
    steps = [step for step in now.values() if step is not None]
    papers = sum(step.found_and_included for step in steps)
    rows = sum(step.included_rows for step in steps)
    return OverallStep(
        threshold=threshold,
        reviews=len(now),
        passed=sum(step.passed for step in steps),
        included_rows=rows,
        recall=mean(0.0 if step is None else step.recall for step in now.values()),
        precision=mean(step.precision for step in steps),
        micro_recall=ratio(papers, sum(truth.values())),
        micro_precision=ratio(sum(step.credited for step in steps), rows),
    )


class _Shared:
    """Truth papers with an included record, if a record may serve several of them."""

    def __init__(self, rebuilt_review: RebuiltReview) -> None:
        self._rank: dict[str, int] = {}
        for candidate in rebuilt_review.candidates:
            self._rank.setdefault(candidate.document, candidate.rank)
        self._serves: dict[str, list[int]] = {}
        for paper, hits in enumerate(rebuilt_review.matched.serving):
            for document in dict.fromkeys(
                rebuilt_review.documents[hit.index] for hit in hits
            ):
                self._serves.setdefault(document, []).append(paper)
        self._chosen: dict[int, str] = {}

    @property
    def documents(self) -> Collection[str]:
        """Records that serve a truth paper."""
        return set(self._chosen.values())

    @property
    def papers(self) -> int:
        """Number of truth papers with a record."""
        return len(self._chosen)

    def add(self, document: str) -> None:
        """Include a document; it may be added again."""
        for paper in self._serves.get(document, ()):
            best = self._chosen.get(paper)
            if best is None or self._rank[document] < self._rank[best]:
                self._chosen[paper] = document


class _Claimed:
    """Truth papers with an included record, if a record may serve only one of them."""

    def __init__(self, rebuilt_review: RebuiltReview) -> None:
        self._documents = rebuilt_review.documents
        self._claims = ClaimMatching(rebuilt_review.matched.claimable)
        self._indices: dict[str, list[int]] = {}
        for index, document in rebuilt_review.documents.items():
            self._indices.setdefault(document, []).append(index)

    @property
    def documents(self) -> Collection[str]:
        return {self._documents[index] for index in self._claims.matched_indices}

    @property
    def papers(self) -> int:
        return len(self._claims)

    def add(self, document: str) -> None:
        for index in self._indices.get(document, ()):
            self._claims.add(index)


def percent(target: float) -> str:
    """Format a target with all its digits: 99.5% is not 100%."""
    return f"{100 * target:g}%"


def failure_reasons(
    benchmark: ReviewBenchmarkCounts, settings: ReviewBenchmarkSettings
) -> Iterator[str]:
    """Yield the reasons in a fixed order; none if nothing was lost."""
    target = settings.target_recall
    if settings.recall_line and not benchmark.passes(target):
        yield f"Recall {benchmark.recall:.1%} below target {percent(target)}"
    if benchmark.not_found:
        yield f"{benchmark.not_found} ground truth paper(s) not found in database"
    if benchmark.found_but_excluded:
        yield (
            f"{benchmark.found_but_excluded} ground truth paper(s) found but not "
            "included"
        )
