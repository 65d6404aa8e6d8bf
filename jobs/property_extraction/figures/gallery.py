"""All figures of a scoring, made when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.property_extraction.figures.losses import waterfall
from jobs.property_extraction.figures.models import aliases, quotes, rates
from jobs.property_extraction.figures.properties import recall, trade
from jobs.property_extraction.figures.shown import shown
from jobs.property_extraction.measuring.results import Results
from runner.figure import Figure


@dataclass(frozen=True, slots=True)
class Gallery:
    """The figures that the input has something for, in the order of the report."""

    results: Results

    def __iter__(self) -> Iterator[Figure]:
        models = shown(self.results)
        for draw in (rates, aliases, waterfall, recall, trade, quotes):
            figure = draw(models)
            if figure is not None:
                yield figure
