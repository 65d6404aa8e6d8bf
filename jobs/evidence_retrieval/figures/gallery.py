"""All figures of a scoring, made when somebody looks: bands over draws take a while."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.evidence_retrieval.figures.ablation import ablation
from jobs.evidence_retrieval.figures.amounts import gamma_sweep, k_by_state, states
from jobs.evidence_retrieval.figures.certainty import reliability, risk_coverage
from jobs.evidence_retrieval.figures.criteria import criteria
from jobs.evidence_retrieval.figures.separation import separations
from jobs.evidence_retrieval.figures.shown import shown
from jobs.evidence_retrieval.measuring.results import Results
from jobs.figures import build_figures
from runner.scorecard import FailedFigure, Figure


@dataclass(frozen=True, slots=True)
class Gallery:
    """The figures that the input has something for, in the order of the report.

    Each pass makes them anew and yields the same.
    """

    results: Results

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        draws = (
            separations,
            reliability,
            criteria,
            k_by_state,
            risk_coverage,
            gamma_sweep,
            states,
            ablation,
        )
        return build_figures(lambda: shown(self.results), draws)
