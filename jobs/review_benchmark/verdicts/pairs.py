"""Similarity of conclusions: one number a conclusion and review, by any kind.

A verdict by `direction` is not decided by similarity; that of words is shown beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from jobs.lexical import cosines
from jobs.review_benchmark.answered import Vector
from jobs.review_benchmark.rebuilt import Concluded, Sheet
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.settings import VerdictKind
from jobs.review_benchmark.verdicts import tfidf
from jobs.review_benchmark.verdicts.tfidf import DIGITS, Matrix

DEFINITIONS: Final[dict[VerdictKind, str]] = {
    "direction": tfidf.DEFINITION,
    "tfidf": tfidf.DEFINITION,
    "judge": "judged@1(similarity from 0 to 100, divided by 100)",
    "embedding": "embedding_cosine@1(vectors of whole conclusions)",
}
"""What the similarity of two conclusions is, by the way in which they are compared."""


def likeness(
    kind: VerdictKind,
    said: Sequence[Concluded],
    truths: Sequence[Review],
    sheet: Sheet,
) -> Matrix:
    """Similarities, (len(said), len(truths)); NaN where nothing compares the two.

    Args:
        kind: how conclusions are compared.
        said: conclusions of agents, each with a text.
        truths: reviews whose authors' conclusion is known.
        sheet: has their vectors.
    """
    match kind:
        case "direction" | "tfidf":
            return tfidf.likeness(
                [own.text for own in said], [own.conclusion for own in truths]
            )
        case "embedding":
            return _near(
                [own.vector for own in said],
                [sheet.vectors.get(own.id, ()) for own in truths],
            )
        case _:
            return _judged(said, truths)


def among_truths(kind: VerdictKind, truths: Sequence[Review], sheet: Sheet) -> Matrix:
    """How alike the authors' own conclusions are, by words or vectors."""
    if kind in {"direction", "tfidf"}:
        texts = [own.conclusion for own in truths]
        return tfidf.likeness(texts, texts)
    vectors = [sheet.vectors.get(own.id, ()) for own in truths]
    return _near(vectors, vectors)


def _near(first: Sequence[Vector], second: Sequence[Vector]) -> Matrix:
    """Cosines; NaN where a vector is missing, or not as long as most of them are."""
    found = np.full((len(first), len(second)), np.nan)
    lengths = Counter(len(vector) for vector in (*first, *second) if vector)
    if not lengths:
        return found
    most = max(lengths, key=lambda length: (lengths[length], length))
    rows = [place for place, vector in enumerate(first) if len(vector) == most]
    columns = [place for place, vector in enumerate(second) if len(vector) == most]
    if rows and columns:
        near = cosines(
            np.array([first[place] for place in rows]),
            np.array([second[place] for place in columns]),
        )
        found[np.ix_(rows, columns)] = near.round(DIGITS)
    return found


def _judged(said: Sequence[Concluded], truths: Sequence[Review]) -> Matrix:
    found = np.full((len(said), len(truths)), np.nan)
    for row, own in zip(found, said, strict=True):
        for place, truth in enumerate(truths):
            if truth.id in own.judged:
                row[place] = own.judged[truth.id].similarity
    return found
