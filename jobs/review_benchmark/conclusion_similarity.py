"""Computes how similar conclusions are, and the threshold at which two count as alike.

A verdict by `direction` does not use similarity; the similarity of words is shown too.

Labels give the best threshold. Without labels it is a quantile of mismatched pairs. A
judge or an embedding may have too few of those: pairs of other agents and of authors
are added, and if there are still too few, a fixed value applies, which is reported as
fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer

from jobs.kit.lexical import cosines
from jobs.kit.metrics import curve, quantiles
from jobs.review_benchmark.data import Review, Vector
from jobs.review_benchmark.rebuilt_reviews import AgentConclusion, ReviewPredictions
from jobs.review_benchmark.settings import VerdictKind
from runner.evaluation import STAYS

SimilarityMatrix = npt.NDArray[np.float64]

TFIDF_DEFINITION = (
    "tfidf_cosine@1(fitted on the truth conclusions; English stop words of "
    "scikit-learn, 1-2 grams, sublinear tf, smoothed idf, L2)"
)
DIGITS = 12
"""Digits to which similarities are rounded; logarithms differ in their last digits."""


def tfidf_similarity(agent: Sequence[str], truth: Sequence[str]) -> SimilarityMatrix:
    """Return cosines of conclusions, (len(agent), len(truth)), 0 to 1.

    Args:
        agent: conclusions of an agent.
        truth: the authors' conclusions; the vocabulary is theirs.
    """
    zeros = np.zeros((len(agent), len(truth)))
    if not zeros.size:
        return zeros
    vectorizer = TfidfVectorizer(
        stop_words="english", ngram_range=(1, 2), sublinear_tf=True
    )
    try:
        fitted = vectorizer.fit_transform(truth)
    except ValueError:  # only stop words: nothing is alike
        return zeros
    # the whole product in one step: rows are sparse, one for each review
    similarities: SimilarityMatrix = (vectorizer.transform(agent) @ fitted.T).toarray()
    return similarities.round(DIGITS)


DEFINITIONS: Final[dict[VerdictKind, str]] = {
    "direction": TFIDF_DEFINITION,
    "tfidf": TFIDF_DEFINITION,
    "judge": "judged@1(similarity from 0 to 100, divided by 100)",
    "embedding": "embedding_cosine@1(vectors of whole conclusions)",
}
"""Definition of the similarity of two conclusions, by kind of verdict."""


def conclusion_similarity(
    kind: VerdictKind,
    conclusions: Sequence[AgentConclusion],
    truths: Sequence[Review],
    predictions: ReviewPredictions,
) -> SimilarityMatrix:
    """Return similarities, (len(conclusions), len(truths)); NaN if not compared."""
    match kind:
        case "direction" | "tfidf":
            return tfidf_similarity(
                [conclusion.text for conclusion in conclusions],
                [truth.conclusion for truth in truths],
            )
        case "embedding":
            return _cosines(
                [conclusion.vector for conclusion in conclusions],
                [predictions.vectors.get(truth.id, ()) for truth in truths],
            )
        case _:
            return _judged(conclusions, truths)


def truth_similarity(
    kind: VerdictKind, truths: Sequence[Review], predictions: ReviewPredictions
) -> SimilarityMatrix:
    """Return the similarity of the authors' conclusions, by words or vectors."""
    if kind in {"direction", "tfidf"}:
        texts = [truth.conclusion for truth in truths]
        return tfidf_similarity(texts, texts)
    vectors = [predictions.vectors.get(truth.id, ()) for truth in truths]
    return _cosines(vectors, vectors)


def _cosines(first: Sequence[Vector], second: Sequence[Vector]) -> SimilarityMatrix:
    """Return cosines; NaN for a missing vector or one of an uncommon length."""
    similarities = np.full((len(first), len(second)), np.nan)
    lengths = Counter(len(vector) for vector in (*first, *second) if vector)
    if not lengths:
        return similarities
    most = max(lengths, key=lambda length: (lengths[length], length))
    rows = [index for index, vector in enumerate(first) if len(vector) == most]
    columns = [index for index, vector in enumerate(second) if len(vector) == most]
    if rows and columns:
        near = cosines(
            np.array([first[index] for index in rows]),
            np.array([second[index] for index in columns]),
        )
        similarities[np.ix_(rows, columns)] = near.round(DIGITS)
    return similarities


