"""Rates of all records of a stratum together.

Intervals are drawn by review; Wilson's stand beside the proportions and say that they
take records as independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from jobs.metrics import (
    NOT_NEGATIVE,
    SHARE,
    SIGNED,
    Confusion,
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
)
from jobs.metrics.columns import Floats
from jobs.metrics.resampling import Counts as Drawn
from jobs.screening.measuring.counting import READINGS, Cells, Counts
from jobs.screening.measuring.view import View
from jobs.screening.measuring.wording import drawn, note
from runner.scorecard import Metric

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


def definitions(view: View) -> Mapping[str, str]:
    """What each rate is, whether of all records or of those of one review."""
    tau = view.settings.threshold
    by = "" if tau is None else f", p_include >= {tau:g}"
    decided = f"decided records, unclear={view.settings.unclear}{by}"
    found = {
        word: f"{word}@1({formula}; {decided})" for word, formula in FORMULAS.items()
    }
    for reading in READINGS:
        for word in READ_BOTH_WAYS:
            found[f"{reading}.{word}"] = (
                f"{word}@1({FORMULAS[word]}; all records, undecided {reading}{by})"
            )
    return found


def pooled(view: View, name: str, found: Counts, draws: Resamples) -> Iterator[Metric]:
    """The rates of the decided records, and of all records read one way or the other.

    Args:
        view: whose decisions they are.
        name: of the stratum.
        found: its counts.
        draws: of the reviews.
    """
    yield from _decided(view, name, found, draws)
    yield from _read_both_ways(view, name, found, draws)
    yield from _foretold(view, name, found, draws)


def _decided(
    view: View, name: str, found: Counts, draws: Resamples
) -> Iterator[Metric]:
    values = _values(found)
    cells = found.decided
    sums = {"coverage": Ratio(cells.n, found.records), **_sums(cells)}
    intervals = dict(zip(sums, draws.intervals([*sums.values()]), strict=True))
    others = draws.intervals_of([*map(_Matrix(cells).redrawn, NO_SUMS)])
    intervals |= zip(NO_SUMS, others, strict=True)
    stated = definitions(view)
    decided = int(cells.n.sum())
    for word in FORMULAS:
        path = f"{name}.micro.{word}"
        n = int(np.sum(sums[word].denominators)) if word in sums else decided
        yield drawn(
            path,
            values[word],
            n=n,
            definition=stated[word],
            interval=intervals[word],
        )
        if word in PROPORTIONS:
            yield _wilson(view, path, sums[word], stated[word])


def _wilson(view: View, path: str, share: Ratio, definition: str) -> Metric:
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
        note=note(path, "takes records as independent"),
    )


def _values(found: Counts) -> Mapping[str, float | None]:
    """Every rate of all decided records together."""
    tp, fp, tn, fn = found.decided.pooled()
    whole = Confusion(tp=tp, fp=fp, tn=tn, fn=fn)
    decided = tp + fp + tn + fn
    return {
        **rates(whole),
        "f2": rates(whole, BETA)["fbeta"],
        "coverage": ratio(decided, float(found.records.sum())),
        "workload_reduction": ratio(tn + fn, decided),
    }


def _sums(cells: Cells) -> dict[str, Ratio]:
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

    def __init__(self, cells: Cells) -> None:
        self._table = np.stack([cells.tp, cells.fp, cells.tn, cells.fn], axis=1)
        self.support = Support.of_classes(cells.tp + cells.fn, cells.tn + cells.fp)

    def rates(self, block: Drawn) -> Mapping[str, Floats]:
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

        def foretold(block: Drawn) -> Floats:
            found = self.rates(block)
            return ppv_columns(found["sensitivity"], found["specificity"], prevalence)

        return ResampledStatistic(foretold, self.support)


def _read_both_ways(
    view: View, name: str, found: Counts, draws: Resamples
) -> Iterator[Metric]:
    """Whoever is undecided as included, and as excluded, over all records."""
    stated = definitions(view)
    for reading, cells in found.readings.items():
        tp, fp, tn, fn = cells.pooled()
        values = rates(Confusion(tp=tp, fp=fp, tn=tn, fn=fn))
        sums = {word: _sums(cells)[word] for word in READ_BOTH_WAYS}
        for word, ends in zip(sums, draws.intervals([*sums.values()]), strict=True):
            path = f"{name}.micro.{reading}.{word}"
            yield drawn(
                path,
                values[word],
                n=int(np.sum(sums[word].denominators)),
                definition=stated[f"{reading}.{word}"],
                interval=ends,
            )
            if word in PROPORTIONS:
                yield _wilson(view, path, sums[word], stated[f"{reading}.{word}"])


def _foretold(
    view: View, name: str, found: Counts, draws: Resamples
) -> Iterator[Metric]:
    values, matrix = _values(found), _Matrix(found.decided)
    wanted = tuple(dict.fromkeys(view.settings.prevalence))
    intervals = draws.intervals_of([*map(matrix.ppv, wanted)])
    for prevalence, ends in zip(wanted, intervals, strict=True):
        yield drawn(
            f"{name}.micro.ppv_at_{prevalence:g}",
            ppv_at_prevalence(values["sensitivity"], values["specificity"], prevalence),
            n=int(found.decided.n.sum()),
            definition=f"ppv_at_prevalence@1(prevalence={prevalence:g})",
            interval=ends,
        )
