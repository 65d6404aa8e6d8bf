"""What each model predicted of each paper, and what became of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from jobs.property_extraction.row import Prediction


class State(StrEnum):
    """What became of a paper."""

    SCORED = "scored"
    FAILED = "failed"  #: no reply, or none that can be read
    SKIPPED = "skipped"
    OPEN = "open"  #: the run is unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a paper, and why."""

    state: State
    reason: str = ""  #: of a skip or failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """One replicate of one model."""

    model: str
    replicate: int
    predictions: tuple[Prediction, ...]  #: by row
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Of papers that were asked about; an import knows only those it has rows of."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What its replies held beside rows, such as `dropped`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All that the answers of a run say, by the present rules."""

    models: tuple[str, ...]
    replicates: int
    imported: bool
    predicted: tuple[Predicted, ...]  #: by model, then replicate
    missing: int = 0  #: tasks that the plan asks for and the run has not
    stale: int = 0  #: answers that the plan no longer asks for

    def of(self, model: str) -> tuple[Predicted, ...]:
        """A model's replicates."""
        return tuple(own for own in self.predicted if own.model == model)
