"""Whom a figure shows: the first models of a scoring, each with a look of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jobs import figures
from jobs.screening.measuring.results import Column, Results
from jobs.text import plural
from runner.scorecard import Metric

Model: TypeAlias = figures.ModelSeries[Column]
"""One of the models that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The models of the figures, and what a caption says of all of them."""

    results: Results
    models: tuple[Model, ...]

    @property
    def rest(self) -> str:
        """The end of a caption; empty where no model is left out."""
        return figures.left_out_note(len(self.models), len(self.results.columns))

    @property
    def drawn(self) -> str:
        """How intervals were made, for a caption."""
        settings = self.results.dataset.settings
        reviews = len(self.results.sheet.records.reviews)
        return (
            f"{100 * settings.level:g}% percentile bootstrap by review "
            f"({plural(reviews, 'review')}, B {settings.boot_b:,})"
        )


def shown(results: Results) -> Shown:
    """The models that figures have room for."""
    return Shown(results=results, models=figures.first_models(results.columns))


def ends(metrics: Sequence[Metric]) -> dict[str, tuple[float | None, ...]]:
    """The interval ends of metrics, as marks take them."""
    return {
        "lo": tuple(own.lo for own in metrics),
        "hi": tuple(own.hi for own in metrics),
    }
