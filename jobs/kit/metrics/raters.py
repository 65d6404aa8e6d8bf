"""Agreement of several raters of whom each may have rated some items only.

Ratings are a table of items by raters that holds the index of a category, or -1 where
a rater has not rated an item. All coefficients are of nominal categories:

- Cohen's kappa of two raters (Cohen, 1960), over the items that both rated
- Fleiss' kappa (Fleiss, 1971), with a number of raters that may differ by item
- Krippendorff's alpha (Krippendorff, 2011)
- Gwet's AC1 (Gwet, 2008), which stays high where nearly all items are of one category

Intervals are percentiles of a bootstrap that draws items with their ratings: raters
are fixed, items are a sample. With fewer than two distinct values a coefficient is
undefined in a replicate; such replicates are left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics.columns import Floats, as_value, quotient

Ratings: TypeAlias = npt.NDArray[np.int64]
"""Items by raters: the index of a category, or -1 for none."""

_MANY: Final = 2
"""Ratings of an item that can agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A coefficient of agreement with its interval; None: undefined."""

    value: float | None
    lo: float | None
    hi: float | None
    undefined: int = 0  #: replicates of the bootstrap without a value


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterAgreement:
    """Agreement of raters."""

    items: int  #: with two ratings or more
    ratings: int  #: of these items
    percent: Coefficient  #: share of equal pairs of ratings, mean over items
    cohen: Coefficient | None  #: None: there are not exactly two raters
    fleiss: Coefficient
    krippendorff: Coefficient
    gwet: Coefficient


def rater_agreement(
    ratings: Ratings,
    categories: int,
    *,
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> RaterAgreement:
    """Measure agreement with intervals.

    Args:
        ratings: items by raters.
        categories: number of categories that a rater could choose from.
        level: of the intervals.
        replicates: of the bootstrap; 0: no intervals.
        seed: of the bootstrap.

    Raises:
        ValueError: a rating is no category.
    """
    if ratings.size and not -1 <= ratings.min() <= ratings.max() < categories:
        raise ValueError(f"ratings must lie between -1 and {categories - 1}.")
    rated = ratings[(ratings >= 0).sum(axis=1) >= _MANY]
    table = np.stack([(rated == k).sum(axis=1) for k in range(categories)], axis=1)
    # of every statistic: the value for items with weights
    statistics: dict[str, Callable[[Floats], float]] = {
        "percent": lambda w: _percent(table, w),
        "fleiss": lambda w: _beyond_chance(table, w, _fleiss_chance),
        "krippendorff": lambda w: _alpha(table, w),
        "gwet": lambda w: _beyond_chance(table, w, _gwet_chance),
    }
    is_pair = ratings.shape[1] == _MANY
    if is_pair:
        statistics["cohen"] = lambda w: _cohen(rated, categories, w)
    coefficients = _with_intervals(
        statistics, len(rated), level=level, replicates=replicates, seed=seed
    )
    return RaterAgreement(
        items=len(rated),
        ratings=int((rated >= 0).sum()),
        percent=coefficients["percent"],
        cohen=coefficients.get("cohen"),
        fleiss=coefficients["fleiss"],
        krippendorff=coefficients["krippendorff"],
        gwet=coefficients["gwet"],
    )


def _with_intervals(
    statistics: Mapping[str, Callable[[Floats], float]],
    n: int,
    *,
    level: float,
    replicates: int,
    seed: int,
) -> dict[str, Coefficient]:
    if not n:
        nothing = Coefficient(value=None, lo=None, hi=None)
        return dict.fromkeys(statistics, nothing)
    generator = np.random.default_rng(seed)
    draws = [
        generator.multinomial(n, np.full(n, 1 / n)).astype(np.float64)
        for _ in range(replicates)
    ]
    whole = np.ones(n)
    tail = (1 - level) / 2
    coefficients = {}
    for name, statistic in statistics.items():
        values = np.array([statistic(weights) for weights in draws])
        defined = values[np.isfinite(values)]
        lo, hi = (
            np.quantile(defined, [tail, 1 - tail]) if len(defined) else (None, None)
        )
        coefficients[name] = Coefficient(
            value=as_value(statistic(whole)),
            lo=None if lo is None else float(lo),
            hi=None if hi is None else float(hi),
            undefined=len(values) - len(defined),
        )
    return coefficients


def _percent(table: npt.NDArray[np.int64], weights: Floats) -> float:
    raters = table.sum(axis=1)
    equal = (table * (table - 1)).sum(axis=1) / (raters * (raters - 1))
    return float(np.average(equal, weights=weights))


def _beyond_chance(
    table: npt.NDArray[np.int64],
    weights: Floats,
    chance: Callable[[npt.NDArray[np.int64], Floats], float],
) -> float:
    by_chance = chance(table, weights)
    return float(quotient(_percent(table, weights) - by_chance, 1 - by_chance))


def _fleiss_chance(table: npt.NDArray[np.int64], weights: Floats) -> float:
    counts = weights @ table
    return float(((counts / counts.sum()) ** 2).sum())


def _gwet_chance(table: npt.NDArray[np.int64], weights: Floats) -> float:
    q = table.shape[1]
    if q < _MANY:
        return 1.0
    shares = np.average(table / table.sum(axis=1)[:, None], axis=0, weights=weights)
    return float((shares * (1 - shares)).sum() / (q - 1))


def _alpha(table: npt.NDArray[np.int64], weights: Floats) -> float:
    raters = table.sum(axis=1)
    # coincidences of unequal values, and what their totals make by chance
    equal = (table * (table - 1)).sum(axis=1) / (raters - 1)
    observed = float(weights @ (raters - equal))
    totals = weights @ table
    n = float(totals.sum())
    expected = float((n * n - (totals**2).sum()) / (n - 1))
    return float(1 - quotient(observed, expected))


def _cohen(rated: Ratings, categories: int, weights: Floats) -> float:
    cells = np.zeros((categories, categories))
    np.add.at(cells, (rated[:, 0], rated[:, 1]), weights)
    cells /= cells.sum()
    by_chance = float(cells.sum(axis=1) @ cells.sum(axis=0))
    return float(quotient(np.trace(cells) - by_chance, 1 - by_chance))


@dataclass(frozen=True, kw_only=True)
class LatentClasses:
    """True categories and raters' errors as estimated from ratings alone."""

    posterior: Floats  #: items by categories: the probability of each true category
    prevalence: Floats  #: by category
    confusion: Floats  #: raters by true by given category; rows add up to 1
    iterations: int
    has_converged: bool

    @property
    def accuracy(self) -> Floats:
        """The probability that each rater gives the true category."""
        diagonal = np.diagonal(self.confusion, axis1=1, axis2=2)
        return np.asarray(diagonal @ self.prevalence)


