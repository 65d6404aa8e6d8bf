"""Whom a figure shows: the first models of a scoring, each with a look of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from jobs import figures
from jobs.evidence_retrieval.measuring.results import ModelResults, Results
from jobs.metrics.columns import Floats
from runner.scorecard import Metric, Numbers, Points

Model: TypeAlias = figures.ModelSeries[ModelResults]
"""One of the models that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The models of the figures, and what a caption says of all of them."""

    results: Results
    models: tuple[Model, ...]

    @property
    def rest(self) -> str:
        """The end of a caption; empty where no model is left out."""
        return figures.left_out_note(len(self.models), len(self.results.models))

    @property
    def drawn(self) -> str:
        """How intervals were made, for a caption."""
        settings = self.results.settings
        return (
            f"{100 * settings.level:g}% percentile bootstrap by post "
            f"({self.results.draws.posts:,} posts, B {settings.boot_b:,})"
        )


def shown(results: Results) -> Shown:
    """The models that figures have room for."""
    return Shown(results=results, models=figures.first_models(results.models))


def numbers(column: Floats) -> Numbers:
    """A column for a figure; NaN is undefined."""
    return tuple(None if np.isnan(each) else each for each in column.tolist())


def with_ends(
    metrics: Sequence[Metric | None], places: Iterable[float], model: Model
) -> Points:
    """Values with their intervals on lying rows; no point where there is no value."""
    return Points(
        x=tuple(each.value if each else None for each in metrics),
        y=tuple(places),
        lo=tuple(each.lo if each else None for each in metrics),
        hi=tuple(each.hi if each else None for each in metrics),
        label=model.name,
        series=model.series,
    )
