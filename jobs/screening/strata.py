"""Measures one model in one stratum: counts, rates, means over reviews, calibration.

A stratum is all records, or one kind of negatives with the included papers. Strata are
then compared with each other, to measure how much harder near misses are than other
negatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from jobs.kit.measurements import (
    MeasuredValue,
    Measurement,
    count,
    mean_over,
    with_intervals,
)
from jobs.kit.measures import ComputedMeasure, ValueMeasure, measured
from jobs.kit.metrics import (
    Ratio,
    ResampledDifference,
    Resamples,
    brier,
    ece,
    mean,
    mean_of,
)
from jobs.kit.metrics.calibration import ece_of
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.screening.decisions import DecisionView
from jobs.screening.ranking import ReviewValues, measure_ranking, ranking_measures
from jobs.screening.rates import (
    COUNTS,
    StratumCounts,
    count_stratum,
    pooled_rates,
    rate_groups,
    with_caveat,
)
from runner.scorecard import Metric


def _means(
    view: DecisionView, name: str, counts: StratumCounts, ranked: ReviewValues
) -> Iterator[Measurement]:
    """Yield the means over the reviews that have a value, with standard deviations."""
    n = int((counts.records > 0).sum())
    path = f"{name}.macro."
    for group in rate_groups(view, counts):
        for key, rate in group.rates.items():
            of = rate.of(group.cells)
            average = rate.measurement(
                key,
                mean_over(of.by_cluster(), of.range, n),
                path=f"{path}{group.reading}",
                over=group.over,
                subset=name,
            )
            yield from _with_std(with_caveat(average))
    for key, measure in ranking_measures(view.settings).items():
        value = mean_over(ranked[key], measure.range, n)
        yield from _with_std(measure.measurement(key, value, path=path, subset=name))


def _with_std(mean: Measurement) -> Iterator[Measurement]:
    yield replace(mean, definition=f"{mean.definition}; mean over reviews")
    # a standard deviation is a detail of a measure, not a measure
    yield replace(
        mean,
        path=f"{mean.path}~std",
        definition=f"{mean.definition}; standard deviation over reviews, ddof=1",
        measured=MeasuredValue(
            value=mean.measured.std,
            n=mean.measured.n,
            n_defined=mean.measured.n_defined,
        ),
        note="",
    )


BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedProbabilities:
    """The records of a stratum that have a p_include."""

    p: Floats
    label: Ints
    review: Ints  #: index of the review
    reviews: int

    @property
    def brier(self) -> MeasuredValue:
        """Brier score."""
        squares = self._by_review((self.p - self.label) ** 2)
        return MeasuredValue(
            value=brier(self.label, self.p) if len(self.p) else None,
            n=len(self.p),
            statistic=Ratio(squares, self._by_review(np.ones(len(self.p)))),
        )

    @property
    def ece(self) -> MeasuredValue:
        """Expected calibration error."""
        return MeasuredValue(
            value=ece(self.label, self.p, BINS),
            n=len(self.p),
            statistic=ece_of(self.label, self.p, self.review, BINS),
        )

    def _by_review(self, weights: Floats) -> Floats:
        # exact sums: independent of the order of records
        order = np.argsort(self.review, kind="stable")
        ends = np.searchsorted(self.review[order], np.arange(1, self.reviews))
        sums = [math.fsum(part) for part in np.split(weights[order], ends)]
        return np.array(sums[: self.reviews], dtype=np.float64)


CALIBRATION: Mapping[str, ValueMeasure[StatedProbabilities]] = {
    "brier": ValueMeasure(
        "Brier score",
        "Mean squared distance of stated probabilities from the reviews' decisions",
        "lower",
        of=lambda stated: stated.brier,
        definition="{key}@1(of p_include where there is one)",
    ),
    "ece10": ValueMeasure(
        "Expected calibration error",
        "Mean distance of stated probabilities from the share included, in ten bins",
        "lower",
        of=lambda stated: stated.ece,
        definition="{key}@1(of p_include where there is one)",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Counts and metrics of one view in one stratum."""

    name: str
    counts: StratumCounts
    by_review: ReviewValues  #: rates and ranking measures, a value per review
    metrics: tuple[Metric, ...]

    @property
    def by_path(self) -> Mapping[str, Metric]:
        """Metrics by path without the stratum."""
        return {
            metric.path.removeprefix(f"{self.name}."): metric for metric in self.metrics
        }


