"""Models compared with each other, on the reviews that both have done.

Differences, tests and verdicts are those of `jobs.comparison`. McNemar's test over the
truth papers ignores that the papers of a review hang together; it is shown beside them
and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from jobs.comparison.difference import ComparedMetric
from jobs.comparison.models import ModelPair, model_pairs
from jobs.metrics import holm, mcnemar
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.settings import Settings
from runner.scorecard import Comparable

PAIRED = ("macro.recall", "macro.precision", "micro.recall", "micro.precision")
"""What a summary compares; each of them is a question, and a family, of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models on the truth papers of the reviews that both have done."""

    left: str
    right: str
    reviews: int
    dropped: int  #: reviews that only one of them has done
    n: int  #: truth papers
    left_alone: int  #: included by the left one only
    right_alone: int
    p: float | None  #: exact McNemar; None where they share no review
    p_holm: float | None = None  #: over all pairs of the run
    metrics: Mapping[str, ComparedMetric]  #: of `PAIRED`, left minus right


def pairs(
    columns: Mapping[str, Column],
    comparables: Mapping[str, Comparable],
    settings: Settings,
) -> tuple[Pair, ...]:
    """Every pair of models, in their order."""
    found = [
        _pair(each, columns[each.left], columns[each.right])
        for each in model_pairs(comparables, PAIRED, settings)
    ]
    corrected = holm([own.p for own in found])
    return tuple(
        replace(own, p_holm=p) for own, p in zip(found, corrected, strict=True)
    )


def _pair(found: ModelPair, left: Column, right: Column) -> Pair:
    shared = tuple(review for review in left.benchmarks if review in right.benchmarks)
    included = [
        [match.included for review in shared for match in own.matches[review]]
        for own in (left, right)
    ]
    both = list(zip(*included, strict=True))
    left_alone = sum(a and not b for a, b in both)
    right_alone = sum(b and not a for a, b in both)
    return Pair(
        left=found.left,
        right=found.right,
        reviews=len(shared),
        dropped=len(left.benchmarks.keys() ^ right.benchmarks.keys()),
        n=len(both),
        left_alone=left_alone,
        right_alone=right_alone,
        p=mcnemar(left_alone, right_alone).p if both else None,
        metrics=found.metrics,
    )