PSEUDO_COUNT: Final = 0.01
"""Added to each cell of a rater's counts: no error has probability 0 for lack of
data."""


def dawid_skene(
    ratings: Ratings,
    categories: int,
    *,
    most_iterations: int = 1000,
    tolerance: float = 1e-8,
) -> LatentClasses:
    """Estimate true categories by expectation maximisation.

    The model (Dawid and Skene, 1979): given the true category of an item, raters err
    independently of each other and of the item. Models that share training data break
    this assumption, and then look more accurate than they are. It starts from the
    shares of votes, so the categories keep their meaning as long as most raters are
    better than chance.

    Args:
        ratings: items by raters; items without any rating get the prevalence.
        categories: number of categories.
        most_iterations: after which it ends without convergence.
        tolerance: greatest change of a posterior probability at convergence.
    """
    is_value = np.stack([ratings == k for k in range(categories)], axis=2).astype(float)
    votes = is_value.sum(axis=1)
    counts = votes.sum(axis=1, keepdims=True)
    posterior = np.where(counts > 0, votes / np.maximum(counts, 1), 1 / categories)
    iterations, has_converged = 0, False
    prevalence, confusion = _maximised(is_value, posterior)
    while iterations < most_iterations and not has_converged:
        iterations += 1
        scores = np.log(prevalence) + np.einsum(
            "irg,rtg->it", is_value, np.log(confusion)
        )
        scores -= scores.max(axis=1, keepdims=True)
        updated = np.exp(scores)
        updated /= updated.sum(axis=1, keepdims=True)
        has_converged = bool(np.abs(updated - posterior).max(initial=0) < tolerance)
        posterior = updated
        prevalence, confusion = _maximised(is_value, posterior)
    return LatentClasses(
        posterior=posterior,
        prevalence=prevalence,
        confusion=confusion,
        iterations=iterations,
        has_converged=has_converged,
    )


def _maximised(is_value: Floats, posterior: Floats) -> tuple[Floats, Floats]:
    """Return the prevalence, and the confusion of each rater."""
    sums = posterior.sum(axis=0) + PSEUDO_COUNT
    counts = np.einsum("it,irg->rtg", posterior, is_value) + PSEUDO_COUNT
    return sums / sums.sum(), counts / counts.sum(axis=2, keepdims=True)
