"""Computes the metrics of one agent, review by review and over all reviews.

Intervals are drawn by review, with the same draws for all metrics of a scoring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from jobs.kit.metrics import (
    NOT_NEGATIVE,
    Ratio,
    Resamples,
    aggregate,
    mean,
    mean_of,
    ratio,
    wilson,
    with_interval,
)
from jobs.review_benchmark.benchmark import (
    NONE,
    OverallStep,
    ReviewBenchmarkCounts,
    ThresholdStep,
    benchmark_otherwise,
    benchmark_review,
    served_by_replicate,
    sweep_overall,
    sweep_review,
)
from jobs.review_benchmark.data import Review
from jobs.review_benchmark.losses import (
    LOST_AT,
    PaperMatch,
    SuspiciousMatch,
    paper_matches,
    suspicious_matches,
)
from jobs.review_benchmark.matching import METHODS
from jobs.review_benchmark.rebuilt_reviews import RebuiltReview
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.scorecard import Metric, Target

MATCHED = (*METHODS.values(), NONE)
"""How a truth paper was matched, or that it was not."""


def agent_metrics(
    rebuilt: Mapping[str, RebuiltReview],
    benchmarks: Mapping[str, ReviewBenchmarkCounts],
    matches: Mapping[str, Sequence[PaperMatch]],
    settings: ReviewBenchmarkSettings,
    draws: Resamples,
) -> Iterator[Metric]:
    """All metrics of an agent; mappings are by review, ascending."""
    every = list(benchmarks.values())
    yield from _passed(every, settings)
    yield from _macro(every, settings, draws)
    yield from _micro(every, draws)
    yield from _counts(every)
    yield from _lost(matches, sum(benchmark.truth for benchmark in every))
    yield from _replicates(rebuilt)
    for review, benchmark in benchmarks.items():
        yield from _review(review, benchmark)


def _passed(
    every: Sequence[ReviewBenchmarkCounts], settings: ReviewBenchmarkSettings
) -> Iterator[Metric]:
    passed = sum(benchmark.passes(settings.target_recall) for benchmark in every)
    ends = wilson(passed, len(every), settings.level)
    yield Metric(
        path="passed",
        value=passed,
        n=len(every),
        definition=f"passed@1(reviews with recall >= {settings.target_recall:g})",
    )
    yield Metric(
        path="passed_rate",
        value=ratio(passed, len(every)),
        n=len(every),
        lo=ends.lo,
        hi=ends.hi,
        definition=f"passed_rate@1(passed / reviews; Wilson, level={settings.level})",
    )


def _macro(
    every: Sequence[ReviewBenchmarkCounts],
    settings: ReviewBenchmarkSettings,
    draws: Resamples,
) -> Iterator[Metric]:
    columns: Mapping[str, Sequence[float | None]] = {
        "recall": [benchmark.recall for benchmark in every],
        "precision": [benchmark.precision for benchmark in every],
        "ceiling": [benchmark.ceiling for benchmark in every],
        "retrieval_recall": [benchmark.retrieval_recall for benchmark in every],
        "screening_recall": [benchmark.screening_recall for benchmark in every],
        "recall_distinct": [benchmark.recall_distinct for benchmark in every],
    }
    ends = draws.intervals([mean_of(values) for values in columns.values()])
    for (name, values), interval in zip(columns.items(), ends, strict=True):
        summary = aggregate(values)
        target = Target(sense=">=", bound=settings.target_recall)
        yield Metric(
            path=f"macro.{name}",
            value=summary.mean,
            n=summary.n,
            n_defined=summary.n_defined,
            lo=interval.lo,
            hi=interval.hi,
            mean=summary.mean,
            std=summary.std,
            definition=with_interval(f"{name}@1(mean over reviews)", interval),
            target=target if name == "recall" else None,
        )
        for word, value in (("median", summary.median), ("min", summary.min)):
            if name in {"recall", "precision"}:
                yield Metric(
                    path=f"{word}.{name}",
                    value=value,
                    n=summary.n,
                    n_defined=summary.n_defined,
                    definition=f"{name}@1({word} over reviews)",
                )


def _micro(
    every: Sequence[ReviewBenchmarkCounts], draws: Resamples
) -> Iterator[Metric]:
    truth = [benchmark.truth for benchmark in every]
    included = [benchmark.found_and_included for benchmark in every]
    sums = {
        "recall": Ratio(included, truth),
        "precision": Ratio(
            [benchmark.credited for benchmark in every],
            [benchmark.included_rows for benchmark in every],
        ),
        "ceiling": Ratio([benchmark.found for benchmark in every], truth),
        "retrieval_recall": Ratio([benchmark.retrieved for benchmark in every], truth),
        "screening_recall": Ratio(
            included, [benchmark.retrieved for benchmark in every]
        ),
        "nnr": Ratio(
            [benchmark.included_rows for benchmark in every],
            [benchmark.right_rows for benchmark in every],
            NOT_NEGATIVE,
        ),
    }
    ends = draws.intervals(list(sums.values()))
    for (name, pooled), interval in zip(sums.items(), ends, strict=True):
        over = int(sum(pooled.denominators))
        yield Metric(
            path=f"micro.{name}",
            value=ratio(sum(pooled.numerators), over),
            n=over,
            lo=interval.lo,
            hi=interval.hi,
            definition=with_interval(f"{name}@1(pooled over reviews)", interval),
        )


def _counts(every: Sequence[ReviewBenchmarkCounts]) -> Iterator[Metric]:
    methods: Counter[str] = Counter()
    for benchmark in every:
        methods.update(benchmark.methods)
    truth = sum(benchmark.truth for benchmark in every)
    numbers = {
        "reviews": len(every),
        "truth": truth,
        "included": sum(benchmark.included_rows for benchmark in every),
        "found": sum(benchmark.found for benchmark in every),
        "found_and_included": sum(benchmark.found_and_included for benchmark in every),
        "not_found": sum(benchmark.not_found for benchmark in every),
        "found_but_excluded": sum(benchmark.found_but_excluded for benchmark in every),
        **{f"method.{name}": methods[name] for name in MATCHED},
    }
    for name, value in numbers.items():
        yield Metric(
            path=f"count.{name}", value=value, n=truth, definition=f"count@1({name})"
        )


def _lost(matches: Mapping[str, Sequence[PaperMatch]], truth: int) -> Iterator[Metric]:
    lost = Counter(
        match.lost_at for review_matches in matches.values() for match in review_matches
    )
    for step in LOST_AT:
        yield Metric(
            path=f"lost.{step}",
            value=lost[step],
            n=truth,
            definition=f"count@1(truth papers lost: {step})",
        )


def _replicates(rebuilt: Mapping[str, RebuiltReview]) -> Iterator[Metric]:
    """Each replicate alone, where there are several."""
    number = max(
        (
            len(candidate.votes)
            for rebuilt_review in rebuilt.values()
            for candidate in rebuilt_review.candidates
        ),
        default=0,
    )
    for replicate in range(number) if number > 1 else ():
        recall = aggregate(
            served_by_replicate(rebuilt_review, replicate) / len(rebuilt_review.hits)
            for rebuilt_review in rebuilt.values()
        )
        yield Metric(
            path=f"replicate.{replicate + 1}.recall",
            value=recall.mean,
            n=recall.n,
            definition="recall@1(mean over reviews; one replicate by itself)",
        )


def _review(review: str, benchmark: ReviewBenchmarkCounts) -> Iterator[Metric]:
    rates: Sequence[tuple[str, float | None, int]] = (
        ("recall", benchmark.recall, benchmark.truth),
        ("precision", benchmark.precision, benchmark.included_rows),
        ("ceiling", benchmark.ceiling, benchmark.truth),
        ("retrieval_recall", benchmark.retrieval_recall, benchmark.truth),
        ("screening_recall", benchmark.screening_recall, benchmark.retrieved),
        ("recall_distinct", benchmark.recall_distinct, benchmark.truth),
        ("nnr", benchmark.nnr, benchmark.right_rows),
    )
    for name, value, n in rates:
        yield Metric(
            path=f"review.{review}.{name}",
            value=value,
            n=n,
            definition=f"{name}@1(one review)",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPoint:
    """What the first candidates hold of a review's truth papers."""

    n_candidates: int  #: candidates, in the fused order
    retrieved: int
    truth: int

    @property
    def recall(self) -> float:
        """Truth papers among them, of all."""
        return self.retrieved / self.truth


