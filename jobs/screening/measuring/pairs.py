"""Models compared with each other, on the records that both decided.

The differences of sensitivity, specificity and accuracy, with their tests and verdicts,
are those of `jobs.comparison`. McNemar's test of being right ignores that the records
of a review hang together; it is shown beside them and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jobs.comparison.difference import ComparedMetric
from jobs.comparison.models import ModelPair, model_pairs
from jobs.metrics import Agreement, agreement_of, holm, mcnemar
from jobs.screening.measuring.view import UNDECIDED, View
from jobs.screening.settings import Settings
from runner.scorecard import Comparable

SENSITIVITY = "all.micro.sensitivity"
SPECIFICITY = "all.micro.specificity"
ACCURACY = "all.micro.accuracy"
PAIRED = (SENSITIVITY, SPECIFICITY, ACCURACY)
"""What a summary compares; each of them is a question, and a family, of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models; differences are left minus right."""

    left: str
    right: str
    n: int  #: records that both decided
    dropped: int  #: records that one of them, or both, did not decide
    left_alone: int  #: right where the other is wrong
    right_alone: int
    p: float | None  #: McNemar's, of correctness; None where nothing is shared
    p_holm: float | None = None  #: over all pairs of the run
    metrics: Mapping[str, ComparedMetric]  #: of `PAIRED`, those that both have
    agreement: Agreement


def pairs(
    views: Mapping[str, View],
    comparables: Mapping[str, Comparable],
    settings: Settings,
) -> tuple[Pair, ...]:
    """Every pair of models, in their order."""
    found = [
        _pair(each, views[each.left], views[each.right])
        for each in model_pairs(comparables, PAIRED, settings)
    ]
    corrected = holm([own.p for own in found])
    return tuple(
        replace(own, p_holm=p) for own, p in zip(found, corrected, strict=True)
    )


def _pair(found: ModelPair, a: View, b: View) -> Pair:
    both = (a.call != UNDECIDED) & (b.call != UNDECIDED)
    label = a.records.label[both]
    calls = a.call[both], b.call[both]
    is_right = [call == label for call in calls]
    left_alone = int((is_right[0] & ~is_right[1]).sum())
    right_alone = int((is_right[1] & ~is_right[0]).sum())
    n = int(both.sum())
    table = np.bincount(2 * calls[0] + calls[1], minlength=4).reshape(2, 2)
    return Pair(
        left=found.left,
        right=found.right,
        n=n,
        dropped=len(a.records) - n,
        left_alone=left_alone,
        right_alone=right_alone,
        p=mcnemar(left_alone, right_alone).p if n else None,
        metrics=found.metrics,
        agreement=agreement_of(table.astype(np.float64)),
    )