def measure_stratum(
    view: DecisionView, name: str, rows: Bools, draws: Resamples
) -> Stratum:
    """Measure a view in a stratum."""
    counts, ranked = count_stratum(view, rows), measure_ranking(view, rows)
    has_p = rows & ~view.imputed
    stated = StatedProbabilities(
        p=view.decisions.p[has_p],
        label=view.records.label[has_p],
        review=view.records.review[has_p],
        reviews=len(view.records.reviews),
    )
    path = f"{name}.micro."
    rates = {
        f"{group.reading}{key}": rate.of(group.cells).by_cluster()
        for group in rate_groups(view, counts)
        for key, rate in group.rates.items()
    }
    measurements = (
        *measured(COUNTS, counts, path=path, subset=name),
        *pooled_rates(view, name, counts),
        *measured(CALIBRATION, stated, path=path, subset=name),
        *_means(view, name, counts, ranked),
    )
    return Stratum(
        name=name,
        counts=counts,
        by_review={**rates, **ranked},
        metrics=tuple(with_intervals(measurements, draws)),
    )


KINDS: Mapping[tuple[str, str], ComputedMeasure] = {
    ("near-miss", "random"): ComputedMeasure(
        "Specificity, near misses minus random negatives",
        "How much less often the model excludes papers of related reviews than "
        "papers of any other, as a mean over reviews that have both",
        definition="specificity difference@1({over}, mean over reviews that have both)",
    ),
    ("near-miss", "true-excluded"): ComputedMeasure(
        "Specificity, near misses minus true exclusions",
        "How much more often the model excludes papers of related reviews than "
        "papers that the review excluded, as a mean over reviews with both",
        definition="specificity difference@1({over}, mean over reviews that have both)",
    ),
}
"""Differences of specificity, by the two kinds of negatives."""


def kind_gaps(strata: Mapping[str, Stratum]) -> Iterator[Measurement]:
    """Yield differences of specificity, paired by the reviews that have both kinds."""
    for (left, right), measure in KINDS.items():
        if left not in strata or right not in strata:
            continue
        pairs = [
            (a, b) if a is not None and b is not None else (None, None)
            for a, b in zip(
                strata[left].by_review["specificity"],
                strata[right].by_review["specificity"],
                strict=True,
            )
        ]
        firsts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
        gap = MeasuredValue(
            value=mean(a - b for a, b in pairs if a is not None and b is not None),
            n=sum(a is not None for a in firsts),
            statistic=ResampledDifference(mean_of(firsts), mean_of(seconds)),
        )
        yield measure.measurement(
            f"kinds.{left}-{right}.specificity",
            gap,
            over=f"{left} minus {right}",
            subset=f"reviews with {left} and {right}",
        )


CONTAMINATION: Mapping[str, ComputedMeasure] = {
    "contamination.implied": ComputedMeasure(
        "Implied eligible near misses",
        "Share of near misses that would have to be eligible to explain how often "
        "the model includes them, under strong assumptions",
        definition="implied contamination@1((fpr near-miss - fpr true-excluded) / "
        "(sensitivity - fpr true-excluded))",
    )
}


def implied_contamination(strata: Mapping[str, Stratum]) -> Iterator[Measurement]:
    """Yield the share of near misses that the error rates imply to be eligible."""
    near, true = strata.get("near-miss"), strata.get("true-excluded")
    if near is None or true is None:
        return
    near_fpr = near.by_path["micro.fpr"]
    share = implied(
        near_fpr.value,
        true.by_path["micro.fpr"].value,
        strata["all"].by_path["micro.sensitivity"].value,
    )
    assumed = "an estimate that rests on strong assumptions"
    for key, measure in CONTAMINATION.items():
        value = count(share, near_fpr.n)
        yield replace(
            measure.measurement(key, value, subset="near-miss"),
            note=NOT_IDENTIFIED if share is None else assumed,
        )


NOT_IDENTIFIED = "not identified"
"""Reason for a missing implied share."""


def implied(
    fpr_near: float | None, fpr_true: float | None, tpr: float | None
) -> float | None:
    """Return the share of near misses that a model's error rates imply to be eligible.

    (FPR_near - FPR_true) / (TPR - FPR_true). It assumes that the model treats eligible
    near misses like included papers and the others like true exclusions: a rough
    estimate, to be labelled as such. None if it is `NOT_IDENTIFIED`: outside [0, 1], or
    if the model does not include more of the included papers.
    """
    if fpr_near is None or fpr_true is None or tpr is None or tpr <= fpr_true:
        return None
    share = (fpr_near - fpr_true) / (tpr - fpr_true)
    return share if 0.0 <= share <= 1.0 else None
