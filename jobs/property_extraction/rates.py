"""Precision, recall and F1: over all rows, by property, by paper, and their means.

Replicates are scored one by one; what stands for a model is the mean over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.kit.metrics import (
    Interval,
    ResampledStatistic,
    Resamples,
    Support,
    aggregate,
    ratio,
    with_interval,
)
from jobs.kit.metrics.cluster_statistics import Counts
from jobs.kit.metrics.columns import Floats, Ints, quotient
from jobs.property_extraction.row_outcomes import RowOutcomes
from runner.scorecard import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounts:
    """TP, FP and FN of groups, each a paper and a name; groups ascend."""

    papers: Sequence[str]  #: all that are scored, those without a row too
    names: Sequence[str]  #: ascending
    paper: Ints  #: by group: place in `papers`
    name: Ints  #: by group: place in `names`
    tp: Ints  #: by group
    fp: Ints
    fn: Ints

    @classmethod
    def of(cls, outcomes: RowOutcomes) -> GroupCounts:
        """The counts of one replicate."""
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
        """Sums over the properties of each paper."""
        return self._summed(self.paper, len(self.papers))

    def by_name(self) -> CountColumns:
        """Sums over the papers of each property."""
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
    """TP, FP and FN side by side, one of each an item."""

    tp: Ints
    fp: Ints
    fn: Ints

    def totals(self) -> tuple[int, int, int]:
        """The three sums."""
        return int(self.tp.sum()), int(self.fp.sum()), int(self.fn.sum())

    def sums(self) -> Mapping[str, tuple[Ints, Ints]]:
        """Precision, recall and F1 as numerators and denominators."""
        return {
            "precision": (self.tp, self.tp + self.fp),
            "recall": (self.tp, self.tp + self.fn),
            "f1": (2 * self.tp, 2 * self.tp + self.fp + self.fn),
        }


FEW = 10
"""Papers below which an interval carries a note."""

WORDS = ("precision", "recall", "f1")

FORMULAS: Mapping[str, str] = {
    "precision": "tp / (tp + fp)",
    "recall": "tp / (tp + fn)",
    "f1": "2 tp / (2 tp + fp + fn)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateBasis:
    """What the rates of a model are drawn from."""

    counts: Sequence[GroupCounts]  #: by replicate
    papers: Sequence[str]  #: of all models, ascending: what is drawn
    draws: Resamples
    rules: str  #: of scoring, for definitions


def micro(basis: RateBasis, prefix: str = "") -> Iterator[Metric]:
    """TP, FP and FN, and the rates of all rows together, drawn by paper.

    Args:
        basis: of the model.
        prefix: of the paths, such as `grounded.`.
    """
    cells = [_aligned(counts, basis.papers) for counts in basis.counts]
    totals = [count_columns.totals() for count_columns in cells]
    for at, word in enumerate(("tp", "fp", "fn")):
        values = [total[at] for total in totals]
        summary = aggregate(values)
        yield Metric(
            path=prefix + word,
            value=values[0] if len(values) == 1 else summary.mean,
            n=len(basis.papers),
            std=summary.std,
            definition=f"{word}@1({basis.rules})",
        )
    statistics = [_resampled_rate(cells, word) for word in WORDS]
    for word, ends in zip(WORDS, basis.draws.intervals(statistics), strict=True):
        rates = [
            ratio(*map(_total, count_columns.sums()[word])) for count_columns in cells
        ]
        summary = aggregate(rates)
        yield Metric(
            path=prefix + word,
            value=_mean(rates),
            n=sum(_total(count_columns.sums()[word][1]) for count_columns in cells)
            // len(cells),
            lo=ends.lo,
            hi=ends.hi,
            std=summary.std,
            definition=with_interval(
                f"{word}@1({FORMULAS[word]}; all rows together, {basis.rules})", ends
            ),
            note=_note(ends, len(basis.papers)),
        )


def macro(basis: RateBasis) -> Iterator[Metric]:
    """Means over properties: with 0/0 as 0, and with what is undefined left out."""
    for word in WORDS:
        by_replicate = [by_name(counts, word) for counts in basis.counts]
        n = len(basis.counts[0].names)
        filled = [
            aggregate([0.0 if rate is None else rate for rate in rates]).mean
            for rates in by_replicate
        ]
        yield Metric(
            path=f"macro.{word}",
            value=_mean(filled),
            n=n,
            std=aggregate(filled).std,
            definition=f"{word}@1({FORMULAS[word]}; mean over properties, 0/0=0, "
            f"{basis.rules})",
        )
        summaries = [aggregate(rates) for rates in by_replicate]
        means = [summary.mean for summary in summaries]
        yield Metric(
            path=f"macro.{word}~defined",
            value=_mean(means),
            n=n,
            n_defined=summaries[0].n_defined,
            std=aggregate(means).std,
            definition=f"{word}@1({FORMULAS[word]}; mean over properties with one, "
            f"{basis.rules})",
        )


def by_paper(basis: RateBasis) -> Iterator[Metric]:
    """Means over papers, with their spread and median, of the first replicate."""
    cells = basis.counts[0].by_paper()
    for word in WORDS:
        summary = aggregate(rates_of(cells, word))
        for path, value, std in (
            (f"by_paper.{word}", summary.mean, summary.std),
            (f"by_paper.{word}.median", summary.median, None),
        ):
            yield Metric(
                path=path,
                value=value,
                n=summary.n,
                n_defined=summary.n_defined,
                std=std,
                definition=f"{word}@1({FORMULAS[word]}; over papers, replicate 1, "
                f"{basis.rules})",
            )


def failed_as_empty(
    basis: RateBasis, replicate_outcomes: Sequence[RowOutcomes]
) -> Iterator[Metric]:
    """Recall and F1 where a paper that failed counts as one without any prediction."""
    cells = [counts.by_paper() for counts in basis.counts]
    failed = [outcomes.failed for outcomes in replicate_outcomes]
    lost = [
        sum(len(outcomes.dataset.truth_by_paper.get(refno, ())) for refno in papers)
        for outcomes, papers in zip(replicate_outcomes, failed, strict=True)
    ]
    for word in ("recall", "f1"):
        rates = []
        for count_columns, fn in zip(cells, lost, strict=True):
            above, below = map(_total, count_columns.sums()[word])
            rates.append(ratio(above, below + fn))
        yield Metric(
            path=f"{word}~failed_as_empty",
            value=_mean(rates),
            n=len(failed[0]),
            subset="failed papers",
            definition=f"{word}@1({FORMULAS[word]}; truth of failed papers as fn, "
            f"{basis.rules})",
        )


def by_name(counts: GroupCounts, word: str) -> list[float | None]:
    """A rate of each property, in the order of names."""
    return rates_of(counts.by_name(), word)


def rates_of(cells: CountColumns, word: str) -> list[float | None]:
    """A rate of each item; None where it is 0/0."""
    above, below = cells.sums()[word]
    return [ratio(int(a), int(b)) for a, b in zip(above, below, strict=True)]


def _aligned(counts: GroupCounts, papers: Sequence[str]) -> CountColumns:
    """Sums by paper, over the papers of all models."""
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


def _resampled_rate(cells: Sequence[CountColumns], word: str) -> ResampledStatistic:
    """The mean over replicates of a rate, in each draw of papers."""
    columns = [
        tuple(column.astype(np.float64) for column in count_columns.sums()[word])
        for count_columns in cells
    ]

    def values(block: Counts) -> Floats:
        weights = block.astype(np.float64)
        # `einsum` adds in a fixed order; a matrix product would ask BLAS
        rates = [
            quotient(
                np.einsum("ij,j->i", weights, above),
                np.einsum("ij,j->i", weights, below),
            )
            for above, below in columns
        ]
        mean: Floats = np.mean(rates, axis=0)
        return mean

    below = np.sum([denominator for _, denominator in columns], axis=0)
    return ResampledStatistic(values, Support.of(below))


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean over replicates; the value itself of one."""
    return values[0] if len(values) == 1 else aggregate(values).mean


def _total(column: Ints) -> int:
    return int(column.sum())


def _note(ends: Interval, papers: int) -> str | None:
    notes = []
    if papers < FEW:
        notes.append(f"only {papers} {'paper' if papers == 1 else 'papers'}")
    if ends.flagged:
        notes.append(ends.dropped)
    return "; ".join(notes) or None
