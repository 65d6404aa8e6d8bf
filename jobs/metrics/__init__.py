"""Shared metrics: one definition per name, undefined as a value, honest intervals.

Functions are pure: arrays in, values out. A job says which metric over which subset;
what a metric is stands here.
"""

from __future__ import annotations

from jobs.metrics.aggregate import (
    Aggregate,
    aggregate,
    defined,
    mean,
    quantiles,
    ratio,
    std,
)
from jobs.metrics.intervals import (
    Difference,
    Interval,
    Ratio,
    Resamples,
    mean_of,
    round12,
    wilson,
)
from jobs.metrics.significance import (
    McNemar,
    holm,
    mcnemar,
    noninferiority,
    sign_flip,
)

__all__ = [
    "Aggregate",
    "Difference",
    "Interval",
    "McNemar",
    "Ratio",
    "Resamples",
    "aggregate",
    "defined",
    "holm",
    "mcnemar",
    "mean",
    "mean_of",
    "noninferiority",
    "quantiles",
    "ratio",
    "round12",
    "sign_flip",
    "std",
    "wilson",
]
