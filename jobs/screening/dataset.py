"""A run's inputs: the settings and the set that is screened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jobs.screening.settings import Settings
from jobs.screening.validation_set import Record, SetReview, ValidationSet
from runner.scorecard import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """All inputs of a run; an imported one may have none but settings."""

    settings: Settings
    validation_set: ValidationSet | None = None
    fulltexts: Mapping[str, Path] = field(default_factory=dict)  #: by paper
    findings: tuple[Finding, ...] = ()
    _records: Mapping[str, Record] = field(init=False, repr=False, compare=False)
    _reviews: Mapping[str, SetReview] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        drawn = self.validation_set
        records = {} if drawn is None else {each.key: each for each in drawn.records}
        reviews = {} if drawn is None else {each.id: each for each in drawn.reviews}
        object.__setattr__(self, "_records", records)
        object.__setattr__(self, "_reviews", reviews)

    def record(self, key: str) -> Record:
        """A record by its item key; raise `KeyError` where there is none."""
        return self._records[key]

    def review(self, review: str) -> SetReview:
        """A review of the set; raise `KeyError` where there is none."""
        return self._reviews[review]
