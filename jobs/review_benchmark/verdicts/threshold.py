"""From which likeness on two conclusions count as the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

Source: TypeAlias = Literal["labels", "mismatched pairs"]

NULL_QUANTILE = 0.95
LEAST_PAIRS = 20
"""With fewer mismatched pairs a quantile says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Where the line is drawn, and by what."""

    value: float  #: inclusive
    source: Source
    n: int  #: labels, or mismatched pairs
    accuracy: float | None = None  #: leave-one-out, where labels drew it


def from_labels(
    similarity: Sequence[float], similar: Sequence[bool]
) -> Threshold | None:
    """The threshold of the highest Youden index, and of equals the highest one.

    None where only one of the two answers occurs.

    Args:
        similarity: of pairs of conclusions.
        similar: whether people call each pair the same.
    """
    value = _youden(similarity, similar)
    if value is None:
        return None
    right = 0
    for place, (likeness, label) in enumerate(zip(similarity, similar, strict=True)):
        others = [each for at, each in enumerate(similarity) if at != place]
        labels = [each for at, each in enumerate(similar) if at != place]
        left_out = _youden(others, labels)
        if left_out is None:
            # the only one of its kind: the others know of one answer alone
            right += labels[0] == label
        else:
            right += (likeness >= left_out) == label
    return Threshold(
        value=value,
        source="labels",
        n=len(similarity),
        accuracy=right / len(similarity),
    )


def from_mismatched(similarity: Sequence[float]) -> Threshold | None:
    """The 95th percentile of pairs that do not belong together; None with too few."""
    if len(similarity) < LEAST_PAIRS:
        return None
    return Threshold(
        value=float(np.quantile(similarity, NULL_QUANTILE)),
        source="mismatched pairs",
        n=len(similarity),
    )


def _youden(similarity: Sequence[float], similar: Sequence[bool]) -> float | None:
    positives = sum(similar)
    negatives = len(similar) - positives
    if not positives or not negatives:
        return None

    def index(threshold: float) -> tuple[int, float]:
        above = [each >= threshold for each in similarity]
        hits = sum(a and s for a, s in zip(above, similar, strict=True))
        alarms = sum(above) - hits
        # in whole numbers, so that equals are equal
        return hits * negatives - alarms * positives, threshold

    return max(set(similarity), key=index)
