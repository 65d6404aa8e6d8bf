"""What one agent comes to, review by review and over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.review_benchmark.measuring.benchmark import (
    Benchmark,
    benchmarked,
    otherwise,
)
from jobs.review_benchmark.measuring.curve import Point, retrieval_curve
from jobs.review_benchmark.measuring.drawing import Draws
from jobs.review_benchmark.measuring.lost import PaperMatch, paper_matches
from jobs.review_benchmark.measuring.metrics import metrics
from jobs.review_benchmark.measuring.suspicious import Suspicious, suspicious
from jobs.review_benchmark.measuring.sweep import Overall, Step, overall, swept
from jobs.review_benchmark.rebuilt import Rebuilt
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.settings import Settings
from runner.scorecard import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One agent, measured. Mappings are by review, ascending."""

    model: str
    rebuilt: Mapping[str, Rebuilt]
    benchmarks: Mapping[str, Benchmark]
    otherwise: Mapping[str, Benchmark]
    """Under the other value of `autojunk`; reviews in which it makes a difference."""
    matches: Mapping[str, tuple[PaperMatch, ...]]  #: in the order of the truth
    suspicious: Mapping[str, tuple[Suspicious, ...]]
    steps: Mapping[str, tuple[Step, ...]]  #: a threshold each, falling
    overall: tuple[Overall, ...]  #: a threshold each, falling; over reviews
    curves: Mapping[str, tuple[Point, ...]]  #: none of an import, which has no ranks
    metrics: tuple[Metric, ...]

    def lost(self, review: str) -> tuple[PaperMatch, ...]:
        """The truth papers of a review that were not included."""
        return tuple(own for own in self.matches[review] if own.lost_at is not None)

    def by_path(self) -> Mapping[str, Metric]:
        """The metrics by path."""
        return {own.path: own for own in self.metrics}


def column(
    model: str,
    every: Sequence[Rebuilt],
    reviews: Mapping[str, Review],
    settings: Settings,
    draws: Draws,
) -> Column:
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
        review: benchmarked(own, settings.precision) for review, own in rebuilt.items()
    }
    steps = {review: swept(own, settings) for review, own in rebuilt.items()}
    matches = {
        review: paper_matches(reviews[review], own, steps[review], settings)
        for review, own in rebuilt.items()
    }
    truth = {review: own.truth for review, own in benchmarks.items()}
    return Column(
        model=model,
        rebuilt=rebuilt,
        benchmarks=benchmarks,
        otherwise={
            review: other
            for review, own in rebuilt.items()
            if (other := otherwise(own, settings.precision)) is not None
        },
        matches=matches,
        suspicious={
            review: suspicious(matches[review], own) for review, own in rebuilt.items()
        },
        steps=steps,
        overall=tuple(overall(steps, truth)),
        curves={
            review: retrieval_curve(own)
            for review, own in rebuilt.items()
            if own.searches
        },
        metrics=tuple(
            metrics(rebuilt, benchmarks, matches, settings, draws.of(tuple(rebuilt)))
        ),
    )
