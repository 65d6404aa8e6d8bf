"""All that a run tells of one review under one model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.explain.searching import Search, answered_search
from jobs.review_benchmark.measuring.benchmark import Benchmark
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.lost import PaperMatch
from jobs.review_benchmark.rebuilt import Rebuilt
from jobs.review_benchmark.review import Review
from runner.job import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A review that a model has done, in part at least."""

    dataset: Dataset
    review: Review
    column: Column
    families: tuple[tuple[Answer, ...], ...]  #: by replicate
    is_own: bool  #: of a run of our own, which searches a database

    @property
    def benchmark(self) -> Benchmark:
        """What it comes to."""
        return self.column.benchmarks[self.review.id]

    @property
    def rebuilt(self) -> Rebuilt:
        """What the model made of it."""
        return self.column.rebuilt[self.review.id]

    @property
    def matches(self) -> tuple[PaperMatch, ...]:
        """What became of each of its studies."""
        return self.column.matches[self.review.id]

    def searches(self) -> Iterator[tuple[int, Search | str]]:
        """Each replicate with its search, or why there is none."""
        for family in self.families:
            first = family[0]
            yield (
                first.task.replicate,
                answered_search(self.dataset, self.review, first),
            )
