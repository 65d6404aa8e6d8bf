"""Logistic regression with an L2 penalty: is there evidence, from a row of features.

Rows come and stay in one canonical order, one thread adds up, and log-odds count to
nine decimals; so neither a file's order nor a machine's cores can change a scorecard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.gating.splits import inner_folds
from jobs.metrics import auprc
from jobs.metrics.columns import Bools, Floats

C = 1.0
"""Inverse strength of the penalty where no grid is set."""

TOLERANCE = 1e-10
_MOST_ROUNDS = 10_000
_NEWTON_STEPS = 2
"""Each squares the distance: from 1e-6 beyond what doubles tell apart."""

_DECIMALS = 9


class CannotFitError(ValueError):
    """The rows cannot teach what is asked of them; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier:
    """Standardisation and coefficients, all learnt from the same rows."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]  #: 1 for a feature that never changes
    coefficients: tuple[float, ...]
    intercept: float
    c: float

    def log_odds(self, values: Floats) -> Floats:
        """The log-odds of evidence of each row, to nine decimals."""
        rows = (values - np.array(self.mean)) / np.array(self.scale)
        # row by row, for a matrix product may round a row by where it stands
        weighted = (rows * np.array(self.coefficients)).sum(axis=1)
        rounded: Floats = np.round(weighted + self.intercept, _DECIMALS)
        return rounded


def fit_classifier(values: Floats, y: Bools, c: float = C) -> Classifier:
    """The classifier of some rows.

    Raises:
        CannotFitError: where a class is missing.
    """
    # a second to import, which reading a stored gate has no use for
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - see above
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with it

    refuse_one_class(y)
    # a feature that never changes has a deviation of rounding errors, not of 0
    changes = values.max(axis=0) > values.min(axis=0)
    mean = np.where(changes, values.mean(axis=0), values[0])
    scale = np.where(changes, values.std(axis=0), 1.0)
    rows = (values - mean) / scale
    model = LogisticRegression(C=c, tol=TOLERANCE, max_iter=_MOST_ROUNDS)
    with threadpool_limits(limits=1):
        model.fit(rows, y)
        coefficients, intercept = _settled(
            rows, y, c, np.append(model.coef_[0], model.intercept_)
        )
    return Classifier(
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
        coefficients=coefficients,
        intercept=intercept,
        c=c,
    )


def _settled(
    rows: Floats, y: Bools, c: float, found: Floats
) -> tuple[tuple[float, ...], float]:
    """The optimum that lbfgs came near to, by Newton steps from there.

    lbfgs stops some 1e-6 of log-odds away from it, at a place that depends on how a
    machine adds up; nine decimals would tell machines apart.
    """
    design = np.column_stack([rows, np.ones(len(rows))])
    penalty = np.append(np.full(rows.shape[1], 1 / c), 0.0)
    for _ in range(_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-(design @ found)))
        slope = design.T @ (p - y) + penalty * found
        bend = (design.T * (p * (1 - p))) @ design + np.diag(penalty)
        found = found - np.linalg.solve(bend, slope)
    *coefficients, intercept = found.tolist()
    return tuple(coefficients), intercept


def out_of_fold(values: Floats, y: Bools, posts: Sequence[str], c: float) -> Floats:
    """Each row's log-odds by a classifier that saw nothing of its post.

    Raises:
        CannotFitError: where the posts outside an inner fold are of one class.
    """
    folds = inner_folds(posts)
    scores = np.empty(len(y))
    for fold in range(int(folds.max(initial=-1)) + 1):
        inside = folds == fold
        found = fit_classifier(values[~inside], y[~inside], c)
        scores[inside] = found.log_odds(values[inside])
    return scores


def choose_c(
    values: Floats, y: Bools, posts: Sequence[str], grid: Sequence[float]
) -> float:
    """The C whose out-of-fold scores have the best AUPRC; the first of equals."""
    if len(grid) <= 1:
        return grid[0] if grid else C

    def quality(c: float) -> float:
        return auprc(y, out_of_fold(values, y, posts, c)) or 0.0

    return max(grid, key=quality)


def refuse_one_class(y: Bools) -> None:
    """Raise `CannotFitError` unless both classes are there."""
    if y.all() or not y.any():
        what = "only positive" if y.any() else "no positive"
        raise CannotFitError(f"{len(y)} queries to learn from, {what} ones among them")
