"""Computes the metrics of one agent, review by review and over all reviews.

Intervals are drawn by review, with the same draws for all metrics of a scoring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeAlias

from jobs.kit.measurements import (
    MeasuredValue,
    Measurement,
    count,
    counts,
    mean_over,
    wilson_share,
    with_intervals,
)
from jobs.kit.measures import (
    ComputedMeasure,
    RateMeasure,
    ValueMeasure,
    measured,
)
from jobs.kit.metrics import NOT_NEGATIVE, Ratio, Resamples, aggregate, mean
from jobs.review_benchmark.benchmark import (
    NONE,
    OverallStep,
    ReviewBenchmarkCounts,
    ThresholdStep,
    benchmark_review,
    served_by_replicate,
    sweep_overall,
    sweep_review,
)
from jobs.review_benchmark.data import Review
from jobs.review_benchmark.losses import (
    LOST_AT,
    LostAt,
    PaperMatch,
    SuspiciousMatch,
    paper_matches,
    suspicious_matches,
)
from jobs.review_benchmark.matching import METHODS
from jobs.review_benchmark.rebuilt_reviews import RebuiltReview
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.evaluation import KEYS_STAY, STAYS
from runner.scorecard import Metric, Target

MATCHED = (*METHODS.values(), NONE)
"""Values of a truth paper's match method, including "not matched"."""


Benchmarks: TypeAlias = Sequence[ReviewBenchmarkCounts]
"""Counts of an agent, one per review."""


RATES: Mapping[str, RateMeasure[Benchmarks]] = {
    "recall": RateMeasure(
        "Recall",
        "Share of a review's included studies that were found and included",
        "higher",
        of=lambda every: Ratio.of(every, lambda r: (r.found_and_included, r.truth)),
    ),
    "precision": RateMeasure(
        "Precision",
        "Share of the included papers that the review includes too",
        "higher",
        of=lambda every: Ratio.of(every, lambda r: (r.credited, r.included_rows)),
    ),
    "ceiling": RateMeasure(
        "Recall ceiling",
        "Share of a review's studies that the searched papers contain at all",
        of=lambda every: Ratio.of(every, lambda r: (r.found, r.truth)),
    ),
    "retrieval_recall": RateMeasure(
        "Retrieval recall",
        "Share of a review's studies that the search offers",
        "higher",
        of=lambda every: Ratio.of(every, lambda r: (r.retrieved, r.truth)),
    ),
    "screening_recall": RateMeasure(
        "Screening recall",
        "Share of the offered studies that were included",
        "higher",
        of=lambda every: Ratio.of(every, lambda r: (r.found_and_included, r.retrieved)),
    ),
    "recall_distinct": RateMeasure(
        "Recall of distinct studies",
        "Recall with a study that the review lists twice counted once",
        "higher",
        of=lambda every: Ratio.of(every, lambda r: (r.distinct, r.truth)),
    ),
    "nnr": RateMeasure(
        "Number needed to read",
        "Included papers for each one that the review includes too",
        "lower",
        of=lambda every: Ratio.of(
            every, lambda r: (r.included_rows, r.right_rows), NOT_NEGATIVE
        ),
    ),
}

MACRO = {key: rate for key, rate in RATES.items() if key != "nnr"}
MICRO = {key: rate for key, rate in RATES.items() if key != "recall_distinct"}

PASSED: Mapping[str, ComputedMeasure] = {
    "passed": ComputedMeasure(
        "Reviews passed",
        "Reviews whose recall reaches the target",
        "higher",
        definition="passed@1(reviews with recall >= {over})",
    ),
    "passed_rate": ComputedMeasure(
        "Share of reviews passed",
        "Share of reviews whose recall reaches the target",
        "higher",
        definition="passed_rate@1(passed / reviews; Wilson, level={over})",
    ),
}


def _truth(every: Benchmarks) -> int:
    return sum(counted.truth for counted in every)


