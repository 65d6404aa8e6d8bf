"""Computes rates over all records of a stratum, from counts by review.

Intervals are drawn by review; Wilson's are given beside the proportions and say that
they take records as independent.

Metrics carry the notes that belong beside them. A near miss is unjudged: the review may
never have seen it, so "wrongly included" is what the set says, not what is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.kit.metrics import (
    NOT_NEGATIVE,
    SHARE,
    SIGNED,
    Confusion,
    Interval,
    Range,
    Ratio,
    ResampledStatistic,
    Resamples,
    Support,
    ppv_at_prevalence,
    ppv_columns,
    rate_columns,
    rates,
    ratio,
    wilson,
    with_interval,
)
from jobs.kit.metrics.cluster_statistics import Counts
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.screening.decisions import CALL_BY_OUTCOME, OUTCOMES, UNDECIDED, DecisionView
from runner.scorecard import Metric

READINGS: Mapping[str, int] = {"as_include": 1, "as_exclude": 0}
"""What a record counts as that was neither included nor excluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionCells:
    """A confusion matrix, one number of each cell a review."""

    tp: Floats
    fp: Floats
    tn: Floats
    fn: Floats

    @property
    def n(self) -> Floats:
        """Records in the matrix."""
        return self.tp + self.fp + self.tn + self.fn

    def pooled(self) -> tuple[int, int, int, int]:
        """tp, fp, tn, fn of all reviews together."""
        tp, fp, tn, fn = (int(c.sum()) for c in (self.tp, self.fp, self.tn, self.fn))
        return tp, fp, tn, fn


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCounts:
    """A stratum under one view, by review."""

    records: Floats
    positives: Floats
    decided: ConfusionCells  #: decided records only
    readings: Mapping[str, ConfusionCells]
    """All records, by how whoever said neither counts: `as_include`, `as_exclude`."""
    outcomes: Mapping[str, int]  #: records of the stratum, by outcome
    imputed: int  #: records that rank without a p_include


def count_stratum(view: DecisionView, rows: Bools) -> StratumCounts:
    """Count the *rows* of a view."""
    records = view.records
    m = len(records.reviews)
    review, label = records.review[rows], records.label[rows]
    call = view.call[rows]
    by_outcome = np.bincount(view.outcome[rows], minlength=len(OUTCOMES)).tolist()
    is_decided = call != UNDECIDED
    # whatever the setting makes of what is unclear: a reading is the same under all
    outcome_call = CALL_BY_OUTCOME[view.outcome[rows]]
    return StratumCounts(
        records=_by_review(review, m),
        positives=_by_review(review[label == 1], m),
        decided=_cells(review[is_decided], label[is_decided], call[is_decided], m),
        readings={
            name: _cells(
                review,
                label,
                np.where(outcome_call == UNDECIDED, read_as, outcome_call),
                m,
            )
            for name, read_as in READINGS.items()
        },
        outcomes=dict(zip(OUTCOMES, by_outcome, strict=True)),
        imputed=int(view.imputed[rows].sum()),
    )


def _cells(review: Ints, label: Ints, call: Ints, m: int) -> ConfusionCells:
    # 0: true negative, 1: false positive, 2: false negative, 3: true positive
    counts = np.bincount(review * 4 + label * 2 + call, minlength=4 * m)
    table = counts.reshape(m, 4).astype(np.float64)
    return ConfusionCells(
        tp=table[:, 3], fp=table[:, 1], tn=table[:, 0], fn=table[:, 2]
    )


def _by_review(review: Ints, m: int) -> Floats:
    return np.bincount(review, minlength=m).astype(np.float64)


RATIO_CAVEAT = "goes by this set's ratio of negatives, which need not be a search's"
"""Stands beside everything that depends on how common the included papers are."""

DEPENDS_ON_RATIO = frozenset(
    {"precision", "npv", "f1", "f2", "nnr", "accuracy", "workload_reduction", "ap"}
)
"""Names of those; work saved over sampling is one too, at whatever recall."""

NEAR_MISS_CAVEAT = "near misses are unjudged, not known to be ineligible"


def metric_with_interval(
    path: str,
    value: float | None,
    *,
    n: int,
    definition: str,
    interval: Interval,
    n_defined: int | None = None,
    std: float | None = None,
) -> Metric:
    """A metric with the interval that resampled reviews give it.

    Args:
        path: begins with the stratum.
        value: None: undefined.
        n: items that it speaks about.
        definition: without how its interval was made.
        interval: of the value, from resampled reviews.
        n_defined: reviews that have a value, of a mean over reviews.
        std: over these reviews.
    """
    return Metric(
        path=path,
        value=value,
        n=n,
        subset=path.partition(".")[0],
        n_defined=n_defined,
        lo=interval.lo,
        hi=interval.hi,
        definition=with_interval(definition, interval),
        note=caveat(path, interval.dropped),
        mean=None if n_defined is None else value,
        std=std,
    )


