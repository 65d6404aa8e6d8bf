"""Whom a figure shows: the first models of a scoring, each with a look of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from jobs import figures
from jobs.property_extraction.measuring.left_out import LeftOut
from jobs.property_extraction.measuring.results import Column, Results
from jobs.text import plural

Model: TypeAlias = figures.ModelSeries[Column]
"""One of the models that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The models of the figures, and what a caption says of all of them."""

    results: Results
    models: tuple[Model, ...]

    @property
    def rest(self) -> str:
        """The end of a caption: what is lacking, and which models are left out."""
        lacking = LeftOut.of(self.results).note
        return lacking + figures.left_out_note(
            len(self.models), len(self.results.columns)
        )

    @property
    def drawn(self) -> str:
        """How intervals were made, for a caption."""
        settings, m = self.results.dataset.settings, len(self.results.papers)
        return (
            f"{100 * settings.level:g}% percentile bootstrap by paper "
            f"({plural(m, 'paper')}, B {settings.boot_b:,})"
        )


def shown(results: Results) -> Shown:
    """The models that figures have room for."""
    return Shown(results=results, models=figures.first_models(results.columns))