def retrieval_curve(rebuilt_review: RebuiltReview) -> tuple[RetrievalPoint, ...]:
    """The points at which recall rises, and the end of the list."""
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
    """Candidates kept, and the mean recall over reviews; a list that ends stays."""
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
class ReviewDraws:
    """One sequence of draws for each set of reviews, made when it is asked for."""

    settings: ReviewBenchmarkSettings
    _cache: dict[tuple[str, ...], Resamples] = field(default_factory=dict, repr=False)

    def of(self, reviews: tuple[str, ...]) -> Resamples:
        """The draws of some reviews."""
        draws = self._cache.get(reviews)
        if draws is None:
            settings = self.settings
            draws = self._cache[reviews] = Resamples(
                reviews,
                settings.boot_b,
                settings.boot_seed,
                level=settings.level,
                cluster="review",
                form=settings.interval,
            )
        return draws


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResults:
    """One agent, measured. Mappings are by review, ascending."""

    model: str
    rebuilt: Mapping[str, RebuiltReview]
    benchmarks: Mapping[str, ReviewBenchmarkCounts]
    otherwise: Mapping[str, ReviewBenchmarkCounts]
    """Under the other value of `autojunk`; reviews in which it makes a difference."""
    matches: Mapping[str, tuple[PaperMatch, ...]]  #: in the order of the truth
    suspicious: Mapping[str, tuple[SuspiciousMatch, ...]]
    steps: Mapping[str, tuple[ThresholdStep, ...]]  #: a threshold each, falling
    overall: tuple[OverallStep, ...]  #: a threshold each, falling; over reviews
    curves: Mapping[
        str, tuple[RetrievalPoint, ...]
    ]  #: none of an import, which has no ranks
    metrics: tuple[Metric, ...]

    def lost(self, review: str) -> tuple[PaperMatch, ...]:
        """The truth papers of a review that were not included."""
        return tuple(
            match for match in self.matches[review] if match.lost_at is not None
        )

    def by_path(self) -> Mapping[str, Metric]:
        """The metrics by path."""
        return {metric.path: metric for metric in self.metrics}


def measure_agent(
    model: str,
    every: Sequence[RebuiltReview],
    reviews: Mapping[str, Review],
    settings: ReviewBenchmarkSettings,
    draws: ReviewDraws,
) -> AgentResults:
    """Measure an agent.

    Args:
        model: its name.
        every: what it made of the reviews, ascending by id.
        reviews: by id.
        settings: of the run.
        draws: for intervals.
    """
    rebuilt = {rebuilt_review.review: rebuilt_review for rebuilt_review in every}
    benchmarks = {
        review: benchmark_review(rebuilt_review, settings.precision)
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
    return AgentResults(
        model=model,
        rebuilt=rebuilt,
        benchmarks=benchmarks,
        otherwise={
            review: other
            for review, rebuilt_review in rebuilt.items()
            if (other := benchmark_otherwise(rebuilt_review, settings.precision))
            is not None
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
        metrics=tuple(
            agent_metrics(
                rebuilt, benchmarks, matches, settings, draws.of(tuple(rebuilt))
            )
        ),
    )
