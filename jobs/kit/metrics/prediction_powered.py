"""Estimates rates from a few human labels and a judgement of every item.

A judge, such as a model, has a prediction for each of N items; people labelled n of
them, drawn with known probabilities. Reading the predictions as if they were the truth
gives a narrow interval around the wrong value. Prediction-powered inference uses them
only to explain a part of the variation between labels, so that the estimate stays
right however biased the judge is, and narrow where it is good (PPI++: Angelopoulos,
Duchi and Zrnic, "PPI++: Efficient prediction-powered inference", 2023; the difference
estimator of survey sampling: Särndal, Swensson and Wretman, 1992, chapter 6).

A metric is a ratio of two means, a / b, both linear in the truth: precision has
a = truth * verdict and b = verdict. With predictions in place of the truth the same
terms are known for every item. For a stratum h with weights w (1 / probability):

    A = sum over h of N_h / N * (mean_w(a) + lambda_h (mean_all(a') - mean_w(a')))
    B likewise, and the estimate is A / B

lambda_h is the slope of the label's residual z = a - (A / B) b on the predicted one:
the weight with the least variance. 0 ignores the judge; a useless judge gets it.

Variance: of z - lambda z', within strata, with the factor 1 - probability for a finite
population (the labelled items belong to it). The interval is Wilson's at the effective
number of labels n_eff = p (1 - p) / variance, with a t quantile. Six corrections
keep its coverage with 100 labels, `design/estimates-from-labels.md` has the figures:

leverage   Lambda and the ratio are fitted to the same labels, whose residuals are
           therefore too small. Squared ones are divided by 1 - h, with h the leverage
           of a label in both (HC2: MacKinnon and White, "Some heteroskedasticity-
           consistent covariance matrix estimators", 1985).
unseen     A fifth of a label more, on which the judge is right as often as wrong,
           counts in the variance; else a judge without a visible error would be exact.
kurtosis   A variance that rests on a few large residuals is itself uncertain. Its
           degrees of freedom are Satterthwaite's, after taking off the kurtosis of a
           binomial count, for which Wilson's form already allows.
skewness   Wilson's form leans an interval to 1/2, as the skewness of a binomial count
           asks for. That of weighted residuals may differ. An interval is shifted by
           (2 z^2 + 1) / 6 times the third moment of the estimate over its variance
           (Hall, "Theoretical comparison of bootstrap confidence intervals", 1988);
           half of what this is beyond a binomial count shifts Wilson's, as the moment
           rests on few residuals, and less where they have unequal weights.
few        The variance rests on (sum e^2)^2 / sum e^4 effective residuals e. Where
           these are fewer than `FEW`, the ends reach at least to Clopper and
           Pearson's at the effective number of labels (Korn and Graubard, "Confidence
           intervals for proportions with small expected number of positive counts
           estimated from survey data", 1998). Such an interval is conservative.
fallback   Where the interval would be more than 5 % wider than that of labels alone,
           labels alone are used.

What it takes: drawn items are labelled whatever the label is, and labels are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from jobs.kit.metrics.columns import Floats, quotient

UNSEEN: Final = 0.2
"""Labels that the variance counts beside those at hand, half of them misjudged."""

FEW: Final = 30.0
"""Effective residuals below which an interval is at least the exact one.

