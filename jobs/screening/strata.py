"""Measures one model in one stratum: counts, rates, means over reviews, calibration.

A stratum is all records, or one kind of negatives with the included papers. Strata are
then compared with each other: how much harder near misses are than other negatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.kit.metrics import (
    Ratio,
    ResampledDifference,
    Resamples,
    aggregate,
    brier,
    ece,
    mean,
    mean_of,
    rate_columns,
    with_interval,
)
from jobs.kit.metrics.calibration import ece_of
from jobs.kit.metrics.columns import Bools, Floats, as_value, quotient
from jobs.screening.decisions import DecisionView
from jobs.screening.ranking import ReviewValues, measure_ranking, ranking_measures
from jobs.screening.rates import (
    BETA,
    FORMULAS,
    READ_BOTH_WAYS,
    StratumCounts,
    count_stratum,
    definitions,
    metric_with_interval,
    pooled_rates,
    range_of,
)
from runner.scorecard import Metric


def rates_by_review(counts: StratumCounts) -> dict[str, list[float | None]]:
    """The rates of each review; None where one is undefined."""
    cells = counts.decided
    counted = cells.tp, cells.fp, cells.tn, cells.fn
    columns = {
        **rate_columns(*counted),
        "f2": rate_columns(*counted, beta=BETA)["fbeta"],
        "coverage": quotient(cells.n, counts.records),
        "workload_reduction": quotient(cells.tn + cells.fn, cells.n),
    }
    by_review = {word: _as_values(columns[word]) for word in FORMULAS}
    for reading, reading_cells in counts.readings.items():
        read = rate_columns(
            reading_cells.tp, reading_cells.fp, reading_cells.tn, reading_cells.fn
        )
        for word in READ_BOTH_WAYS:
            by_review[f"{reading}.{word}"] = _as_values(read[word])
    return by_review


def _as_values(column: Floats) -> list[float | None]:
    return [as_value(value) for value in column]


def means_over_reviews(
    view: DecisionView,
    name: str,
    counts: StratumCounts,
    by_review: ReviewValues,
    draws: Resamples,
) -> Iterator[Metric]:
    """The mean over the reviews that have a value, and how far they lie apart.

    Args:
        view: whose decisions they are.
        name: of the stratum.
        counts: its counts.
        by_review: the measures that are averaged.
        draws: of the reviews.
    """
    stated = {
        **definitions(view),
        **{
            word: measure.definition
            for word, measure in ranking_measures(view.settings).items()
        },
    }
    nonempty = [at for at, n in enumerate(counts.records) if n]
    intervals = draws.intervals(
        [mean_of(values, range_of(word)) for word, values in by_review.items()]
    )
    for (word, values), ends in zip(by_review.items(), intervals, strict=True):
        described = aggregate([values[at] for at in nonempty])
        path, formula = f"{name}.macro.{word}", stated[word]
        yield metric_with_interval(
            path,
            described.mean,
            n=described.n,
            definition=f"{formula}; mean over reviews",
            interval=ends,
            n_defined=described.n_defined,
            std=described.std,
        )
        # as its mean it is no measure, but a detail of one
        yield Metric(
            path=f"{path}~std",
            value=described.std,
            n=described.n,
            subset=name,
            n_defined=described.n_defined,
            definition=f"{formula}; standard deviation over reviews, ddof=1",
        )


BINS = 10


def calibration_metrics(
    view: DecisionView, name: str, rows: Bools, draws: Resamples
) -> Iterator[Metric]:
    """Brier score and calibration error of the *rows* that have a p_include.

    Args:
        view: whose decisions they are.
        name: of the stratum.
        rows: its records.
        draws: of the reviews.
    """
    has_p = rows & ~view.imputed
    p, y = view.decisions.p[has_p], view.records.label[has_p]
    review, m = view.records.review[has_p], len(view.records.reviews)
    squares = np.bincount(review, weights=(p - y) ** 2, minlength=m)
    sizes = np.bincount(review, minlength=m)
    (of_brier,) = draws.intervals(
        [Ratio(squares.astype(np.float64), sizes.astype(np.float64))]
    )
    for word, value, ends in (
        ("brier", brier(y, p) if len(p) else None, of_brier),
        (f"ece{BINS}", ece(y, p, BINS), draws.interval_of(ece_of(y, p, review, BINS))),
    ):
        yield metric_with_interval(
            f"{name}.micro.{word}",
            value,
            n=len(p),
            definition=f"{word}@1(of p_include where there is one)",
            interval=ends,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """What one view comes to in one stratum."""

    name: str
    counts: StratumCounts
    by_review: ReviewValues  #: rates and ranking measures, a value a review
    metrics: tuple[Metric, ...]

    @property
    def by_path(self) -> Mapping[str, Metric]:
        """Its metrics, by path without the stratum."""
        return {
            metric.path.removeprefix(f"{self.name}."): metric for metric in self.metrics
        }


def measure_stratum(
    view: DecisionView, name: str, rows: Bools, draws: Resamples
) -> Stratum:
    """Measure a view in a stratum."""
    counts = count_stratum(view, rows)
    by_review = {**rates_by_review(counts), **measure_ranking(view, rows)}
    return Stratum(
        name=name,
        counts=counts,
        by_review=by_review,
        metrics=(
            *_counted(name, counts),
            *pooled_rates(view, name, counts, draws),
            *calibration_metrics(view, name, rows, draws),
            *means_over_reviews(view, name, counts, by_review, draws),
        ),
    )


def _counted(name: str, counts: StratumCounts) -> Iterator[Metric]:
    total = int(counts.records.sum())
    tp, fp, tn, fn = counts.decided.pooled()
    numbers = {
        "n": total,
        "positives": int(counts.positives.sum()),
        "reviews": int((counts.records > 0).sum()),
        "decided": int(counts.decided.n.sum()),
        "tp": tp,
        "fp": fp,
        "tn": tn,
        "fn": fn,
        **{f"outcome.{word}": number for word, number in counts.outcomes.items()},
        "imputed": counts.imputed,
    }
    for word, number in numbers.items():
        yield Metric(
            path=f"{name}.micro.{word}",
            value=number,
            n=total,
            subset=name,
            definition=f"count@1({word})",
        )


PAIRS = (("near-miss", "random"), ("near-miss", "true-excluded"))


def kind_gaps(strata: Mapping[str, Stratum], draws: Resamples) -> Iterator[Metric]:
    """Differences of specificity, paired by the reviews that have both kinds."""
    for left, right in PAIRS:
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
        n_defined = sum(a is not None for a in firsts)
        (ends,) = draws.intervals(
            [ResampledDifference(mean_of(firsts), mean_of(seconds))]
        )
        gap = mean(a - b for a, b in pairs if a is not None and b is not None)
        yield Metric(
            path=f"kinds.{left}-{right}.specificity",
            value=gap,
            n=n_defined,
            subset=f"reviews with {left} and {right}",
            lo=ends.lo,
            hi=ends.hi,
            definition=with_interval(
                f"specificity difference@1({left} minus {right}, mean over reviews "
                "that have both)",
                ends,
            ),
        )


def implied_contamination(strata: Mapping[str, Stratum]) -> Iterator[Metric]:
    """The share of near misses that the error rates imply to be eligible."""
    near, true = strata.get("near-miss"), strata.get("true-excluded")
    if near is None or true is None:
        return
    near_fpr = near.by_path["micro.fpr"]
    share = implied(
        near_fpr.value,
        true.by_path["micro.fpr"].value,
        strata["all"].by_path["micro.sensitivity"].value,
    )
    yield Metric(
        path="contamination.implied",
        value=share,
        n=near_fpr.n,
        subset="near-miss",
        definition="implied contamination@1((fpr near-miss - fpr true-excluded) / "
        "(sensitivity - fpr true-excluded))",
        note=NOT_IDENTIFIED
        if share is None
        else "an estimate that rests on strong assumptions",
    )


NOT_IDENTIFIED = "not identified"
"""Why there is no implied share."""


def implied(
    fpr_near: float | None, fpr_true: float | None, tpr: float | None
) -> float | None:
    """The share of near misses that a model's error rates imply to be eligible.

    (FPR_near - FPR_true) / (TPR - FPR_true), which takes the model to treat eligible
    near misses like included papers and the others like true exclusions: an estimate
    laden with assumptions, and to be labelled so. None where it is `NOT_IDENTIFIED`:
    outside [0, 1], or a model that includes no more of the included.
    """
    if fpr_near is None or fpr_true is None or tpr is None or tpr <= fpr_true:
        return None
    share = (fpr_near - fpr_true) / (tpr - fpr_true)
    return share if 0.0 <= share <= 1.0 else None
