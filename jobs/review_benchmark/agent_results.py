"""Computes the metrics of one agent, review by review and over all reviews.

Intervals are drawn by review, with the same draws for all metrics of a scoring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from jobs.metrics import (
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
    yield from _lost(matches, sum(own.truth for own in every))
    yield from _replicates(rebuilt)
    for review, own in benchmarks.items():
        yield from _review(review, own)


def _passed(
    every: Sequence[ReviewBenchmarkCounts], settings: ReviewBenchmarkSettings
) -> Iterator[Metric]:
    passed = sum(own.passes(settings.target_recall) for own in every)
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
        "recall": [own.recall for own in every],
        "precision": [own.precision for own in every],
        "ceiling": [own.ceiling for own in every],
        "retrieval_recall": [own.retrieval_recall for own in every],
        "screening_recall": [own.screening_recall for own in every],
        "recall_distinct": [own.recall_distinct for own in every],
    }
    ends = draws.intervals([mean_of(values) for values in columns.values()])
    for (name, values), own in zip(columns.items(), ends, strict=True):
        told = aggregate(values)
        target = Target(sense=">=", bound=settings.target_recall)
        yield Metric(
            path=f"macro.{name}",
            value=told.mean,
            n=told.n,
            n_defined=told.n_defined,
            lo=own.lo,
            hi=own.hi,
            mean=told.mean,
            std=told.std,
            definition=with_interval(f"{name}@1(mean over reviews)", own),
            target=target if name == "recall" else None,
        )
        for word, value in (("median", told.median), ("min", told.min)):
            if name in {"recall", "precision"}:
                yield Metric(
                    path=f"{word}.{name}",
                    value=value,
                    n=told.n,
                    n_defined=told.n_defined,
                    definition=f"{name}@1({word} over reviews)",
                )


def _micro(
    every: Sequence[ReviewBenchmarkCounts], draws: Resamples
) -> Iterator[Metric]:
    truth = [own.truth for own in every]
    included = [own.found_and_included for own in every]
    sums = {
        "recall": Ratio(included, truth),
        "precision": Ratio(
            [own.credited for own in every], [own.included_rows for own in every]
        ),
        "ceiling": Ratio([own.found for own in every], truth),
        "retrieval_recall": Ratio([own.retrieved for own in every], truth),
        "screening_recall": Ratio(included, [own.retrieved for own in every]),
        "nnr": Ratio(
            [own.included_rows for own in every],
            [own.right_rows for own in every],
            NOT_NEGATIVE,
        ),
    }
    ends = draws.intervals(list(sums.values()))
    for (name, pooled), own in zip(sums.items(), ends, strict=True):
        over = int(sum(pooled.denominators))
        yield Metric(
            path=f"micro.{name}",
            value=ratio(sum(pooled.numerators), over),
            n=over,
            lo=own.lo,
            hi=own.hi,
            definition=with_interval(f"{name}@1(pooled over reviews)", own),
        )


def _counts(every: Sequence[ReviewBenchmarkCounts]) -> Iterator[Metric]:
    methods: Counter[str] = Counter()
    for own in every:
        methods.update(own.methods)
    truth = sum(own.truth for own in every)
    numbers = {
        "reviews": len(every),
        "truth": truth,
        "included": sum(own.included_rows for own in every),
        "found": sum(own.found for own in every),
        "found_and_included": sum(own.found_and_included for own in every),
        "not_found": sum(own.not_found for own in every),
        "found_but_excluded": sum(own.found_but_excluded for own in every),
        **{f"method.{name}": methods[name] for name in MATCHED},
    }
    for name, value in numbers.items():
        yield Metric(
            path=f"count.{name}", value=value, n=truth, definition=f"count@1({name})"
        )


def _lost(matches: Mapping[str, Sequence[PaperMatch]], truth: int) -> Iterator[Metric]:
    lost = Counter(match.lost_at for own in matches.values() for match in own)
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
        (len(each.votes) for own in rebuilt.values() for each in own.candidates),
        default=0,
    )
    for replicate in range(number) if number > 1 else ():
        recall = aggregate(
            served_by_replicate(own, replicate) / len(own.hits)
            for own in rebuilt.values()
        )
        yield Metric(
            path=f"replicate.{replicate + 1}.recall",
            value=recall.mean,
            n=recall.n,
            definition="recall@1(mean over reviews; one replicate by itself)",
        )


def _review(review: str, own: ReviewBenchmarkCounts) -> Iterator[Metric]:
    rates: Sequence[tuple[str, float | None, int]] = (
        ("recall", own.recall, own.truth),
        ("precision", own.precision, own.included_rows),
        ("ceiling", own.ceiling, own.truth),
        ("retrieval_recall", own.retrieval_recall, own.truth),
        ("screening_recall", own.screening_recall, own.retrieved),
        ("recall_distinct", own.recall_distinct, own.truth),
        ("nnr", own.nnr, own.right_rows),
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

    kept: int  #: candidates, in the fused order
    retrieved: int
    truth: int

    @property
    def recall(self) -> float:
        """Truth papers among them, of all."""
        return self.retrieved / self.truth


def retrieval_curve(own: RebuiltReview) -> tuple[RetrievalPoint, ...]:
    """The points at which recall rises, and the end of the list."""
    rank = {each.document: each.rank for each in reversed(own.candidates)}
    ranks = []
    for hits in own.matched.serving:
        served = [rank.get(own.documents[hit.place]) for hit in hits]
        first = min((each for each in served if each is not None), default=None)
        if first is not None:
            ranks.append(first)
    ranks.sort()
    points = {kept: place for place, kept in enumerate(ranks, start=1)}
    points[len(own.candidates)] = len(ranks)
    return tuple(
        RetrievalPoint(kept=kept, retrieved=retrieved, truth=len(own.hits))
        for kept, retrieved in points.items()
    )


def mean_curve(
    every: Mapping[str, Sequence[RetrievalPoint]],
) -> Iterator[tuple[int, float | None]]:
    """Candidates kept, and the mean recall over reviews; a list that ends stays."""
    now = dict.fromkeys(every, 0.0)
    moves = sorted(
        (point.kept, review, point.recall)
        for review, own in every.items()
        for point in own
    )
    for kept, group in groupby(moves, key=lambda move: move[0]):
        now |= {review: recall for _, review, recall in group}
        yield kept, mean(now.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDraws:
    """One sequence of draws for each set of reviews, made when it is asked for."""

    settings: ReviewBenchmarkSettings
    _known: dict[tuple[str, ...], Resamples] = field(default_factory=dict, repr=False)

    def of(self, reviews: tuple[str, ...]) -> Resamples:
        """The draws of some reviews."""
        known = self._known.get(reviews)
        if known is None:
            settings = self.settings
            known = self._known[reviews] = Resamples(
                reviews,
                settings.boot_b,
                settings.boot_seed,
                level=settings.level,
                cluster="review",
                form=settings.interval,
            )
        return known


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
        return tuple(own for own in self.matches[review] if own.lost_at is not None)

    def by_path(self) -> Mapping[str, Metric]:
        """The metrics by path."""
        return {own.path: own for own in self.metrics}


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
    rebuilt = {own.review: own for own in every}
    benchmarks = {
        review: benchmark_review(own, settings.precision)
        for review, own in rebuilt.items()
    }
    steps = {review: sweep_review(own, settings) for review, own in rebuilt.items()}
    matches = {
        review: paper_matches(reviews[review], own, steps[review], settings)
        for review, own in rebuilt.items()
    }
    truth = {review: own.truth for review, own in benchmarks.items()}
    return AgentResults(
        model=model,
        rebuilt=rebuilt,
        benchmarks=benchmarks,
        otherwise={
            review: other
            for review, own in rebuilt.items()
            if (other := benchmark_otherwise(own, settings.precision)) is not None
        },
        matches=matches,
        suspicious={
            review: suspicious_matches(matches[review], own)
            for review, own in rebuilt.items()
        },
        steps=steps,
        overall=tuple(sweep_overall(steps, truth)),
        curves={
            review: retrieval_curve(own)
            for review, own in rebuilt.items()
            if own.searches
        },
        metrics=tuple(
            agent_metrics(
                rebuilt, benchmarks, matches, settings, draws.of(tuple(rebuilt))
            )
        ),
    )