With fewer, coverage depends on whether a rare residual is seen. Health statistics flag
proportions of an effective sample below 30 too (Parker et al., "National Center for
Health Statistics data presentation standards for proportions", 2017).
"""

MOST_WIDER: Final = 1.05
"""An interval wider than this, in widths of labels alone, is replaced by the latter."""

LEAST_LABELS: Final = 2
"""Labels of a stratum without which its variance is unknown."""

MOST_WEIGHT: Final = 2.0
"""Largest lambda. Above 1 it stretches predictions that are too close to the mean."""

_POOLED: Final = 10.0
"""Labels that the slope of all strata weighs in the slope of each one."""

_MOST_LEVERAGE: Final = 0.7
"""A label that is nearly alone in what it says counts as one of this leverage."""

_GRID: Final = 1024
"""Points between which the quantiles of many data sets are interpolated."""

_SKEWNESS: Final = 0.5
"""Part of the skewness beyond that of a binomial count that shifts an interval."""

_TINY: Final = 1e-12


class Terms(NamedTuple):
    """Numerator and denominator of a metric: a row an item, or their means."""

    above: Floats
    below: Floats


TermsOf: TypeAlias = Callable[[Floats, Floats], Terms]
"""The terms of items, from the truth (or a prediction of it) and a model's verdict."""


def _prevalence(truth: Floats, verdict: Floats) -> Terms:
    return Terms(truth, np.ones_like(truth + verdict))


def _accuracy(truth: Floats, verdict: Floats) -> Terms:
    right = truth * verdict + (1 - truth) * (1 - verdict)
    return Terms(right, np.ones_like(right))


def _precision(truth: Floats, verdict: Floats) -> Terms:
    return Terms(truth * verdict, verdict + 0 * truth)


def _recall(truth: Floats, verdict: Floats) -> Terms:
    return Terms(truth * verdict, truth + 0 * verdict)


def _specificity(truth: Floats, verdict: Floats) -> Terms:
    return _recall(1 - truth, 1 - verdict)


def _npv(truth: Floats, verdict: Floats) -> Terms:
    return _precision(1 - truth, 1 - verdict)


def _f1(truth: Floats, verdict: Floats) -> Terms:
    return Terms(2 * truth * verdict, truth + verdict)


RATIOS: Final[Mapping[str, TermsOf]] = MappingProxyType(
    {
        "prevalence": _prevalence,
        "accuracy": _accuracy,
        "precision": _precision,
        "recall": _recall,
        "specificity": _specificity,
        "npv": _npv,
        "f1": _f1,
    }
)
"""Metrics that can be estimated, by name. A total is N times the prevalence."""


class Bounds(NamedTuple):
    """Values with the ends of their intervals; NaN where undefined."""

    value: Floats
    lo: Floats
    hi: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledStratum:
    """The labels of a stratum, and the predictions for all its items.

    Arrays may have leading axes, for independent data sets of one shape.
    """

    size: int  #: items, labelled or not
    truth: Terms  #: of each label, shape (..., n)
    predicted: Terms  #: the same terms with predictions, shape (..., n)
    predicted_means: Terms  #: over all items of the stratum, shape (...)
    probabilities: Floats  #: that the draw included each labelled item, shape (..., n)
    counts: Floats | None = None  #: labels that are alike in a row; None: one each

    @property
    def n(self) -> int:
        """Labels; the fewest of any data set."""
        if self.counts is None:
            return int(self.truth.above.shape[-1])
        return int(self.counts.sum(-1).min())


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredEstimates:
    """An estimate by prediction-powered inference, next to the two simple ones."""

    powered: Bounds
    labels_alone: Bounds
    weights: (
        Floats  #: lambda by stratum, on the last axis; 0 where labels alone are used
    )
    effective: Floats  #: labels of a simple random draw that would give this variance
    quantile: Floats  #: of t, by which the interval is as wide as it is
    residuals: Floats  #: effective number of those that the variance rests on


def powered_estimates(
    strata: Sequence[LabelledStratum], terms_of: TermsOf, level: float = 0.95
) -> PoweredEstimates:
    """Estimate a ratio metric from *strata*.

    Raises:
        ValueError: a stratum has fewer than two labels, or there is none.
    """
    if not strata:
        raise ValueError("An estimate needs at least one stratum.")
    for number, stratum in enumerate(strata, 1):
        if stratum.n < LEAST_LABELS:
            raise ValueError(
                f"Stratum {number} has {stratum.n} labels; an interval needs two or "
                "more. Label more items there, or join it with another stratum."
            )
    items = sum(stratum.size for stratum in strata)
    unseen = _unseen_terms(terms_of)
    seen = [_Weighed.of(stratum, items) for stratum in strata]
    wider = [stratum.with_unseen(*unseen) for stratum in seen]
    n, h = sum(stratum.n for stratum in strata), len(strata)
    zeros = [np.zeros(seen[0].lead)] * h

    alone = _Variation.of(wider, zeros)
    weights = zeros if n <= 2 * h else _slopes(wider)
    judged = _Variation.of(wider, weights, is_fitted=True)

    # unseen labels count in variances, not in estimates
    alone_value, value = _value(seen, zeros), _value(seen, weights)
    size = alone.spread / np.maximum(alone.variance, _TINY) * (n - h) / (n + UNSEEN)
    ratio = judged.variance / np.maximum(alone.variance, _TINY)
    judged_size = size / np.maximum(ratio, _TINY)
    alone_t = _quantile(alone.freedom(size, n - h - 1), level)
    judged_t = _quantile(judged.freedom(judged_size, n - h - 1), level)
    trust = _SKEWNESS / _design_effect(seen) ** 2
    by_labels = alone.bounds(alone_value, size, alone_t, trust, level)
    powered = judged.bounds(value, judged_size, judged_t, trust, level)

    width = by_labels.hi - by_labels.lo
    is_fallback = ~(powered.hi - powered.lo <= MOST_WIDER * width)
    return PoweredEstimates(
        powered=Bounds(
            *(np.where(is_fallback, *x) for x in zip(by_labels, powered, strict=True))
        ),
        labels_alone=by_labels,
        weights=np.stack([np.where(is_fallback, 0.0, w) for w in weights], axis=-1),
        effective=np.where(is_fallback, size, judged_size),
        quantile=np.where(is_fallback, alone_t, judged_t),
        residuals=np.where(is_fallback, alone.residuals, judged.residuals),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weighed:
    """A stratum with what each label counts."""

    share: float  #: of all items
    truth: Terms
    predicted: Terms
    predicted_means: Terms
    weights: Floats  #: items that a label stands for
    unsampled: Floats  #: 1 - probability, the finite population factor
    counts: Floats  #: labels that a row is; less than 1 for unseen ones

    @classmethod
    def of(cls, stratum: LabelledStratum, items: int) -> _Weighed:
        chances = stratum.probabilities
        return cls(
            share=stratum.size / items,
            truth=stratum.truth,
            predicted=stratum.predicted,
            predicted_means=stratum.predicted_means,
            weights=1 / chances,
            unsampled=1 - chances,
            counts=np.ones_like(chances) if stratum.counts is None else stratum.counts,
        )

    @property
    def lead(self) -> tuple[int, ...]:
        return self.weights.shape[:-1]

    @property
    def n(self) -> Floats:
        return np.asarray(self.counts.sum(-1))

    @property
    def mean_unsampled(self) -> Floats:
        """Mean finite population factor of the labels."""
        return np.asarray((self.counts * self.unsampled).sum(-1) / self.n)

    @property
    def _heaviest(self) -> Floats:
        seen = np.where(self.counts > 0, self.weights, 0.0)
        return np.asarray(seen.max(-1, keepdims=True))

    def with_unseen(self, truth: Terms, predicted: Terms) -> _Weighed:
        """Add rows of `UNSEEN` labels, as heavy as the heaviest label."""
        rows = len(truth.above)

        def joined(seen: Floats, more: Floats) -> Floats:
            return np.concatenate(
                [seen, np.broadcast_to(more, (*seen.shape[:-1], rows))], axis=-1
            )

        return _Weighed(
            share=self.share,
            truth=Terms(*map(joined, self.truth, truth)),
            predicted=Terms(*map(joined, self.predicted, predicted)),
            predicted_means=self.predicted_means,
            weights=joined(self.weights, self._heaviest),
            unsampled=joined(self.unsampled, self.mean_unsampled[..., None]),
            counts=joined(self.counts, np.full(1, UNSEEN * self.share / rows)),
        )

    def mean(self, values: Floats) -> Floats:
        """Weighted mean over labels."""
        weights = self.weights * self.counts
        return np.asarray((weights * values).sum(-1) / weights.sum(-1))

    def totals(self, weight: Floats) -> Terms:
        """This stratum's part of the two means of the population."""
        above, below = (
            self.share * (self.mean(t) + weight * (everywhere - self.mean(p)))
            for t, p, everywhere in zip(
                self.truth, self.predicted, self.predicted_means, strict=True
            )
        )
        return Terms(above, below)

    def residuals(self, terms: Terms, value: Floats) -> Floats:
        """Weighted residuals of labels from a ratio, around their mean."""
        z = terms.above - value[..., None] * terms.below
        weights = self.weights * self.counts
        mean_weight = weights.sum(-1, keepdims=True) / self.n[..., None]
        centred = z - self.mean(z)[..., None]
        return np.asarray(self.weights / mean_weight * centred)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variation:
    """The variance of an estimate, and how well it is known."""

    variance: Floats
    spread: Floats  #: p (1 - p), at the value that unseen labels are part of
    residuals: Floats  #: effective number of those that it rests on
    wobble: Floats  #: squared coefficient of variation of the variance, halved
    lean: Floats  #: third moment of the estimate, in variances
    value: Floats
    unsampled: Floats  #: mean finite population factor

    @classmethod
    def of(
        cls,
        strata: Sequence[_Weighed],
        weights: Sequence[Floats],
        *,
        is_fitted: bool = False,
    ) -> _Variation:
        """The variance with these lambdas.

        Args:
            strata: with unseen labels.
            weights: lambda by stratum.
            is_fitted: the same labels gave lambda; correct for their leverage.
        """
        value = _value(strata, weights)
        leverages = _leverages(strata, weights, value) if is_fitted else None
        total, apart, third, fourth = np.zeros((4, *strata[0].lead))
        for number, (stratum, weight) in enumerate(zip(strata, weights, strict=True)):
            z = stratum.residuals(stratum.truth, value)
            predicted = stratum.residuals(stratum.predicted, value)
            scale = (stratum.share / stratum.n) ** 2
            residuals = z - weight[..., None] * predicted
            parts = stratum.unsampled * residuals**2
            if leverages is not None:
                parts = parts / (1 - leverages[number])
            sums = (stratum.counts * parts).sum(-1)
            squares = (stratum.counts * parts**2).sum(-1)
            total = total + scale * sums
            apart = apart + scale**2 * (squares - sums**2 / stratum.n)
            cubes = np.copysign(parts**1.5, residuals)
            third = third + scale**1.5 * (stratum.counts * cubes).sum(-1)
            fourth = fourth + scale**2 * squares
        below = sum(
            stratum.totals(weight).below
            for stratum, weight in zip(strata, weights, strict=True)
        )
        return cls(
            variance=quotient(total, np.square(below)),
            spread=value * (1 - value),
            residuals=np.nan_to_num(quotient(total**2, fourth), nan=np.inf),
            wobble=apart / (2 * np.maximum(total, _TINY) ** 2),
            lean=quotient(third / np.maximum(total, _TINY), np.where(total, below, 0)),
            value=value,
            unsampled=np.sum(
                [stratum.share * stratum.mean_unsampled for stratum in strata],
                axis=0,
            ),
        )

    def bounds(
        self, value: Floats, size: Floats, t: Floats, trust: Floats, level: float
    ) -> Bounds:
        """Return the interval of an estimate, shifted by its skewness."""
        shift = trust * self._excess_lean(size)
        leaning = _leaning(wilson_bounds(value, size, t), shift, level)
        return at_least_exact(leaning, size, t, self.residuals, level)

    def _excess_lean(self, size: Floats) -> Floats:
        """Return by how much `lean` exceeds that of a binomial count of this size.

        None where both lean to one side and a count does more: it is rare residuals
        that make the difference, and few labels may not show any.
        """
        binomial = (1 - 2 * self.value) / np.maximum(size, _TINY)
        excess = np.nan_to_num(self.lean - binomial)
        is_weaker = (self.lean * binomial > 0) & (abs(self.lean) < abs(binomial))
        return np.asarray(np.where(is_weaker, 0.0, excess))

    def freedom(self, size: Floats, most: int) -> Floats:
        """Degrees of freedom: at most *most*, fewer where the kurtosis is high.

        The finite population makes a draw worth more labels, not their kurtosis less.
        """
        hits = np.maximum(size * self.unsampled * self.spread, _TINY)
        binomial = np.maximum(0.0, (1 - 4 * self.spread) / (2 * hits))
        excess = np.maximum(0.0, self.wobble - binomial)
        return np.asarray(np.maximum(2.0, 1 / (1 / max(1, most) + excess)))


def _value(strata: Sequence[_Weighed], weights: Sequence[Floats]) -> Floats:
    parts = [s.totals(weight) for s, weight in zip(strata, weights, strict=True)]
    above = np.sum([part.above for part in parts], axis=0)
    below = np.sum([part.below for part in parts], axis=0)
    ratio = quotient(above, np.where(below > _TINY, below, 0.0))
    return np.asarray(np.clip(ratio, 0.0, 1.0), dtype=np.float64)


def _slopes(strata: Sequence[_Weighed]) -> list[Floats]:
    """Lambda of each stratum, partly that of all.

    A second pass uses residuals from the estimate that the first one gives.
    """
    weights = [np.zeros(strata[0].lead)] * len(strata)
    for _ in range(2):
        value = _value(strata, weights)
        products, squares = [], []
        for stratum in strata:
            z = stratum.residuals(stratum.truth, value)
            predicted = stratum.residuals(stratum.predicted, value)
            counts = stratum.counts * stratum.unsampled
            products.append((counts * z * predicted).sum(-1))
            squares.append((counts * predicted**2).sum(-1))
        slopes = (
            above / np.maximum(below, _TINY)
            for above, below in zip(
                _pooled(products, strata), _pooled(squares, strata), strict=True
            )
        )
        weights = [np.clip(slope, 0.0, MOST_WEIGHT) for slope in slopes]
    return weights


def _leverages(
    strata: Sequence[_Weighed], weights: Sequence[Floats], value: Floats
) -> list[Floats]:
    """Return the leverage of labels: the part of a residual that the fits remove."""
    denominators = [s.weights * s.truth.below for s in strata]
    sums_below = [
        (s.counts * b).sum(-1) for s, b in zip(strata, denominators, strict=True)
    ]
    whole = np.sum(sums_below, axis=0)
    squares = [s.unsampled * s.residuals(s.predicted, value) ** 2 for s in strata]
    sums = [
        (s.counts * square).sum(-1) for s, square in zip(strata, squares, strict=True)
    ]
    leverages = []
    for below, square, fitted, weight in zip(
        denominators, squares, _pooled(sums, strata), weights, strict=True
    ):
        of_ratio = below / np.maximum(whole, _TINY)[..., None]
        of_slope = square / np.maximum(fitted, _TINY)[..., None]
        leverage = of_ratio + np.where(weight[..., None] > 0, of_slope, 0.0)
        leverages.append(np.minimum(leverage, _MOST_LEVERAGE))
    return leverages


def _pooled(moments: Sequence[Floats], strata: Sequence[_Weighed]) -> list[Floats]:
    """Sums over the labels of each stratum, with `_POOLED` labels of all strata."""
    labels = np.sum([stratum.n for stratum in strata], axis=0)
    pooled = np.sum(moments, axis=0) * _POOLED / labels
    return [moment + pooled for moment in moments]


def _unseen_terms(terms_of: TermsOf) -> tuple[Terms, Terms]:
    """The terms of all labels that may not have been seen, true and predicted."""
    truth, prediction, verdict = (
        np.array(column, dtype=np.float64)
        for column in zip(*product((0, 1), repeat=3), strict=True)
    )
    true, predicted = terms_of(truth, verdict), terms_of(prediction, verdict)
    counts = (true.below > 0) | (predicted.below > 0)
    return (
        Terms(*(column[counts] for column in true)),
        Terms(*(column[counts] for column in predicted)),
    )


def wilson_bounds(value: Floats, size: Floats, t: Floats) -> Bounds:
    """Wilson's interval of a share of effective size, with any quantile."""
    size, value = np.broadcast_arrays(np.maximum(size, _TINY), value)
    scale = size + t * t
    centre = (size * value + t * t / 2) / scale
    half = t / scale * np.sqrt(size * value * (1 - value) + t * t / 4)
    lo = np.where(value <= 0, 0.0, np.maximum(0.0, centre - half))
    hi = np.where(value >= 1, 1.0, np.minimum(1.0, centre + half))
    return Bounds(value, lo, hi)


def at_least_exact(
    bounds: Bounds, size: Floats, t: Floats, residuals: Floats, level: float
) -> Bounds:
    """Widen intervals that rest on few residuals to Clopper and Pearson's."""
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to load

    is_few = residuals < FEW
    z = _quantile(np.asarray(np.inf), level)
    exact_size = np.where(is_few, size * np.square(z / t), 1.0)
    hits, tail = exact_size * bounds.value, (1 - level) / 2
    misses = exact_size - hits
    lo = betaincinv(np.maximum(hits, _TINY), misses + 1, tail)
    hi = betaincinv(hits + 1, np.maximum(misses, _TINY), 1 - tail)
    return Bounds(
        bounds.value,
        np.where(is_few, np.minimum(bounds.lo, lo), bounds.lo),
        np.where(is_few, np.maximum(bounds.hi, hi), bounds.hi),
    )


def _leaning(bounds: Bounds, lean: Floats, level: float) -> Bounds:
    """Shift an interval by a skewness: at most by a quarter of its width.

    An end at 0 or 1 stays, and the value stays inside.
    """
    z = _quantile(np.asarray(np.inf), level)
    most = (bounds.hi - bounds.lo) / 4
    shift = np.clip((2 * z * z + 1) / 6 * lean, -most, most)
    lo = np.clip(bounds.lo + shift, 0.0, bounds.value)
    hi = np.clip(bounds.hi + shift, bounds.value, 1.0)
    return Bounds(
        bounds.value,
        np.where(bounds.lo > 0, lo, bounds.lo),
        np.where(bounds.hi < 1, hi, bounds.hi),
    )


def _design_effect(strata: Sequence[_Weighed]) -> Floats:
    """Kish's, from unequal weights: 1 where all labels stand for as many items."""
    counts = [stratum.counts for stratum in strata]
    weights = [stratum.weights for stratum in strata]
    n = np.sum([c.sum(-1) for c in counts], axis=0)
    total = np.sum([(c * w).sum(-1) for c, w in zip(counts, weights, strict=True)], 0)
    squares = np.sum(
        [(c * w * w).sum(-1) for c, w in zip(counts, weights, strict=True)], 0
    )
    return np.asarray(n * squares / np.square(total))


def _quantile(freedom: Floats, level: float) -> Floats:
    from scipy.special import stdtrit  # noqa: PLC0415 - slow to load

    if freedom.size > _GRID:  # each takes 20 us; interpolated ones are off by < 1e-6
        inverse, quantiles = _quantile_grid(level)
        return np.asarray(np.interp(1 / freedom, inverse, quantiles))
    return np.asarray(stdtrit(freedom, 0.5 + level / 2), dtype=np.float64)


@cache
def _quantile_grid(level: float) -> tuple[Floats, Floats]:
    """Quantiles of t by 1 / degrees of freedom, from many to 2."""
    inverse = np.linspace(1e-6, 0.5, _GRID)
    return inverse, _quantile(1 / inverse, level)
