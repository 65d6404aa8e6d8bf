"""Metrics review by review or paper by paper, for comparing models of other runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from jobs.review_benchmark.measuring.benchmark import Benchmark
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.pairs import PAIRED
from jobs.review_benchmark.measuring.results import Results
from runner.scorecard import Comparable, ItemValues

DIGITS = 8
"""Of the hashes that tell two truths or databases apart."""

_MEASURES: Mapping[str, Callable[[Benchmark], float | None]] = {
    "recall": lambda own: own.recall,
    "precision": lambda own: own.precision,
    "retrieval_recall": lambda own: own.retrieval_recall,
    "screening_recall": lambda own: own.screening_recall,
}


def comparable(results: Results, column: Column) -> Comparable:
    """Makers of the values of a model's headline metrics, by path.

    Reviews are named with the hash of their truth, and definitions with matching and
    database: whatever differs in them is not compared.
    """
    made: dict[str, Callable[[], ItemValues]] = {
        f"macro.{name}": partial(_of_reviews, results, column, name)
        for name in _MEASURES
        # whatever an import holds was offered: its recalls are one
        if name in {"recall", "precision"} or not results.sheet.imported
    }
    return {
        **made,
        "micro.recall": partial(_of_papers, results, column),
        "micro.precision": partial(_of_included, results, column),
    }


def _of_reviews(results: Results, column: Column, name: str) -> ItemValues:
    reviews = list(column.benchmarks)
    return ItemValues(
        kind="mean",
        items=[_named(results, review) for review in reviews],
        clusters=reviews,
        cluster="review",
        first=[_MEASURES[name](own) for own in column.benchmarks.values()],
        definition=_definition(results, f"{name}@1(mean over reviews"),
        family=_family(f"macro.{name}"),
    )


def _of_papers(results: Results, column: Column) -> ItemValues:
    """Whether each truth paper is included."""
    matches = [
        (review, match) for review, own in column.matches.items() for match in own
    ]
    return ItemValues(
        kind="mean",
        items=[f"{_named(results, review)}:{match.index}" for review, match in matches],
        clusters=[review for review, _ in matches],
        cluster="review",
        first=[float(match.included) for _, match in matches],
        definition=_definition(results, "recall@1(pooled over reviews"),
        family=_family("micro.recall"),
    )


def _of_included(results: Results, column: Column) -> ItemValues:
    """What each review adds to the pooled precision."""
    reviews = list(column.benchmarks)
    return ItemValues(
        kind="ratio",
        items=[_named(results, review) for review in reviews],
        clusters=reviews,
        cluster="review",
        first=[float(own.credited) for own in column.benchmarks.values()],
        second=[float(own.included_rows) for own in column.benchmarks.values()],
        definition=_definition(results, "precision@1(pooled over reviews"),
        family=_family("micro.precision"),
    )


def _family(path: str) -> str:
    return path if path in PAIRED else ""


def _named(results: Results, review: str) -> str:
    return f"{review}@{results.truth[review][:DIGITS]}"


def _definition(results: Results, begun: str) -> str:
    database = "none" if results.database is None else results.database[:DIGITS]
    return f"{begun}; {results.matching}; database={database})"
