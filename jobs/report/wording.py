"""Numbers and file cells as a reader of the report sees them."""

from __future__ import annotations

import math

from runner.scorecard import Metric

UNDEFINED = "n/a"

FIXED = (0.001, 1000.0)
"""Sizes between which three decimals say enough."""


def number(value: float | None) -> str:
    """A number with the digits that a reader needs; `n/a` where it is undefined."""
    if value is None or math.isnan(value):
        return UNDEFINED
    if isinstance(value, int):
        return f"{value:,}"
    least, most = FIXED
    if value == 0 or least <= abs(value) < most:
        return f"{value:.3f}"
    return f"{value:.3g}"


def interval(metric: Metric) -> str:
    """`[lo, hi]`; empty where the metric has none."""
    if metric.lo is None and metric.hi is None:
        return ""
    return f"[{number(metric.lo)}, {number(metric.hi)}]"


def spread(metric: Metric) -> str:
    """`mean ± std`; empty where the metric has none."""
    if metric.mean is None and metric.std is None:
        return ""
    return f"{number(metric.mean)} ± {number(metric.std)}"


def counted(metric: Metric) -> str:
    """How many items it speaks about, and of how many it had a value."""
    if metric.n_defined is None or metric.n_defined == metric.n:
        return f"{metric.n:,}"
    return f"{metric.n_defined:,} of {metric.n:,}"


def target(metric: Metric) -> str:
    """The bound and how the metric stands to it; empty where it has none."""
    if metric.target is None:
        return ""
    return f"{metric.target} {metric.verdict or UNDEFINED}"


def is_numeric(text: str) -> bool:
    """Whether a cell of a CSV file holds a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def cell(text: str) -> str:
    """A number of a CSV file, which holds all digits, with those a reader needs."""
    if not text:
        return UNDEFINED
    # whole numbers may be ids: they stay as they are
    return text if text.lstrip("-").isdigit() else number(float(text))
