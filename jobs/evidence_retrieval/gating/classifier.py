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
    mean = values.mean(axis=0)
    spread = values.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    model = LogisticRegression(C=c, tol=TOLERANCE, max_iter=_MOST_ROUNDS)
    with threadpool_limits(limits=1):
        model.fit((values - mean) / scale, y)
    return Classifier(
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
        coefficients=tuple(model.coef_[0].tolist()),
        intercept=float(model.intercept_[0]),
        c=c,
    )


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
