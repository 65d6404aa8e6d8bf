"""Counts a stratum by review, and declares the measures of these counts.

Intervals are drawn by review; Wilson's are given in addition for proportions, and
assume independent records.

Metrics carry the notes that readers need. A near miss is unjudged: the review may never
have seen it, so "wrongly included" is true of the set, not of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from jobs.kit.measurements import Measurement, count, counts, pooled, with_wilson
from jobs.kit.measures import Measure, RateMeasure, ValueMeasure, measured
from jobs.kit.metrics import (
    NOT_NEGATIVE,
    SHARE,
    SIGNED,
    Range,
    Ratio,
    Support,
    ppv_columns,
    rate_columns,
)
from jobs.kit.metrics.cluster_statistics import Derived
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.screening.decisions import CALL_BY_OUTCOME, OUTCOMES, UNDECIDED, DecisionView

READINGS: Mapping[str, int] = {"as_include": 1, "as_exclude": 0}
"""Decision assumed for undecided records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionCells:
    """A confusion matrix, with one number per cell and review."""

    tp: Floats
    fp: Floats
    tn: Floats
    fn: Floats
    records: Floats  #: all of the stratum, in the matrix or not

    @property
    def n(self) -> Floats:
        """Records in the matrix."""
        return self.tp + self.fp + self.tn + self.fn

    def derived(self, word: str, within: Range = SHARE) -> Derived:
        """Return one of the `rate_columns`, of the summed cells."""
        return self._derived(lambda *cells: rate_columns(*cells)[word], within)

    def derived_ppv(self, prevalence: float) -> Derived:
        """Return the precision at another prevalence."""

        def formula(*cells: Floats) -> Floats:
            rates = rate_columns(*cells)
            return ppv_columns(rates["sensitivity"], rates["specificity"], prevalence)

        return self._derived(formula)

    def _derived(
        self, formula: Callable[..., Floats], within: Range = SHARE
    ) -> Derived:
        return Derived(
            columns=(self.tp, self.fp, self.tn, self.fn),
            formula=formula,
            n=int(self.n.sum()),
            support=Support.of_classes(self.tp + self.fn, self.tn + self.fp),
            range=within,
        )

    def pooled(self) -> tuple[int, int, int, int]:
        """Return tp, fp, tn, fn of all reviews together."""
        tp, fp, tn, fn = (int(c.sum()) for c in (self.tp, self.fp, self.tn, self.fn))
        return tp, fp, tn, fn


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCounts:
    """Counts of a stratum under one view, by review."""

    records: Floats
    positives: Floats
    decided: ConfusionCells  #: decided records only
    readings: Mapping[str, ConfusionCells]
    """All records, by the decision assumed for undecided ones."""
    outcomes: Mapping[str, int]  #: records of the stratum, by outcome
    imputed: int  #: records that rank without a p_include
    prevalences: tuple[float, ...]  #: for which precision is predicted

    @property
    def total(self) -> int:
        """Records of the stratum."""
        return int(self.records.sum())


def count_stratum(view: DecisionView, rows: Bools) -> StratumCounts:
    """Count the *rows* of a view."""
    records = view.records
    m = len(records.reviews)
    review, label = records.review[rows], records.label[rows]
    call = view.call[rows]
    by_outcome = np.bincount(view.outcome[rows], minlength=len(OUTCOMES)).tolist()
    # regardless of the setting for unclear: readings are the same under all
    outcome_call = CALL_BY_OUTCOME[view.outcome[rows]]
    by_review = _by_review(review, m)

    def cells(calls: Ints) -> ConfusionCells:
        is_decided = calls != UNDECIDED
        # 0: true negative, 1: false positive, 2: false negative, 3: true positive
        codes = (review * 4 + label * 2 + calls)[is_decided]
        tn, fp, fn, tp = _by_review(codes, 4 * m).reshape(m, 4).T
        return ConfusionCells(tp=tp, fp=fp, tn=tn, fn=fn, records=by_review)

    return StratumCounts(
        records=by_review,
        positives=_by_review(review[label == 1], m),
        decided=cells(call),
        readings={
            name: cells(np.where(outcome_call == UNDECIDED, read_as, outcome_call))
            for name, read_as in READINGS.items()
        },
        outcomes=dict(zip(OUTCOMES, by_outcome, strict=True)),
        imputed=int(view.imputed[rows].sum()),
        prevalences=tuple(dict.fromkeys(view.settings.prevalence)),
    )


def _by_review(review: Ints, m: int) -> Floats:
    return np.bincount(review, minlength=m).astype(np.float64)


