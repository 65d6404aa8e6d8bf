"""Models compared with each other, on the records that both decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from jobs.metrics import (
    Agreement,
    Difference,
    Interval,
    Ratio,
    Resamples,
    agreement_of,
    holm,
    mcnemar,
    ratio,
)
from jobs.metrics.columns import Bools, Floats
from jobs.screening.measuring.view import UNDECIDED, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models; differences are left minus right."""

    left: str
    right: str
    n: int  #: records that both decided
    dropped: int  #: records that one of them, or both, did not decide
    left_alone: int  #: right where the other is wrong
    right_alone: int
    p: float | None  #: exact McNemar of correctness; None where nothing is shared
    p_holm: float | None = None  #: over all pairs of the run
    sensitivity: float | None
    sensitivity_ends: Interval
    specificity: float | None
    specificity_ends: Interval
    agreement: Agreement


def pairs(views: Mapping[str, View], draws: Resamples) -> tuple[Pair, ...]:
    """Every pair of models, in their order."""
    found = [
        _pair(left, right, views[left], views[right], draws)
        for left, right in combinations(views, 2)
    ]
    corrected = holm([own.p for own in found])
    return tuple(
        replace(own, p_holm=p) for own, p in zip(found, corrected, strict=True)
    )


def _pair(left: str, right: str, a: View, b: View, draws: Resamples) -> Pair:
    both = (a.call != UNDECIDED) & (b.call != UNDECIDED)
    label = a.records.label[both]
    calls = a.call[both], b.call[both]
    is_right = [call == label for call in calls]
    left_alone = int((is_right[0] & ~is_right[1]).sum())
    right_alone = int((is_right[1] & ~is_right[0]).sum())
    n = int(both.sum())
    review = a.records.review[both]
    statistics = [
        _difference(is_right, label == truth, review, len(a.records.reviews))
        for truth in (1, 0)
    ]
    ends = draws.intervals(statistics)
    table = np.bincount(2 * calls[0] + calls[1], minlength=4).reshape(2, 2)
    return Pair(
        left=left,
        right=right,
        n=n,
        dropped=len(a.records) - n,
        left_alone=left_alone,
        right_alone=right_alone,
        p=mcnemar(left_alone, right_alone).p if n else None,
        sensitivity=_value(statistics[0]),
        sensitivity_ends=ends[0],
        specificity=_value(statistics[1]),
        specificity_ends=ends[1],
        agreement=agreement_of(table.astype(np.float64)),
    )


def _difference(
    is_right: Sequence[Bools], rows: Bools, review: np.ndarray, m: int
) -> Difference:
    below: Floats = np.bincount(review[rows], minlength=m).astype(np.float64)
    left, right = (
        Ratio(np.bincount(review[rows & own], minlength=m).astype(np.float64), below)
        for own in is_right
    )
    return Difference(left, right)


def _value(of: Difference) -> float | None:
    total = float(np.sum(of.left.denominators))
    return ratio(
        float(np.sum(of.left.numerators)) - float(np.sum(of.right.numerators)), total
    )