COUNTS: Mapping[str, ValueMeasure[Benchmarks]] = {
    "reviews": ValueMeasure(
        "Reviews",
        "Number of reviews",
        of=lambda every: count(len(every), _truth(every)),
    ),
    "truth": ValueMeasure(
        "Studies of the truth",
        "Studies that the reviews include",
        of=lambda every: count(sum(r.truth for r in every), _truth(every)),
    ),
    "included": ValueMeasure(
        "Included papers",
        "Papers that the agent includes",
        of=lambda every: count(sum(r.included_rows for r in every), _truth(every)),
    ),
    "found": ValueMeasure(
        "Studies found",
        "Studies of the truth that the searched papers contain",
        of=lambda every: count(sum(r.found for r in every), _truth(every)),
    ),
    "found_and_included": ValueMeasure(
        "Studies found and included",
        "Studies of the truth that were found and included",
        "higher",
        of=lambda every: count(sum(r.found_and_included for r in every), _truth(every)),
    ),
    "not_found": ValueMeasure(
        "Studies not found",
        "Studies of the truth that the searched papers lack or that do not match",
        "lower",
        of=lambda every: count(sum(r.not_found for r in every), _truth(every)),
    ),
    "found_but_excluded": ValueMeasure(
        "Studies found but not included",
        "Studies of the truth that were found and not included",
        "lower",
        of=lambda every: count(sum(r.found_but_excluded for r in every), _truth(every)),
    ),
    "method.{method}": ValueMeasure(
        "Studies matched by {method}",
        "Studies of the truth that match by {method}",
        of=lambda every: counts(
            {name: sum(r.methods.get(name, 0) for r in every) for name in MATCHED},
            _truth(every),
        ),
    ),
}

_LOST: Mapping[LostAt, tuple[str, str]] = {
    "not_in_database": ("not in the database", "which the searched papers lack"),
    "near_miss_match": ("near miss", "whose nearest paper is not near enough"),
    "claimed": ("claimed by another study", "whose paper another study has taken"),
    "not_retrieved": ("not retrieved", "which the search did not offer"),
    "date_filtered": ("filtered by date", "which the range of dates leaves out"),
    "unscored": ("unscored", "which have no readable score"),
    "below_threshold": ("below the threshold", "whose score is below the threshold"),
    "excluded": ("excluded", "which were excluded"),
}
"""Name of the step that lost a study, and a clause for the studies lost there."""