COUNTS: Mapping[str, ValueMeasure[StratumCounts]] = {
    "n": ValueMeasure(
        "Records", "Number of records", of=lambda c: count(c.total, c.total)
    ),
    "positives": ValueMeasure(
        "Included papers",
        "Number of papers that the reviews include",
        of=lambda c: count(int(c.positives.sum()), c.total),
    ),
    "reviews": ValueMeasure(
        "Reviews",
        "Number of reviews",
        of=lambda c: count(int((c.records > 0).sum()), c.total),
    ),
    "decided": ValueMeasure(
        "Decided records",
        "Number of records that the model includes or excludes",
        of=lambda c: count(int(c.decided.n.sum()), c.total),
    ),
    "tp": ValueMeasure(
        "True positives",
        "Number of included papers that the model includes",
        "higher",
        of=lambda c: count(int(c.decided.tp.sum()), c.total),
    ),
    "fp": ValueMeasure(
        "False positives",
        "Number of negatives that the model includes",
        "lower",
        of=lambda c: count(int(c.decided.fp.sum()), c.total),
    ),
    "tn": ValueMeasure(
        "True negatives",
        "Number of negatives that the model excludes",
        "higher",
        of=lambda c: count(int(c.decided.tn.sum()), c.total),
    ),
    "fn": ValueMeasure(
        "False negatives",
        "Number of included papers that the model excludes",
        "lower",
        of=lambda c: count(int(c.decided.fn.sum()), c.total),
    ),
    "outcome.{outcome}": ValueMeasure(
        "Records with outcome {outcome}",
        "Number of records whose outcome is {outcome}",
        of=lambda c: counts(c.outcomes, c.total),
    ),
    "imputed": ValueMeasure(
        "Records ranked by decision",
        "Number of records without a probability, which rank by decision",
        of=lambda c: count(c.imputed, c.total),
    ),
}

RATIO_CAVEAT = (
    "depends on this set's ratio of negatives, which may differ from a search's"
)
"""Note of measures that depend on the share of included papers."""

NEAR_MISS_CAVEAT = "near misses are unjudged, not known to be ineligible"

RATES: Mapping[str, RateMeasure[ConfusionCells]] = {
    "coverage": RateMeasure(
        "Coverage",
        "Share of records that the model decided",
        "higher",
        definition="{key}@1(decided / records; {over})",
        of=lambda c: Ratio(c.n, c.records),
    ),
    "sensitivity": RateMeasure(
        "Sensitivity",
        "Of the papers that the reviews include, the share that the model includes "
        "among those that it decided",
        "higher",
        definition="{key}@1(tp / (tp + fn); {over})",
        of=lambda c: Ratio(c.tp, c.tp + c.fn),
    ),
    "specificity": RateMeasure(
        "Specificity",
        "Of the negatives that the model decided, the share that it excludes",
        "higher",
        definition="{key}@1(tn / (tn + fp); {over})",
        of=lambda c: Ratio(c.tn, c.tn + c.fp),
    ),
    "fpr": RateMeasure(
        "False positive rate",
        "Of the negatives that the model decided, the share that it includes",
        "lower",
        definition="{key}@1(fp / (fp + tn); {over})",
        of=lambda c: Ratio(c.fp, c.fp + c.tn),
    ),
    "precision": RateMeasure(
        "Precision",
        "Of the papers that the model includes, the share that the reviews include",
        "higher",
        definition="{key}@1(tp / (tp + fp); {over})",
        of=lambda c: Ratio(c.tp, c.tp + c.fp),
        note=RATIO_CAVEAT,
    ),
    "npv": RateMeasure(
        "Negative predictive value",
        "Of the papers that the model excludes, the share that the reviews do not "
        "include",
        "higher",
        definition="{key}@1(tn / (tn + fn); {over})",
        of=lambda c: Ratio(c.tn, c.tn + c.fn),
        note=RATIO_CAVEAT,
    ),
    "f1": RateMeasure(
        "F1",
        "Harmonic mean of precision and sensitivity",
        "higher",
        definition="{key}@1(2 tp / (2 tp + fp + fn); {over})",
        of=lambda c: Ratio(2 * c.tp, 2 * c.tp + c.fp + c.fn),
        note=RATIO_CAVEAT,
    ),
    "f2": RateMeasure(
        "F2",
        "Harmonic mean of precision and sensitivity, with sensitivity weighted four "
        "times as much",
        "higher",
        definition="{key}@1(5 tp / (5 tp + fp + 4 fn); {over})",
        of=lambda c: Ratio(5 * c.tp, 5 * c.tp + c.fp + 4 * c.fn),
        note=RATIO_CAVEAT,
    ),
    "accuracy": RateMeasure(
        "Accuracy",
        "Share of decided records with the right decision",
        "higher",
        definition="{key}@1((tp + tn) / decided; {over})",
        of=lambda c: Ratio(c.tp + c.tn, c.n),
        note=RATIO_CAVEAT,
    ),
    "nnr": RateMeasure(
        "Number needed to read",
        "Papers that the model includes for each one that the reviews include",
        "lower",
        definition="{key}@1(1 / precision; {over})",
        of=lambda c: Ratio(c.tp + c.fp, c.tp, NOT_NEGATIVE),
        note=RATIO_CAVEAT,
    ),
    "workload_reduction": RateMeasure(
        "Workload reduction",
        "Share of decided records that the model excludes, rightly or wrongly",
        definition="{key}@1((tn + fn) / decided; {over})",
        of=lambda c: Ratio(c.tn + c.fn, c.n),
        note=RATIO_CAVEAT,
    ),
    "balanced_accuracy": RateMeasure(
        "Balanced accuracy",
        "Mean of sensitivity and specificity; chance is 0.5",
        "higher",
        definition="{key}@1((sensitivity + specificity) / 2; {over})",
        of=lambda c: c.derived("balanced_accuracy"),
    ),
    "mcc": RateMeasure(
        "Matthews correlation",
        "Correlation of decisions with the reviews' own; chance is 0",
        "higher",
        definition="{key}@1(Matthews; an empty margin gives 0; {over})",
        of=lambda c: c.derived("mcc", SIGNED),
    ),
    "kappa": RateMeasure(
        "Cohen's kappa",
        "Agreement of decisions with the reviews' own beyond chance",
        "higher",
        definition="{key}@1(Cohen's, decision against label; {over})",
        of=lambda c: c.derived("kappa", SIGNED),
    ),
    "ac1": RateMeasure(
        "Gwet's AC1",
        "Agreement of decisions with the reviews' own beyond chance, robust where "
        "one class is rare",
        "higher",
        definition="{key}@1(Gwet's, decision against label; {over})",
        of=lambda c: c.derived("ac1", SIGNED),
    ),
}
"""Rates of a confusion matrix, in display order."""

