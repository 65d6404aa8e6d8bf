"""From which likeness on two conclusions count as the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from jobs.metrics import curve, quantiles

Source: TypeAlias = Literal["labels", "mismatched pairs"]

NULL_QUANTILE = 0.95
LEAST_PAIRS = 20
"""With fewer mismatched pairs a quantile says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Where the line is drawn, and by what."""

    value: float
    source: Source
    n: int  #: labels, or mismatched pairs
    accuracy: float | None = None  #: leave-one-out, where labels drew it

    def admits(self, similarity: float) -> bool:
        """Whether two conclusions count as the same.

        The line of labels is the least likeness of those that do; mismatched pairs must
        be surpassed, or nothing in common would do where they have nothing in common.
        """
        if self.source == "labels":
            return similarity >= self.value
        return similarity > self.value


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
    (value,) = quantiles(similarity, (NULL_QUANTILE,))
    if value is None or len(similarity) < LEAST_PAIRS:
        return None
    return Threshold(
        value=value,
        source="mismatched pairs",
        n=len(similarity),
    )


def _youden(similarity: Sequence[float], similar: Sequence[bool]) -> float | None:
    points = curve(similar, similarity)
    if not points.positives or not points.negatives:
        return None
    # in whole numbers, so that equals are equal; thresholds fall, so that the first of
    # equals is the highest
    index = points.tp * points.negatives - points.fp * points.positives
    return float(points.threshold[1:][np.argmax(index[1:])])
