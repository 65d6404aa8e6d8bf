"""All figures of a scoring, made when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.figures import build_figures
from jobs.screening.figures.kinds import candidates, fpr, roc, similarity
from jobs.screening.figures.reading import recall, saved
from jobs.screening.figures.shown import shown
from jobs.screening.figures.stages import calibration, funnel
from jobs.screening.measuring.results import Results
from runner.scorecard import FailedFigure, Figure


@dataclass(frozen=True, slots=True)
class Gallery:
    """The figures that the input has something for, in the order of the report."""

    results: Results

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        draws = (
            recall,
            fpr,
            roc,
            calibration,
            funnel,
            saved,
            similarity,
            candidates,
        )
        return build_figures(lambda: shown(self.results), draws)
