"""Fits the classifier of the gate: features, splits, regression, calibration.

Gold labels are used in this module only for fitting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from jobs.evidence_retrieval.pipeline import Calibration
from jobs.evidence_retrieval.predictions.fitted_gate import (
    Calibrator,
    Classifier,
    FeatureRows,
)
from jobs.kit.metrics import auprc, fit_isotonic, fit_platt
from jobs.kit.metrics.columns import Bools, Floats, Ints

FARTHEST = 0.005
"""Minimum distance of a probability to 0 and 1, as models state whole percents."""

SHAPE = ("max", "second", "mean", "sd", "gap", "entropy")
CRITERION = "criterion:"


def score_shape(scores: Floats) -> Floats:
    """Return `SHAPE` of each column of (sentences, queries) scores, or NaN.

    The gap is the largest score minus the second, the entropy (in nats) that of the
    scores' softmax.
    """
    n, queries = scores.shape
    shape = np.full((len(SHAPE), queries), np.nan)
    if not n:
        return shape
    falling = -np.sort(-scores, axis=0)
    shape[0] = falling[0]
    if n > 1:
        shape[1] = falling[1]
        shape[4] = falling[0] - falling[1]
    # added up row by row: a column's sum must not depend on the other columns
    average = _down(falling) / n
    shape[2] = average
    shape[3] = np.sqrt(_down((falling - average) ** 2) / n)
    raised = np.exp(falling - falling[0])
    shares = raised / _down(raised)
    shape[5] = -_down(shares * np.log(np.where(shares > 0, shares, 1.0)))
    return shape


def features(
    *,
    probability: Floats,
    deviation: Floats,
    shape: Floats,
    listed: Floats,
    relevance: Floats,
    pool: Ints,
    criterion: Ints,
    criteria: Sequence[str],
    posts: tuple[str, ...],
) -> FeatureRows:
    """Return the features of each query, without its gold label, as finite values.

    Args:
        probability: as the model stated it, or NaN.
        deviation: standard deviation of replicates; NaN if there is only one.
        shape: (`SHAPE`, queries) of the scores of the last stage that has any.
        listed: number of sentences that the model listed, or NaN.
        relevance: the largest relevance among them, 0 to 1, or NaN.
        pool: number of sentences of the post.
        criterion: index into *criteria*.
        criteria: ids of the whole criteria file, used or not.
        posts: the post ids.
    """
    safe = np.clip(probability, FARTHEST, 1 - FARTHEST)
    measured = {
        "log_odds": np.log(safe) - np.log1p(-safe),
        **{f"score_{name}": row for name, row in zip(SHAPE, shape, strict=True)},
        "listed": listed,
        "max_relevance": relevance,
        "log_pool": np.log1p(pool.astype(np.float64)),
        "replicate_sd": deviation,
    }
    absent = {
        f"no_{name}": np.isnan(column).astype(np.float64)
        for name, column in measured.items()
        if name != "log_pool"
    }
    # sorted, so that the order of a file cannot affect a coefficient
    one_hot = {
        CRITERION + criteria[index]: (criterion == index).astype(np.float64)
        for index in sorted(range(len(criteria)), key=criteria.__getitem__)
    }
    filled = {name: np.nan_to_num(column) for name, column in measured.items()}
    columns = {**filled, **absent, **one_hot}
    return FeatureRows(
        names=tuple(columns),
        values=np.column_stack([*columns.values()]),
        stated=probability,
        posts=posts,
    )


def _down(table: npt.NDArray[np.float64]) -> Floats:
    total = np.zeros(table.shape[1])
    for row in table:
        total += row
    return total


INNER_FOLDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One outer fold; the three groups of posts are disjoint."""

    fold: str
    test: tuple[str, ...]
    tune: tuple[str, ...]
    fit: tuple[str, ...]


def split(
    fold: str,
    fold_of: Mapping[str, str],
    judged: Iterable[str],
    *,
    seed: int,
    tune_fraction: float,
) -> Split:
    """Split the posts: those of one fold against all other judged ones.

    The others are ordered by the hash of "seed:fold:post"; the first share of them, at
    least one post, sets thresholds. Posts of the fold itself never do.
    """
    rest = sorted(
        (post for post in judged if fold_of.get(post, fold) != fold),
        key=lambda post: _digest(f"{seed}:{fold}:{post}"),
    )
    # as a decimal, because 0.3 * 5 rounds down as a double
    share = Decimal(str(tune_fraction)) * len(rest)
    count = max(1, int(share.quantize(Decimal(1), rounding=ROUND_HALF_UP)))
    return Split(
        fold=fold,
        test=tuple(
            sorted(post for post, post_fold in fold_of.items() if post_fold == fold)
        ),
        tune=tuple(rest[:count]),
        fit=tuple(rest[count:]),
    )


