"""Whom a figure shows: the first models of a scoring, each with a look of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from jobs import figures
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.results import Results

Model: TypeAlias = figures.ModelSeries[Column]
"""One of the models that are shown; it has done at least one review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The models of the figures, and what a caption says of all of them."""

    results: Results
    models: tuple[Model, ...]
    of: int  #: models that could be shown

    @property
    def rest(self) -> str:
        """The end of a caption; empty where no model is left out."""
        return figures.left_out_note(len(self.models), self.of)


def shown(results: Results) -> Shown:
    """The models that figures have room for."""
    there = {name: own for name, own in results.columns.items() if own.rebuilt}
    return Shown(results=results, models=figures.first_models(there), of=len(there))
