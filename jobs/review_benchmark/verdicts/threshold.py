"""The similarity from which two conclusions count as alike.

Labels draw it best. Without labels it is a quantile of mismatched pairs. A judge or an
embedding may have too few of those: pairs are then borrowed, and where even these are
too few, a fixed value of ours applies, which says that it is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from jobs.metrics import curve, quantiles
from jobs.review_benchmark.settings import VerdictKind

Source: TypeAlias = Literal[
    "labels", "mismatched pairs", "borrowed pairs", "fixed", "setting"
]

NULL_QUANTILE = 0.95
LEAST_PAIRS = 20
"""With fewer mismatched pairs a quantile says nothing."""

FIXED: Final[dict[VerdictKind, float]] = {"judge": 0.7, "embedding": 0.8}
"""Thresholds where too few pairs draw one: ours, and not calibrated on any data.

A judge's scale ends at "the same finding", so that 0.7 leaves out pairs which it calls
half alike. Vectors of medical conclusions on one topic rarely have a cosine below 0.6.
Words have none: their cosine depends on the vocabulary of the reviews.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Where the line is drawn, and by what."""

    value: float
    source: Source
    n: int  #: labels or pairs that draw it; 0: none do
    accuracy: float | None = None  #: leave-one-out, where labels drew it

    def admits(self, similarity: float) -> bool:
        """Whether two conclusions count as alike.

        Thresholds of labels and fixed ones are inclusive. Mismatched pairs must be
        surpassed: where most have nothing in common, their quantile is 0.
        """
        if self.source in {"mismatched pairs", "borrowed pairs"}:
            return similarity > self.value
        return similarity >= self.value


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


def from_mismatched(
    similarity: Sequence[float],
    kind: VerdictKind = "tfidf",
    borrowed: Sequence[float] = (),
) -> Threshold | None:
    """The 95th percentile of pairs that do not belong together.

    Args:
        similarity: of an agent's conclusions with those of other reviews.
        kind: how conclusions are compared; judges and vectors never lack a threshold.
        borrowed: further mismatched pairs, used only where the agent's own are too few.
    """
    own = _quantile(similarity, "mismatched pairs")
    if own is not None or kind not in FIXED:
        return own
    pooled = _quantile([*similarity, *borrowed], "borrowed pairs")
    return pooled or Threshold(value=FIXED[kind], source="fixed", n=0)


def _quantile(similarity: Sequence[float], source: Source) -> Threshold | None:
    (value,) = quantiles(similarity, (NULL_QUANTILE,))
    if value is None or len(similarity) < LEAST_PAIRS:
        return None
    return Threshold(value=value, source=source, n=len(similarity))


def _youden(similarity: Sequence[float], similar: Sequence[bool]) -> float | None:
    points = curve(similar, similarity)
    if not points.positives or not points.negatives:
        return None
    # in whole numbers, so that equals are equal; thresholds fall, so that the first of
    # equals is the highest
    index = points.tp * points.negatives - points.fp * points.positives
    return float(points.threshold[1:][np.argmax(index[1:])])