def caveat(path: str, further: str = "") -> str | None:
    """What the metric of a path does not show; None where there is nothing to say."""
    stratum, _, measure = path.partition(".")
    word = measure.rpartition(".")[2]
    depends = word in DEPENDS_ON_RATIO or measure.startswith("macro.wss")
    notes = [RATIO_CAVEAT] if depends else []
    if stratum == "near-miss" and word in {"specificity", "fpr"}:
        notes.append(NEAR_MISS_CAVEAT)
    if further:
        notes.append(further)
    return "; ".join(notes) or None


BETA = 2.0
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
"""Those with Wilson's interval too."""

FORMULAS: Mapping[str, str] = {
    "coverage": "decided / records",
    "sensitivity": "tp / (tp + fn)",
    "specificity": "tn / (tn + fp)",
    "fpr": "fp / (fp + tn)",
    "precision": "tp / (tp + fp)",
    "npv": "tn / (tn + fn)",
    "f1": "2 tp / (2 tp + fp + fn)",
    "f2": "5 tp / (5 tp + fp + 4 fn)",
    "accuracy": "(tp + tn) / decided",
    "nnr": "1 / precision",
    "workload_reduction": "(tn + fn) / decided",
    "balanced_accuracy": "(sensitivity + specificity) / 2",
    "mcc": "Matthews; an empty margin gives 0",
    "kappa": "Cohen's, decision against label",
    "ac1": "Gwet's, decision against label",
}
"""By name, in reading order; of the decided records."""

NO_SUMS = ("balanced_accuracy", "mcc", "kappa", "ac1")
"""No ratios of sums: each replicate makes them of its own confusion matrix."""

_RANGES: Mapping[str, Range] = {
    "nnr": NOT_NEGATIVE,
    "last_relevant_rank": NOT_NEGATIVE,
    "mcc": SIGNED,
    "kappa": SIGNED,
    "ac1": SIGNED,
}
"""What a measure can be, where that is not 0 to 1."""


def range_of(word: str) -> Range:
    """The values that a measure can take; work saved can be negative."""
    return SIGNED if word.startswith("wss") else _RANGES.get(word, SHARE)


READ_BOTH_WAYS = ("sensitivity", "specificity", "f1")
"""Those that are also given with whatever is undecided read one way."""


def definitions(view: DecisionView) -> Mapping[str, str]:
    """What each rate is, whether of all records or of those of one review."""
    tau = view.settings.threshold
    by = "" if tau is None else f", p_include >= {tau:g}"
    decided = f"decided records, unclear={view.settings.unclear}{by}"
    by_word = {
        word: f"{word}@1({formula}; {decided})" for word, formula in FORMULAS.items()
    }
    for reading in READINGS:
        for word in READ_BOTH_WAYS:
            by_word[f"{reading}.{word}"] = (
                f"{word}@1({FORMULAS[word]}; all records, undecided {reading}{by})"
            )
    return by_word


def pooled_rates(
    view: DecisionView, name: str, counts: StratumCounts, draws: Resamples
) -> Iterator[Metric]:
    """The rates of the decided records, and of all records read one way or the other.

    Args:
        view: whose decisions they are.
        name: of the stratum.
        counts: its counts.
        draws: of the reviews.
    """
    yield from _decided(view, name, counts, draws)
    yield from _read_both_ways(view, name, counts, draws)
    yield from _predicted(view, name, counts, draws)


def _decided(
    view: DecisionView, name: str, counts: StratumCounts, draws: Resamples
) -> Iterator[Metric]:
    values = _values(counts)
    cells = counts.decided
    sums = {"coverage": Ratio(cells.n, counts.records), **_sums(cells)}
    intervals = dict(zip(sums, draws.intervals([*sums.values()]), strict=True))
    others = draws.intervals_of([*map(_Matrix(cells).redrawn, NO_SUMS)])
    intervals |= zip(NO_SUMS, others, strict=True)
    stated = definitions(view)
    decided = int(cells.n.sum())
    for word in FORMULAS:
        path = f"{name}.micro.{word}"
        n = int(np.sum(sums[word].denominators)) if word in sums else decided
        yield metric_with_interval(
            path,
            values[word],
            n=n,
            definition=stated[word],
            interval=intervals[word],
        )
        if word in PROPORTIONS:
            yield _wilson(view, path, sums[word], stated[word])