def _judged(
    conclusions: Sequence[AgentConclusion], truths: Sequence[Review]
) -> SimilarityMatrix:
    similarities = np.full((len(conclusions), len(truths)), np.nan)
    for row, conclusion in zip(similarities, conclusions, strict=True):
        for index, truth in enumerate(truths):
            if truth.id in conclusion.judged:
                row[index] = conclusion.judged[truth.id].similarity
    return similarities


ThresholdSource: TypeAlias = Literal[
    "labels", "mismatched pairs", "borrowed pairs", "fixed", "setting"
]

NULL_QUANTILE = 0.95
LEAST_PAIRS = 20
"""Least number of mismatched pairs for a meaningful quantile."""

FIXED: Final[dict[VerdictKind, float]] = {"judge": 0.7, "embedding": 0.8}
"""Thresholds if too few pairs draw one, not calibrated on any data.

A judge's scale ends at "the same finding", so that 0.7 leaves out pairs which it calls
half alike. Vectors of medical conclusions on one topic rarely have a cosine below 0.6.
Words have none: their cosine depends on the vocabulary of the reviews.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityThreshold:
    """A threshold of similarity and its source."""

    value: float
    source: ThresholdSource = field(metadata=STAYS)
    n: int  #: labels or pairs that draw it; 0: none do
    accuracy: float | None = None  #: leave-one-out, if labels drew it

    def admits(self, similarity: float) -> bool:
        """Return whether two conclusions count as alike.

        Thresholds from labels and fixed ones are inclusive. One from mismatched pairs
        must be exceeded: if most have nothing in common, their quantile is 0.
        """
        if self.source in {"mismatched pairs", "borrowed pairs"}:
            return similarity > self.value
        return similarity >= self.value


def threshold_from_labels(
    similarity: Sequence[float], similar: Sequence[bool]
) -> SimilarityThreshold | None:
    """Return the threshold with the highest Youden index; of equals the highest one.

    None if only one of the two answers occurs.
    """
    value = _youden(similarity, similar)
    if value is None:
        return None
    right = 0
    for index, (pair_similarity, label) in enumerate(
        zip(similarity, similar, strict=True)
    ):
        others = [other for at, other in enumerate(similarity) if at != index]
        labels = [other_label for at, other_label in enumerate(similar) if at != index]
        left_out = _youden(others, labels)
        if left_out is None:
            # the only one of its kind: the others have only one answer
            right += labels[0] == label
        else:
            right += (pair_similarity >= left_out) == label
    return SimilarityThreshold(
        value=value,
        source="labels",
        n=len(similarity),
        accuracy=right / len(similarity),
    )


def threshold_from_mismatched(
    similarity: Sequence[float],
    kind: VerdictKind = "tfidf",
    borrowed: Sequence[float] = (),
) -> SimilarityThreshold | None:
    """Return the 95th percentile of pairs that do not belong together.

    Args:
        similarity: of an agent's conclusions with those of other reviews.
        kind: how conclusions are compared; judges and vectors never lack a threshold.
        borrowed: further mismatched pairs, used only if the agent has too few.
    """
    threshold = _quantile(similarity, "mismatched pairs")
    if threshold is not None or kind not in FIXED:
        return threshold
    pooled = _quantile([*similarity, *borrowed], "borrowed pairs")
    return pooled or SimilarityThreshold(value=FIXED[kind], source="fixed", n=0)


def _quantile(
    similarity: Sequence[float], source: ThresholdSource
) -> SimilarityThreshold | None:
    (value,) = quantiles(similarity, (NULL_QUANTILE,))
    if value is None or len(similarity) < LEAST_PAIRS:
        return None
    return SimilarityThreshold(value=value, source=source, n=len(similarity))


def _youden(similarity: Sequence[float], similar: Sequence[bool]) -> float | None:
    points = curve(similar, similarity)
    if not points.positives or not points.negatives:
        return None
    # in whole numbers, so that ties are exact; thresholds fall, so that the first of
    # equals is the highest
    index = points.tp * points.negatives - points.fp * points.positives
    return float(points.threshold[1:][np.argmax(index[1:])])