LOST: Mapping[LostAt, ComputedMeasure] = {
    step: ComputedMeasure(
        f"Studies lost, {name}",
        f"Studies of the truth {which}",
        "lower",
        definition=f"count@1(truth papers lost: {step})",
    )
    for step, (name, which) in _LOST.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCounts:
    """The counts from which an agent's metrics are computed, by review, ascending."""

    benchmarks: Mapping[str, ReviewBenchmarkCounts] = field(metadata=KEYS_STAY)
    lost_at: Mapping[str, Sequence[LostAt | None]] = field(metadata=STAYS)
    """By truth paper; None: it was included."""
    offered: Mapping[str, int] = field(metadata=KEYS_STAY)  #: candidates
    included: Mapping[str, int] = field(metadata=KEYS_STAY)  #: of these
    served: Mapping[str, Sequence[int]] = field(metadata=KEYS_STAY)
    """Truth papers that each replicate would include; empty without replicates."""

    @classmethod
    def of(
        cls,
        rebuilt: Mapping[str, RebuiltReview],
        benchmarks: Mapping[str, ReviewBenchmarkCounts],
        matches: Mapping[str, Sequence[PaperMatch]],
    ) -> AgentCounts:
        """Count the results of an agent's reviews."""
        replicates = max(
            (
                len(candidate.votes)
                for rebuilt_review in rebuilt.values()
                for candidate in rebuilt_review.candidates
            ),
            default=0,
        )
        return cls(
            benchmarks=benchmarks,
            lost_at={
                review: [match.lost_at for match in review_matches]
                for review, review_matches in matches.items()
            },
            offered={
                review: len(rebuilt_review.candidates)
                for review, rebuilt_review in rebuilt.items()
            },
            included={
                review: sum(one.included for one in rebuilt_review.candidates)
                for review, rebuilt_review in rebuilt.items()
            },
            served={
                review: [
                    served_by_replicate(rebuilt_review, replicate)
                    for replicate in range(replicates)
                ]
                for review, rebuilt_review in rebuilt.items()
                if replicates > 1
            },
        )


def agent_metrics(
    counted: AgentCounts,
    settings: ReviewBenchmarkSettings,
    draws: Callable[[tuple[str, ...]], Resamples],
) -> Iterator[Metric]:
    """Return all metrics of an agent, with intervals."""
    every = list(counted.benchmarks.values())
    return with_intervals(
        (
            *_passed(every, settings),
            *_macro(every, settings),
            *measured(MICRO, every, path="micro.", over="pooled over reviews"),
            *measured(COUNTS, every, path="count."),
            *_lost(counted, _truth(every)),
            *_replicates(counted),
            *_by_review(counted.benchmarks),
        ),
        draws(tuple(counted.benchmarks)),
    )


def _passed(
    every: Benchmarks, settings: ReviewBenchmarkSettings
) -> Iterator[Measurement]:
    k, n = sum(r.passes(settings.target_recall) for r in every), len(every)
    for (key, measure), value, over in zip(
        PASSED.items(),
        (count(k, n), wilson_share(k, n, settings.level)),
        (f"{settings.target_recall:g}", f"{settings.level}"),
        strict=True,
    ):
        yield measure.measurement(key, value, over=over)


def _macro(
    every: Benchmarks, settings: ReviewBenchmarkSettings
) -> Iterator[Measurement]:
    target = Target(sense=">=", bound=settings.target_recall)
    for key, rate in MACRO.items():
        values = rate.of(every).by_cluster()
        mean = rate.measurement(
            key, mean_over(values), path="macro.", over="mean over reviews"
        )
        yield replace(mean, target=target if key == "recall" else None)
        summary = aggregate(values)
        for word, value in (("median", summary.median), ("min", summary.min)):
            if key in {"recall", "precision"}:
                yield rate.measurement(
                    key,
                    MeasuredValue(
                        value=value, n=summary.n, n_defined=summary.n_defined
                    ),
                    path=f"{word}.",
                    over=f"{word} over reviews",
                )


def _lost(counted: AgentCounts, truth: int) -> Iterator[Measurement]:
    lost = Counter(step for steps in counted.lost_at.values() for step in steps)
    for step in LOST_AT:
        yield LOST[step].measurement(step, count(lost[step], truth), path="lost.")


def _replicates(counted: AgentCounts) -> Iterator[Measurement]:
    """Yield the recall of each single replicate, if there are several."""
    columns = zip(*counted.served.values(), strict=True)
    for replicate, served in enumerate(columns, start=1):
        recall = aggregate(
            n / counted.benchmarks[review].truth
            for review, n in zip(counted.served, served, strict=True)
        )
        yield RATES["recall"].measurement(
            "recall",
            count(recall.mean, recall.n),
            path=f"replicate.{replicate}.",
            over="mean over reviews; one replicate by itself",
        )


def _by_review(
    benchmarks: Mapping[str, ReviewBenchmarkCounts],
) -> Iterator[Measurement]:
    for review, counted in benchmarks.items():
        for key, rate in RATES.items():
            of = rate.of([counted])
            value = count(of.value, of.n)
            path = f"review.{review}."
            yield rate.measurement(key, value, path=path, over="one review")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPoint:
    """Number of a review's truth papers among the first candidates."""

    n_candidates: int  #: candidates, in the fused order
    retrieved: int
    truth: int

    @property
    def recall(self) -> float:
        """Share of the truth papers that are among them."""
        return self.retrieved / self.truth


def retrieval_curve(rebuilt_review: RebuiltReview) -> tuple[RetrievalPoint, ...]:
    """Return the points at which recall rises, and the end of the list."""
    rank = {
        candidate.document: candidate.rank
        for candidate in reversed(rebuilt_review.candidates)
    }
    ranks = []
    for hits in rebuilt_review.matched.serving:
        served = [rank.get(rebuilt_review.documents[hit.index]) for hit in hits]
        first = min(
            (candidate_rank for candidate_rank in served if candidate_rank is not None),
            default=None,
        )
        if first is not None:
            ranks.append(first)
    ranks.sort()
    points = {
        n_candidates: retrieved for retrieved, n_candidates in enumerate(ranks, start=1)
    }
    points[len(rebuilt_review.candidates)] = len(ranks)
    return tuple(
        RetrievalPoint(
            n_candidates=n_candidates,
            retrieved=retrieved,
            truth=len(rebuilt_review.hits),
        )
        for n_candidates, retrieved in points.items()
    )


def mean_curve(
    every: Mapping[str, Sequence[RetrievalPoint]],
) -> Iterator[tuple[int, float | None]]:
    """Yield the number of candidates and the mean recall over reviews.

    A review whose list has ended keeps its last recall.
    """
    now = dict.fromkeys(every, 0.0)
    moves = sorted(
        (point.n_candidates, review, point.recall)
        for review, points in every.items()
        for point in points
    )
    for n_candidates, group in groupby(moves, key=lambda move: move[0]):
        now |= {review: recall for _, review, recall in group}
        yield n_candidates, mean(now.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResults:
    """Metrics and details of one agent; mappings are by review, ascending."""

    model: str
    counts: AgentCounts
    rebuilt: Mapping[str, RebuiltReview]
    benchmarks: Mapping[str, ReviewBenchmarkCounts]
    otherwise: Mapping[str, ReviewBenchmarkCounts]
    """Counts under the other value of `autojunk`, of reviews in which it differs."""
    matches: Mapping[str, tuple[PaperMatch, ...]]  #: in the order of the truth
    suspicious: Mapping[str, tuple[SuspiciousMatch, ...]]
    steps: Mapping[str, tuple[ThresholdStep, ...]]  #: one per threshold, falling
    overall: tuple[OverallStep, ...]  #: one per threshold, falling; over reviews
    curves: Mapping[
        str, tuple[RetrievalPoint, ...]
    ]  #: empty for an import, which has no ranks
    metrics: tuple[Metric, ...]

    def lost(self, review: str) -> tuple[PaperMatch, ...]:
        """Return the truth papers of a review that were not included."""
        return tuple(
            match for match in self.matches[review] if match.lost_at is not None
        )

    def by_path(self) -> Mapping[str, Metric]:
        """Return the metrics by path."""
        return {metric.path: metric for metric in self.metrics}


def measure_agent(
    model: str,
    every: Sequence[RebuiltReview],
    reviews: Mapping[str, Review],
    settings: ReviewBenchmarkSettings,
    draws: Callable[[tuple[str, ...]], Resamples],
) -> AgentResults:
    """Compute the results of an agent."""
    rebuilt = {rebuilt_review.review: rebuilt_review for rebuilt_review in every}
    benchmarks = {
        review: benchmark_review(
            rebuilt_review, rebuilt_review.matched, settings.precision
        )
        for review, rebuilt_review in rebuilt.items()
    }
    steps = {
        review: sweep_review(rebuilt_review, settings)
        for review, rebuilt_review in rebuilt.items()
    }
    matches = {
        review: paper_matches(reviews[review], rebuilt_review, steps[review], settings)
        for review, rebuilt_review in rebuilt.items()
    }
    truth = {review: benchmark.truth for review, benchmark in benchmarks.items()}
    counted = AgentCounts.of(rebuilt, benchmarks, matches)
    return AgentResults(
        model=model,
        counts=counted,
        rebuilt=rebuilt,
        benchmarks=benchmarks,
        otherwise={
            review: benchmark_review(
                rebuilt_review, rebuilt_review.otherwise, settings.precision
            )
            for review, rebuilt_review in rebuilt.items()
            if rebuilt_review.otherwise is not None
        },
        matches=matches,
        suspicious={
            review: suspicious_matches(matches[review], rebuilt_review)
            for review, rebuilt_review in rebuilt.items()
        },
        steps=steps,
        overall=tuple(sweep_overall(steps, truth)),
        curves={
            review: retrieval_curve(rebuilt_review)
            for review, rebuilt_review in rebuilt.items()
            if rebuilt_review.searches
        },
        metrics=tuple(agent_metrics(counted, settings, draws)),
    )