def inner_folds(posts: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return a fold for each row, by its post, balanced by number of rows.

    Posts are assigned in descending size to the smallest fold, as in scikit-learn's
    `GroupKFold`; ties are broken by the post's id and the first fold, which
    scikit-learn leaves to the machine's sort. With fewer posts, there are fewer folds.
    """
    names, index, sizes = np.unique(posts, return_inverse=True, return_counts=True)
    count = min(INNER_FOLDS, len(names))
    loads = [0] * count
    folds = np.empty(len(names), dtype=np.intp)
    for i in sorted(range(len(names)), key=lambda i: -sizes[i]):
        lightest = loads.index(min(loads))
        loads[lightest] += int(sizes[i])
        folds[i] = lightest
    return folds[index]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


C = 1.0
"""Default inverse strength of the penalty."""

TOLERANCE = 1e-10
_MOST_ROUNDS = 10_000
_NEWTON_STEPS = 2
"""Each squares the distance: from 1e-6 to below the precision of doubles."""


class CannotFitError(ValueError):
    """The rows are not sufficient for a fit; the message has the reason."""


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the thread pools of all numeric libraries, cached: a search takes 3 ms.

    Only after scikit-learn is imported: pools of libraries loaded later are missed.
    """
    return ThreadpoolController()


def fit_classifier(values: Floats, y: Bools, c: float = C) -> Classifier:
    """Fit the classifier to some rows.

    Raises:
        CannotFitError: a class is missing.
    """
    # takes a second to import, and reading a stored gate does not need it
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - see above

    refuse_one_class(y)
    # the deviation of a constant feature is rounding errors, not 0
    changes = values.max(axis=0) > values.min(axis=0)
    mean = np.where(changes, values.mean(axis=0), values[0])
    scale = np.where(changes, values.std(axis=0), 1.0)
    rows = (values - mean) / scale
    model = LogisticRegression(C=c, tol=TOLERANCE, max_iter=_MOST_ROUNDS)
    with _thread_pools().limit(limits=1):
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
    rows: Floats, y: Bools, c: float, weights: Floats
) -> tuple[tuple[float, ...], float]:
    """Refine the optimum of lbfgs by Newton steps.

    lbfgs stops some 1e-6 of log-odds away from it, depending on the machine's order of
    summation; nine decimals would differ between machines.
    """
    design = np.column_stack([rows, np.ones(len(rows))])
    penalty = np.append(np.full(rows.shape[1], 1 / c), 0.0)
    for _ in range(_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-(design @ weights)))
        slope = design.T @ (p - y) + penalty * weights
        bend = (design.T * (p * (1 - p))) @ design + np.diag(penalty)
        weights = weights - np.linalg.solve(bend, slope)
    *coefficients, intercept = weights.tolist()
    return tuple(coefficients), intercept


def out_of_fold(values: Floats, y: Bools, posts: Sequence[str], c: float) -> Floats:
    """Return each row's log-odds by a classifier that was not fitted to its post.

    Raises:
        CannotFitError: the posts outside an inner fold are of one class.
    """
    folds = inner_folds(posts)
    scores = np.empty(len(y))
    for fold in range(int(folds.max(initial=-1)) + 1):
        inside = folds == fold
        classifier = fit_classifier(values[~inside], y[~inside], c)
        scores[inside] = classifier.log_odds(values[inside])
    return scores


def choose_c(
    values: Floats, y: Bools, posts: Sequence[str], grid: Sequence[float]
) -> float:
    """Return the C whose out-of-fold scores have the best AUPRC; the first of ties."""
    if len(grid) <= 1:
        return grid[0] if grid else C

    def quality(c: float) -> float:
        return auprc(y, out_of_fold(values, y, posts, c)) or 0.0

    return max(grid, key=quality)


def refuse_one_class(y: Bools) -> None:
    """Raise `CannotFitError` unless both classes occur."""
    if y.all() or not y.any():
        labels = "only positive" if y.any() else "no positive"
        raise CannotFitError(
            f"{len(y)} queries to learn from, {labels} ones among them"
        )


def fit_calibrator(kind: Calibration, p: Floats, y: Bools) -> Calibrator:
    """Fit the calibrator to some rows; raise `CannotFitError` if impossible."""
    try:
        match kind:
            case "none":
                return None
            case "isotonic":
                return fit_isotonic(p, y)
            case "platt":
                return fit_platt(p, y)
    except ValueError as error:
        raise CannotFitError(str(error)) from None
