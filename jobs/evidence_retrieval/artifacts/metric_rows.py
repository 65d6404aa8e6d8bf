"""A metric as the end of a table's row."""

from __future__ import annotations

from jobs.evidence_retrieval.measures import MEASURES
from runner.scorecard import Cell, Metric

COLUMNS = (
    "metric",
    "value",
    "mean",
    "std",
    "lo",
    "hi",
    "n",
    "n_defined",
    "subset",
    "definition",
    "meaning",
    "name",
    "direction",
)
"""What every row about a metric ends with."""


def cells(metric: Metric, path: str | None = None) -> tuple[Cell, ...]:
    """A metric as the end of a row; mean and std are over folds."""
    name = metric.path if path is None else path
    words = MEASURES.of(name)
    return (
        name,
        metric.value,
        metric.mean,
        metric.std,
        metric.lo,
        metric.hi,
        metric.n,
        metric.n_defined,
        metric.subset,
        metric.definition,
        None if words is None else words.meaning,
        name if words is None else words.name,
        None if words is None else words.direction,
    )
