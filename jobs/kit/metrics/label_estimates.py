"""Estimates a metric of a model from labelled items, and plans how many more to label.

    population = LabelledPopulation(
        verdicts=verdicts,        # 0 or 1 for each item, by the model
        predictions=predictions,  # of the truth, 0 to 1, by a judge
        labelled=[4, 17, 20],     # items that people labelled
        truth=[1, 0, 1],
    )
    estimate_rate("precision", population).powered

The formulas are those of `prediction_powered`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jobs.kit.metrics.columns import (
    Column,
    Floats,
    Ints,
    as_value,
    check_same_length,
    probabilities,
)
from jobs.kit.metrics.intervals import round12, wilson
from jobs.kit.metrics.prediction_powered import (
    FEW,
    RATIOS,
    Bounds,
    LabelledStratum,
    Terms,
    at_least_exact,
    powered_estimates,
    wilson_bounds,
)

_HALVINGS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPopulation:
    """All items of a population; people labelled some of them."""

    verdicts: Column  #: 0 or 1 an item, by the model that is measured
    predictions: Column  #: of the truth, 0 to 1 an item, by a judge
    labelled: Sequence[int]  #: indexes of the labelled items, each once
    truth: Column  #: 0 to 1, of each labelled item
    chances: Column | None = None  #: that the draw included each; None: all alike
    strata: Sequence[str] | None = None  #: of each item; None: one stratum


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedRate:
    """A rate with the ends of its interval; None where undefined."""

    value: float | None
    lo: float | None
    hi: float | None

    @property
    def width(self) -> float | None:
        """From one end to the other."""
        return None if self.lo is None or self.hi is None else self.hi - self.lo


@dataclass(frozen=True, slots=True, kw_only=True)
class RateEstimate:
    """A metric estimated from labels and predictions."""

    metric: str
    items: int
    labels: int
    level: float
    powered: EstimatedRate  #: the estimate to report
    labels_alone: EstimatedRate  #: without the predictions
    naive: EstimatedRate  #: predictions read as if they were the truth
    weights: Mapping[str, float]  #: lambda by stratum; 0: labels alone
    effective: float | None
    """Labels of a simple random draw, without predictions, of this variance."""
    quantile: float | None  #: of t, behind the interval
    residuals: float | None
    """Effective number of residuals behind the variance; None: there is none."""

    @property
    def is_conservative(self) -> bool:
        """Whether few residuals make the interval an exact one, which covers more."""
        return self.residuals is not None and self.residuals < FEW


def estimate_rate(
    metric: str, population: LabelledPopulation, level: float = 0.95
) -> RateEstimate:
    """Estimate a metric, one of `RATIOS`, over a whole population.

    Raises:
        ValueError: columns differ in length or hold impossible values, an item is
            labelled twice, or a stratum has fewer than two labels.
    """
    terms_of = RATIOS[metric]
    verdicts = probabilities("verdicts", population.verdicts)
    predictions = probabilities("predictions", population.predictions)
    check_same_length(verdicts=verdicts, predictions=predictions)
    labelled = _labelled(population, len(verdicts))
    truth = probabilities("truth", population.truth)
    check_same_length(truth=truth, labelled=labelled)

    names, stratum_of = _strata(population, len(verdicts))
    predicted = terms_of(predictions, verdicts)
    strata = []
    for number in range(len(names)):
        members = np.flatnonzero(stratum_of == number)
        rows = np.flatnonzero(stratum_of[labelled] == number)
        strata.append(
            LabelledStratum(
                size=len(members),
                truth=terms_of(truth[rows], verdicts[labelled[rows]]),
                predicted=Terms(*(column[labelled[rows]] for column in predicted)),
                predicted_means=Terms(
                    *(np.asarray(column[members].mean()) for column in predicted)
                ),
                probabilities=_chances(population, rows, len(members)),
            )
        )
    estimates = powered_estimates(strata, terms_of, level)
    weights = estimates.weights.tolist()
    return RateEstimate(
        metric=metric,
        items=len(verdicts),
        labels=len(labelled),
        level=level,
        powered=_rate(estimates.powered),
        labels_alone=_rate(estimates.labels_alone),
        naive=_naive(predicted, level),
        weights=dict(zip(names, map(round12, weights), strict=True)),
        effective=as_value(float(estimates.effective)),
        quantile=as_value(float(estimates.quantile)),
        residuals=_finite(float(estimates.residuals)),
    )


def labels_needed(estimate: RateEstimate, width: float) -> int | None:
    """Return how many more labels give an interval of at most *width*.

    A draw like the one so far is assumed, and a judge that stays as good. With S the
    variance of one label, a finite population of N gives n labels the variance
    S (1 / n - 1 / N). The variance that is needed is p (1 - p) / n_eff, with n_eff the
    effective size at which Wilson's interval is that wide.

    Returns:
        0 where it is narrow enough; None where the estimate has no variance to go by.

    Raises:
        ValueError: *width* is not between 0 and 1.
    """
    if not 0 < width < 1:
        raise ValueError(f"width must lie between 0 and 1, and is {width}.")
    rate, now = estimate.powered, estimate.effective
    if rate.width is None or rate.value is None or now is None:
        return None
    if rate.width <= width:
        return 0
    low, high = now, now * 4.0
    while _width(estimate, high / now) > width:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_enough = _width(estimate, middle / now) <= width
        low, high = (low, middle) if is_enough else (middle, high)
    unlabelled = 1 / estimate.labels - 1 / estimate.items
    inverse = now / high * unlabelled + 1 / estimate.items
    return min(estimate.items, math.ceil(1 / inverse)) - estimate.labels


def labels_until_nominal(estimate: RateEstimate) -> int:
    """About how many more labels make a conservative interval a nominal one.

    Residuals become more as labels do; 0 where the interval is nominal.
    """
    if not estimate.is_conservative:
        return 0
    more = FEW / max(estimate.residuals or 0.0, FEW / estimate.items)
    return min(estimate.items, math.ceil(estimate.labels * more)) - estimate.labels


def _width(estimate: RateEstimate, more: float) -> float:
    """The width of an interval at so many times the effective labels."""
    value, now, t, residuals = (
        np.asarray(np.nan if number is None else number)
        for number in (
            *(estimate.powered.value, estimate.effective),
            *(estimate.quantile, estimate.residuals),
        )
    )
    bounds = wilson_bounds(value, now * more, t)
    bounds = at_least_exact(bounds, now * more, t, residuals * more, estimate.level)
    return float(bounds.hi - bounds.lo)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _labelled(population: LabelledPopulation, items: int) -> Ints:
    labelled = np.asarray(population.labelled, dtype=np.int64)
    if len(labelled) and not 0 <= labelled.min() <= labelled.max() < items:
        raise ValueError(f"labelled holds an index outside 0 to {items - 1}.")
    unique, counts = np.unique(labelled, return_counts=True)
    if len(unique) < len(labelled):
        item = int(unique[np.argmax(counts > 1)])
        raise ValueError(f"Item {item} is labelled twice; pass one label an item.")
    return labelled


def _strata(population: LabelledPopulation, items: int) -> tuple[list[str], Ints]:
    if population.strata is None:
        return [""], np.zeros(items, dtype=np.int64)
    check_same_length(verdicts=np.empty(items), strata=population.strata)
    names, stratum_of = np.unique(np.asarray(population.strata), return_inverse=True)
    return [str(name) for name in names], stratum_of.astype(np.int64)


def _chances(population: LabelledPopulation, rows: Ints, size: int) -> Floats:
    """The chance of each labelled item of a stratum, scaled to what was labelled.

    Who labels only the first part of a draw has labelled a smaller draw of the same
    shape; a common factor does not matter but for the finite population.
    """
    if population.chances is None:
        return np.full(len(rows), len(rows) / size)
    chances = probabilities("chances", population.chances)
    check_same_length(chances=chances, truth=population.truth)
    chances = chances[rows]
    if len(chances) and chances.min() <= 0:
        raise ValueError("A chance is 0, but the item was drawn.")
    drawn = (1 / chances).sum() / size if len(chances) else 1.0
    return np.asarray(np.minimum(1.0, chances * drawn))


def _naive(predicted: Terms, level: float) -> EstimatedRate:
    above, below = (math.fsum(column) for column in predicted)
    if not below:
        return EstimatedRate(value=None, lo=None, hi=None)
    size = round(below)
    hits = min(size, round(above / below * size))
    interval = wilson(hits, size, level)
    return EstimatedRate(value=round12(above / below), lo=interval.lo, hi=interval.hi)


def _rate(bounds: Bounds) -> EstimatedRate:
    value, lo, hi = (as_value(float(number)) for number in bounds)
    if value is None or lo is None or hi is None:
        return EstimatedRate(value=None, lo=None, hi=None)
    return EstimatedRate(value=round12(value), lo=round12(lo), hi=round12(hi))
