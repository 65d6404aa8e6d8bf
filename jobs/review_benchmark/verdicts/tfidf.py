"""Likeness of conclusions by their words: free, and the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer

Matrix = npt.NDArray[np.float64]

DEFINITION = (
    "tfidf_cosine@1(fitted on the truth conclusions; English stop words of "
    "scikit-learn, 1-2 grams, sublinear tf, smoothed idf, L2)"
)
DIGITS = 12
"""To which similarities are rounded: logarithms differ in their last digits."""


def likeness(agent: Sequence[str], truth: Sequence[str]) -> Matrix:
    """Cosines of conclusions, (len(agent), len(truth)), 0 to 1.

    Args:
        agent: conclusions of an agent.
        truth: the authors' conclusions; the vocabulary is theirs.
    """
    nothing = np.zeros((len(agent), len(truth)))
    if not nothing.size:
        return nothing
    vectorizer = TfidfVectorizer(
        stop_words="english", ngram_range=(1, 2), sublinear_tf=True
    )
    try:
        fitted = vectorizer.fit_transform(truth)
    except ValueError:  # nothing but stop words: nothing is alike
        return nothing
    # the whole product at once: rows are sparse, and there are as many as reviews
    found: Matrix = (vectorizer.transform(agent) @ fitted.T).toarray()
    return found.round(DIGITS)
