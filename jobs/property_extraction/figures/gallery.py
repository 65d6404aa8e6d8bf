"""All figures of a scoring, made when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.figures import build_figures
from jobs.property_extraction.figures.losses import waterfall
from jobs.property_extraction.figures.models import aliases, quotes, rates
from jobs.property_extraction.figures.properties import recall, trade
from jobs.property_extraction.figures.shown import shown
from jobs.property_extraction.measuring.results import Results
from runner.scorecard import FailedFigure, Figure


@dataclass(frozen=True, slots=True)
class Gallery:
    """The figures that the input has something for, in the order of the report."""

    results: Results

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        draws = (rates, aliases, waterfall, recall, trade, quotes)
        return build_figures(lambda: shown(self.results), draws)
