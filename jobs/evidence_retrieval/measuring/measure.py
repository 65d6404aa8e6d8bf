"""A number on its way to being a metric: what it is, and how it is drawn again.

Sections yield measures of some queries; only those of the whole get intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.evidence_retrieval.settings import Settings
from jobs.metrics import resampling
from jobs.metrics.columns import Bools, Floats, Ints
from jobs.metrics.intervals import Interval
from jobs.metrics.resampling import SHARE, Range

ALL, POSITIVE = "scored", "has_evidence"
"""Subsets: judged queries with a probability, and queries with evidence."""

Clusters: TypeAlias = npt.NDArray[np.intp]
"""The cluster of every query of the sheet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """A sum over rows by another; a mean where `below` is None."""

    rows: Ints  #: queries of the sheet
    above: Floats | Bools
    below: Floats | Bools | None = None
    range: Range = SHARE  #: the values that it can take


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A statistic that is no ratio of sums, such as an area under a curve."""

    make: Callable[[Clusters], resampling.ResampledStatistic]


Sampled: TypeAlias = Quotient | Redrawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A metric without its bootstrap interval."""

    path: str
    value: float | int | None
    n: int
    definition: str
    subset: str = ALL
    n_defined: int | None = None
    sampled: Sampled | None = None  #: None: there is no bootstrap interval
    interval: Interval | None = None  #: one of another kind, such as Wilson's
    note: str | None = None


def empty_rate(settings: Settings) -> str:
    """What 0/0 is, for definitions."""
    value = settings.zero_division
    return f"0/0 is {'undefined' if value is None else value}"


def count(path: str, value: int, what: str, *, subset: str = ALL) -> Measure:
    """A plain number of things."""
    return Measure(
        path=path, value=value, n=value, definition=f"count@1({what})", subset=subset
    )
