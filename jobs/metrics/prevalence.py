"""Rates foretold where positives are more, or less, common than in the sample."""

from __future__ import annotations

import numpy as np

from jobs.metrics.columns import Floats, as_value, quotient


def ppv_at_prevalence(
    sensitivity: float | None, specificity: float | None, prevalence: float
) -> float | None:
    """The precision that these rates would have where positives are that common.

    Bayes' rule; a set that was drawn has a precision of its own making.
    """
    if sensitivity is None or specificity is None:
        return None
    return as_value(
        float(ppv_columns(np.array(sensitivity), np.array(specificity), prevalence))
    )


def ppv_columns(sensitivity: Floats, specificity: Floats, prevalence: float) -> Floats:
    """That precision for many rates at once; NaN where it is undefined."""
    right = sensitivity * prevalence
    return quotient(right, right + (1 - specificity) * (1 - prevalence))
