"""A rule that rows must keep, and those that break it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from jobs.evidence_retrieval.queries import Predictions, Queries
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import Bools
from runner.scorecard import Finding

Severity: TypeAlias = Literal["error", "warn", "info"]
"""Impossible, suspicious, or worth knowing."""

Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one model under one configuration says, beside the truth."""

    queries: Queries
    prediction: Predictions
    settings: Settings

    @property
    def name(self) -> str:
        """Whose prediction it is; only the headline configuration is looked at."""
        return self.prediction.model


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Rows that break a rule."""

    rows: Bools  #: (Q,) which
    where: str  #: the column or list
    message: str  #: one sentence
    values: Callable[[int], str]
    """What a row says and what it should, for the example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Subject]):
    """What must hold row by row."""

    code: str
    severity: Severity
    broken: Callable[[Subject], Iterable[Broken]]

    def findings(
        self, subject: Subject, queries: Queries, name: str
    ) -> Iterator[Finding]:
        """A finding for each column in which a row breaks it; none where all hold."""
        for broken in self.broken(subject):
            rows = np.flatnonzero(broken.rows)
            if len(rows):
                first = int(rows[0])
                yield Finding(
                    code=self.code,
                    severity=self.severity,
                    where=f"{name} {broken.where}".strip(),
                    message=broken.message,
                    n=len(rows),
                    example=f"{queries.key(first)}: {broken.values(first)}",
                )
