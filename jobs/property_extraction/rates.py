"""Precision, recall and F1: over all rows, by property, by paper, and their means.

Replicates are scored one by one; the result of a model is the mean over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jobs.kit.measurements import MeasuredValue, Measurement, count
from jobs.kit.measures import ComputedMeasure, Measure
from jobs.kit.metrics import (
    ResampledStatistic,
    Resamples,
    Support,
    aggregate,
    ratio,
)
from jobs.kit.metrics.cluster_statistics import Derived
from jobs.kit.metrics.columns import Floats, Ints, quotient
from jobs.property_extraction.row_outcomes import RowOutcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounts:
    """TP, FP and FN of groups, each a paper and a name; groups ascend."""

    papers: Sequence[str]  #: all scored papers, also those without a row
    names: Sequence[str]  #: ascending
    paper: Ints  #: by group: index in `papers`
    name: Ints  #: by group: index in `names`
    tp: Ints  #: by group
    fp: Ints
    fn: Ints

    @classmethod
    def of(cls, outcomes: RowOutcomes) -> GroupCounts:
        """Count the outcomes of one replicate."""
        counts_by_group = outcomes.group_counts()
        names = sorted({name for _, name in counts_by_group})
        paper_at = {refno: at for at, refno in enumerate(outcomes.papers)}
        name_at = {name: at for at, name in enumerate(names)}
        cells = np.array([*counts_by_group.values()], dtype=np.int64).reshape(-1, 3)
        return cls(
            papers=outcomes.papers,
            names=names,
            paper=np.array(
                [paper_at[refno] for refno, _ in counts_by_group], dtype=np.int64
            ),
            name=np.array(
                [name_at[name] for _, name in counts_by_group], dtype=np.int64
            ),
            tp=cells[:, 0],
            fp=cells[:, 1],
            fn=cells[:, 2],
        )

    def by_paper(self) -> CountColumns:
        """Return sums over the properties of each paper."""
        return self._summed(self.paper, len(self.papers))

    def by_name(self) -> CountColumns:
        """Return sums over the papers of each property."""
        return self._summed(self.name, len(self.names))

    def _summed(self, at: Ints, n: int) -> CountColumns:
        return CountColumns(
            *(
                np.bincount(at, weights=column, minlength=n).astype(np.int64)
                for column in (self.tp, self.fp, self.fn)
            )
        )


@dataclass(frozen=True, slots=True)
class CountColumns:
    """TP, FP and FN as columns, with one entry per item."""

    tp: Ints
    fp: Ints
    fn: Ints

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Yield TP, FP and FN of each item."""
        for tp, fp, fn in zip(self.tp, self.fp, self.fn, strict=True):
            yield int(tp), int(fp), int(fn)

    def totals(self) -> tuple[int, int, int]:
        """Return the three sums."""
        return int(self.tp.sum()), int(self.fp.sum()), int(self.fn.sum())


FEW = 10
"""Papers below which an interval carries a note."""


@dataclass(frozen=True, slots=True)
class PropertyRate(ComputedMeasure):
    """A rate with the numerator and denominator of each item."""

    terms: Callable[[CountColumns], tuple[Ints, Ints]] = field(kw_only=True)


RATES: Mapping[str, PropertyRate] = {
    "precision": PropertyRate(
        "Precision",
        "Share of the predicted values that are in the curated data",
        "higher",
        terms=lambda c: (c.tp, c.tp + c.fp),
        definition="{key}@1(tp / (tp + fp); {over})",
    ),
    "recall": PropertyRate(
        "Recall",
        "Share of the curated values that were predicted",
        "higher",
        terms=lambda c: (c.tp, c.tp + c.fn),
        definition="{key}@1(tp / (tp + fn); {over})",
    ),
    "f1": PropertyRate(
        "F1",
        "Harmonic mean of precision and recall",
        "higher",
        terms=lambda c: (2 * c.tp, 2 * c.tp + c.fp + c.fn),
        definition="{key}@1(2 tp / (2 tp + fp + fn); {over})",
    ),
}

COUNTS: Mapping[str, ComputedMeasure] = {
    "tp": ComputedMeasure(
        "True positives",
        "Predicted values that are in the curated data",
        "higher",
        definition="{key}@1({over})",
    ),
    "fp": ComputedMeasure(
        "False positives",
        "Predicted values that are not in the curated data",
        "lower",
        definition="{key}@1({over})",
    ),
    "fn": ComputedMeasure(
        "False negatives",
        "Curated values that are missed",
        "lower",
        definition="{key}@1({over})",
    ),
}

MEDIANS: Mapping[str, Measure] = {
    f"by_paper.{key}.median": Measure(
        f"{rate.name}, median over papers",
        f"{rate.meaning}; median over papers",
        "higher",
    )
    for key, rate in RATES.items()
}

