"""Metrics paper by paper or row by row, for comparing models of other runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jobs.metrics import without_interval
from jobs.property_extraction.measuring.fate import Fate, Fates
from jobs.property_extraction.measuring.rates import WORDS
from jobs.property_extraction.measuring.results import Column
from runner.scorecard import Comparable, ItemValues


def comparable(column: Column) -> Comparable:
    """Makers of the values of a model's headline metrics, by path."""
    made: dict[str, Callable[[], ItemValues]] = {
        word: partial(_of_papers, column, word) for word in WORDS
    }
    return {**made, "matched": partial(_of_truth, column.first.fates)}


def _of_papers(column: Column, word: str) -> ItemValues:
    """A ratio of sums over papers; of the first replicate."""
    counts = column.first.counts
    above, below = counts.by_paper().sums()[word]
    return ItemValues(
        kind="ratio",
        items=counts.papers,
        clusters=counts.papers,
        cluster="paper",
        first=above.astype(float).tolist(),
        second=below.astype(float).tolist(),
        definition=without_interval(column.metric(word).definition),
    )


def _of_truth(fates: Fates) -> ItemValues:
    """Whether each truth row is matched."""
    rows = [
        (row, fate)
        for row, fate in zip(fates.truth, fates.truth_fates, strict=True)
        if fate in {Fate.TP, Fate.FN}
    ]
    return ItemValues(
        kind="mean",
        items=[str(row.source_row) for row, _ in rows],
        clusters=[row.refno for row, _ in rows],
        cluster="paper",
        first=[float(fate is Fate.TP) for _, fate in rows],
        definition="matched@1(truth rows with a prediction)",
    )