PROPORTIONS = (
    "coverage",
    "sensitivity",
    "specificity",
    "fpr",
    "precision",
    "npv",
    "accuracy",
    "workload_reduction",
)
"""Rates that also have Wilson's interval."""

READ_BOTH_WAYS = {word: RATES[word] for word in ("sensitivity", "specificity", "f1")}
"""Rates that are also computed under each reading of undecided records."""

READING_WORDS: Mapping[str, Measure] = {
    "as_include.sensitivity": Measure(
        "Sensitivity, undecided as included",
        "Of the papers that the reviews include, the share that is kept where a "
        "person reads all records that the model leaves undecided",
        "higher",
    ),
    "as_exclude.sensitivity": Measure(
        "Sensitivity, undecided as excluded",
        "Of the papers that the reviews include, the share that the model includes, "
        "with undecided papers lost",
        "higher",
    ),
    "as_include.specificity": Measure(
        "Specificity, undecided as included",
        "Of the negatives, the share that nobody has to read where a person reads "
        "all records that the model leaves undecided",
        "higher",
    ),
    "as_exclude.specificity": Measure(
        "Specificity, undecided as excluded",
        "Of the negatives, the share that is not included, with undecided records "
        "excluded",
        "higher",
    ),
}
"""Names and meanings that differ from those of the base rates."""

PREDICTED: Mapping[str, ValueMeasure[StratumCounts]] = {
    "ppv_at_{prevalence*}": ValueMeasure(
        "Precision at prevalence {prevalence}",
        "Precision that sensitivity and specificity give where a share of "
        "{prevalence} of all records is eligible",
        "higher",
        of=lambda c: {
            f"{p:g}": pooled(c.decided.derived_ppv(p)) for p in c.prevalences
        },
        definition="ppv_at_prevalence@1(prevalence={prevalence})",
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateGroup:
    """Rates of one confusion matrix of a stratum."""

    reading: str  #: prefix of their names, such as `as_include.`; empty: decided
    rates: Mapping[str, RateMeasure[ConfusionCells]]
    cells: ConfusionCells
    over: str  #: the records, for definitions


def rate_groups(view: DecisionView, counts: StratumCounts) -> tuple[RateGroup, ...]:
    """Return the rates of the decided records, and of all under each reading."""
    tau = view.settings.threshold
    by = "" if tau is None else f", p_include >= {tau:g}"
    decided = RateGroup(
        reading="",
        rates=RATES,
        cells=counts.decided,
        over=f"decided records, unclear={view.settings.unclear}{by}",
    )
    readings = (
        RateGroup(
            reading=f"{reading}.",
            rates=READ_BOTH_WAYS,
            cells=cells,
            over=f"all records, undecided {reading}{by}",
        )
        for reading, cells in counts.readings.items()
    )
    return decided, *readings


def pooled_rates(
    view: DecisionView, name: str, counts: StratumCounts
) -> Iterator[Measurement]:
    """Yield the rates of all records of a stratum together.

    Args:
        view: the decisions.
        name: name of the stratum.
        counts: its counts.
    """
    level = view.settings.level
    for group in rate_groups(view, counts):
        path = f"{name}.micro.{group.reading}"
        for rate in measured(
            group.rates, group.cells, path=path, over=group.over, subset=name
        ):
            noted = with_caveat(rate)
            yield noted
            if rate.path.removeprefix(path) in PROPORTIONS:
                stated = f"Wilson, level={level}"
                yield with_wilson(noted, level, stated, "takes records as independent")
    yield from measured(PREDICTED, counts, path=f"{name}.micro.", subset=name)


def with_caveat(rate: Measurement) -> Measurement:
    """Add the note on near misses to a rate of their errors."""
    is_error = rate.path.rpartition(".")[2] in {"specificity", "fpr"}
    if rate.subset == "near-miss" and is_error:
        return replace(rate, note=NEAR_MISS_CAVEAT)
    return rate
