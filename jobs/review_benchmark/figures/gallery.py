"""All figures of a scoring, made when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.figures import build_figures
from jobs.review_benchmark.figures.curves import by_rank, by_threshold
from jobs.review_benchmark.figures.losses import waterfall
from jobs.review_benchmark.figures.reviews import recall
from jobs.review_benchmark.figures.shown import Shown, shown
from jobs.review_benchmark.figures.verdicts import likeness
from jobs.review_benchmark.measuring.results import Results
from jobs.review_benchmark.verdicts.measured import Verdicts
from runner.scorecard import FailedFigure, Figure


@dataclass(frozen=True, slots=True)
class Gallery:
    """The figures that the input has something for, in the order of the report."""

    results: Results
    concluded: Sequence[Verdicts]

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        def verdicts(models: Shown) -> Figure | None:
            return likeness(models, self.concluded)

        draws = (recall, waterfall, by_threshold, by_rank, verdicts)
        return build_figures(lambda: shown(self.results), draws)