def _wilson(view: DecisionView, path: str, share: Ratio, definition: str) -> Metric:
    """A share of records with the interval that it has if they are independent."""
    k, n = (int(np.sum(column)) for column in (share.numerators, share.denominators))
    ends = wilson(k, n, view.settings.level)
    return Metric(
        path=f"{path}~wilson",
        value=ratio(k, n),
        n=n,
        subset=path.partition(".")[0],
        lo=ends.lo,
        hi=ends.hi,
        definition=f"{definition}; Wilson, level={view.settings.level}",
        note=caveat(path, "takes records as independent"),
    )


def _values(counts: StratumCounts) -> Mapping[str, float | None]:
    """Every rate of all decided records together."""
    tp, fp, tn, fn = counts.decided.pooled()
    whole = Confusion(tp=tp, fp=fp, tn=tn, fn=fn)
    decided = tp + fp + tn + fn
    return {
        **rates(whole),
        "f2": rates(whole, BETA)["fbeta"],
        "coverage": ratio(decided, float(counts.records.sum())),
        "workload_reduction": ratio(tn + fn, decided),
    }


def _sums(cells: ConfusionCells) -> dict[str, Ratio]:
    """The rates that are one sum by another, with what is summed by review."""
    tp, fp, tn, fn = cells.tp, cells.fp, cells.tn, cells.fn
    positives, negatives = tp + fn, tn + fp
    included, excluded = tp + fp, tn + fn
    return {
        "sensitivity": Ratio(tp, positives),
        "specificity": Ratio(tn, negatives),
        "fpr": Ratio(fp, negatives),
        "precision": Ratio(tp, included),
        "npv": Ratio(tn, excluded),
        "f1": Ratio(2 * tp, 2 * tp + fp + fn),
        "f2": Ratio(5 * tp, 5 * tp + fp + 4 * fn),
        "accuracy": Ratio(tp + tn, cells.n),
        "nnr": Ratio(included, tp, NOT_NEGATIVE),
        "workload_reduction": Ratio(excluded, cells.n),
    }


class _Matrix:
    """The confusion matrix of each replicate."""

    def __init__(self, cells: ConfusionCells) -> None:
        self._table = np.stack([cells.tp, cells.fp, cells.tn, cells.fn], axis=1)
        self.support = Support.of_classes(cells.tp + cells.fn, cells.tn + cells.fp)

    def rates(self, block: Counts) -> Mapping[str, Floats]:
        """Every rate, a number a replicate."""
        # whole numbers, so that the order of additions cannot matter
        return rate_columns(
            *np.einsum("ij,jk->ki", block.astype(np.float64), self._table)
        )

    def redrawn(self, word: str) -> ResampledStatistic:
        """One of `NO_SUMS`."""
        return ResampledStatistic(
            lambda block: self.rates(block)[word], self.support, range_of(word)
        )

    def ppv(self, prevalence: float) -> ResampledStatistic:
        """Precision foretold at a prevalence."""

        def predicted_ppv(block: Counts) -> Floats:
            columns = self.rates(block)
            return ppv_columns(
                columns["sensitivity"], columns["specificity"], prevalence
            )

        return ResampledStatistic(predicted_ppv, self.support)


def _read_both_ways(
    view: DecisionView, name: str, counts: StratumCounts, draws: Resamples
) -> Iterator[Metric]:
    """Whoever is undecided as included, and as excluded, over all records."""
    stated = definitions(view)
    for reading, cells in counts.readings.items():
        tp, fp, tn, fn = cells.pooled()
        values = rates(Confusion(tp=tp, fp=fp, tn=tn, fn=fn))
        sums = {word: _sums(cells)[word] for word in READ_BOTH_WAYS}
        for word, ends in zip(sums, draws.intervals([*sums.values()]), strict=True):
            path = f"{name}.micro.{reading}.{word}"
            yield metric_with_interval(
                path,
                values[word],
                n=int(np.sum(sums[word].denominators)),
                definition=stated[f"{reading}.{word}"],
                interval=ends,
            )
            if word in PROPORTIONS:
                yield _wilson(view, path, sums[word], stated[f"{reading}.{word}"])


def _predicted(
    view: DecisionView, name: str, counts: StratumCounts, draws: Resamples
) -> Iterator[Metric]:
    values, matrix = _values(counts), _Matrix(counts.decided)
    prevalences = tuple(dict.fromkeys(view.settings.prevalence))
    intervals = draws.intervals_of([*map(matrix.ppv, prevalences)])
    for prevalence, ends in zip(prevalences, intervals, strict=True):
        yield metric_with_interval(
            f"{name}.micro.ppv_at_{prevalence:g}",
            ppv_at_prevalence(values["sensitivity"], values["specificity"], prevalence),
            n=int(counts.decided.n.sum()),
            definition=f"ppv_at_prevalence@1(prevalence={prevalence:g})",
            interval=ends,
        )