WORDS = tuple(RATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateBasis:
    """The counts from which a model's rates are computed."""

    counts: Sequence[GroupCounts]  #: by replicate
    papers: Sequence[str]  #: papers of all models, ascending; the resampled units
    draws: Resamples
    rules: str  #: of scoring, for definitions


def micro(basis: RateBasis, prefix: str = "") -> Iterator[Measurement]:
    """Yield TP, FP and FN, and the rates of all rows together, resampled by paper.

    Args:
        basis: of the model.
        prefix: of the paths, such as `grounded.`.
    """
    cells = [_aligned(counts, basis.papers) for counts in basis.counts]
    totals = [count_columns.totals() for count_columns in cells]
    columns = zip(*totals, strict=True)
    for (key, measure), values in zip(COUNTS.items(), columns, strict=True):
        value = _over_replicates(values, len(basis.papers))
        yield measure.measurement(key, value, path=prefix, over=basis.rules)
    for key, rate in RATES.items():
        terms = [rate.terms(count_columns) for count_columns in cells]
        rates = [ratio(_total(above), _total(below)) for above, below in terms]
        n = sum(_total(below) for _, below in terms) // len(cells)
        value = replace(_over_replicates(rates, n), statistic=_resampled_rate(terms))
        over = f"all rows together, {basis.rules}"
        yield rate.measurement(key, value, path=prefix, over=over)


def macro(basis: RateBasis) -> Iterator[Measurement]:
    """Yield means over properties: with 0/0 as 0, and without undefined rates."""
    n = len(basis.counts[0].names)
    for key, rate in RATES.items():
        by_replicate = [rates_of(c.by_name(), key) for c in basis.counts]
        filled = [
            aggregate([0.0 if rate is None else rate for rate in rates]).mean
            for rates in by_replicate
        ]
        value = _over_replicates(filled, n)
        over = f"mean over properties, 0/0=0, {basis.rules}"
        yield rate.measurement(key, value, path="macro.", over=over)
        summaries = [aggregate(rates) for rates in by_replicate]
        value = _over_replicates([summary.mean for summary in summaries], n)
        defined = replace(value, n_defined=summaries[0].n_defined)
        over = f"mean over properties with one, {basis.rules}"
        yield rate.measurement(key, defined, path="macro.", over=over, form="~defined")


def by_paper(basis: RateBasis) -> Iterator[Measurement]:
    """Yield means over papers, with their spread and median, of the first replicate."""
    cells = basis.counts[0].by_paper()
    over = f"over papers, replicate 1, {basis.rules}"
    for key, rate in RATES.items():
        summary = aggregate(rates_of(cells, key))
        for form, figure, std in (
            ("", summary.mean, summary.std),
            (".median", summary.median, None),
        ):
            value = MeasuredValue(
                value=figure, n=summary.n, n_defined=summary.n_defined, std=std
            )
            yield rate.measurement(key, value, path="by_paper.", over=over, form=form)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPapers:
    """The papers whose extraction failed in one replicate."""

    papers: int
    truth: int  #: their rows of the truth

    @classmethod
    def of(cls, outcomes: RowOutcomes) -> FailedPapers:
        """Count those of one replicate."""
        truth = outcomes.dataset.truth_by_paper
        return cls(
            papers=len(outcomes.failed),
            truth=sum(len(truth.get(refno, ())) for refno in outcomes.failed),
        )


def failed_as_empty(
    basis: RateBasis, failed: Sequence[FailedPapers]
) -> Iterator[Measurement]:
    """Yield recall and F1 with failed papers counted as without predictions."""
    cells = [counts.by_paper() for counts in basis.counts]
    for key in ("recall", "f1"):
        rates = []
        for count_columns, lost in zip(cells, failed, strict=True):
            above, below = map(_total, RATES[key].terms(count_columns))
            rates.append(ratio(above, below + lost.truth))
        yield RATES[key].measurement(
            key,
            count(_mean(rates), failed[0].papers),
            over=f"truth of failed papers as fn, {basis.rules}",
            subset="failed papers",
            form="~failed_as_empty",
        )


def rates_of(cells: CountColumns, word: str) -> list[float | None]:
    """Return a rate of each item; None for 0/0."""
    above, below = RATES[word].terms(cells)
    return [ratio(int(a), int(b)) for a, b in zip(above, below, strict=True)]


def _aligned(counts: GroupCounts, papers: Sequence[str]) -> CountColumns:
    """Return sums by paper, over the papers of all models."""
    cells = counts.by_paper()
    if list(counts.papers) == list(papers):
        return cells
    index_of = {refno: at for at, refno in enumerate(papers)}
    at = np.array([index_of[refno] for refno in counts.papers], dtype=np.int64)

    def spread(column: Ints) -> Ints:
        aligned = np.zeros(len(papers), dtype=np.int64)
        aligned[at] = column
        return aligned

    return CountColumns(spread(cells.tp), spread(cells.fp), spread(cells.fn))


def _resampled_rate(terms: Sequence[tuple[Ints, Ints]]) -> ResampledStatistic:
    """Return the mean over replicates of a rate, in each resample of papers."""

    def mean_rate(*sums: Floats) -> Floats:
        pairs = zip(sums[::2], sums[1::2], strict=True)
        mean: Floats = np.mean([quotient(above, below) for above, below in pairs], 0)
        return mean

    below = np.sum([denominators for _, denominators in terms], axis=0)
    return Derived(
        columns=[column.astype(np.float64) for pair in terms for column in pair],
        formula=mean_rate,
        n=int(below.sum()),
        support=Support.of(below),
    ).statistic


def _over_replicates(values: Sequence[float | None], n: int) -> MeasuredValue:
    """Return the mean over replicates, with its spread."""
    return MeasuredValue(value=_mean(values), n=n, std=aggregate(values).std)


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean over replicates; of a single one, its value."""
    return values[0] if len(values) == 1 else aggregate(values).mean


def _total(column: Ints) -> int:
    return int(column.sum())


def few_papers(papers: int) -> str:
    """Return the note on intervals from few papers; empty if there are enough."""
    if papers >= FEW:
        return ""
    return f"only {papers} {'paper' if papers == 1 else 'papers'}"
