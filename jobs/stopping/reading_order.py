"""Sorts the records of a library in the order in which people read them.

The guarantee of a stop holds in any order; a good one only saves reading. A model's
order follows its mean stated probability of inclusion, where a decision without one
counts as 1, 0.5 or 0, and a record without a readable reply as 0.5. TF-IDF starts with
the records most similar to the question and the criteria, and learns from labels. Ties
keep the library's order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np

from jobs.kit.metrics.columns import Floats
from jobs.screening.labelling import EXCLUDE, INCLUDE
from runner.labelling import ModelLabel

OrderName: TypeAlias = Literal["model", "tfidf", "random"]

REFIT: Final = 10
"""Number of labels after which a ranking is refitted."""

_BY_DECISION: Final = {INCLUDE: 1.0, EXCLUDE: 0.0}
_UNKNOWN: Final = 0.5


def model_order(
    keys: Sequence[str], replies: Mapping[str, Sequence[ModelLabel]]
) -> list[str]:
    """Return records by the models' mean probability of inclusion, highest first.

    Args:
        keys: keys of all records.
        replies: replies of all models and replicates, by record.
    """
    scores = {key: _probability(replies.get(key, ())) for key in keys}
    return sorted(keys, key=lambda key: -scores[key])


def _probability(replies: Iterable[ModelLabel]) -> float:
    values = [_stated(reply) for reply in replies if reply.value is not None]
    return math.fsum(values) / len(values) if values else _UNKNOWN


def _stated(reply: ModelLabel) -> float:
    if reply.probability is None:
        return _BY_DECISION.get(reply.value or "", _UNKNOWN)
    is_exclusion = reply.value == EXCLUDE  # its probability is that of exclusion
    return 1 - reply.probability if is_exclusion else reply.probability


class RecordRanking:
    """The order in which records are read; it may learn from labels."""

    def __init__(self, order: Sequence[str]) -> None:
        self.order = list(order)  #: without labels

    def refit(self, relevance: Mapping[str, bool]) -> list[str] | None:
        """Return all records in their order after some labels; None: unchanged."""
        del relevance
        return None


class TfidfRanking(RecordRanking):
    """Records by similarity of their text to the question, and then to labels.

    Lower case, without English stop words, sublinear counts, cosine. As soon as there
    are labels of both kinds, records follow the difference between the mean vectors of
    the relevant and of the other labelled records (Rocchio, 1971).
    """

    def __init__(self, texts: Mapping[str, str], question: str) -> None:
        """Rank by similarity to the question.

        Args:
            texts: title and abstract, by record.
            question: the question with its criteria.
        """
        from sklearn.feature_extraction.text import (  # noqa: PLC0415 - slow
            TfidfVectorizer,
        )

        self._keys = list(texts)
        self._rows = {key: row for row, key in enumerate(self._keys)}
        vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
        try:
            self._matrix = vectorizer.fit_transform(texts.values())
        except ValueError:  # no text has a word
            self._matrix = None
            super().__init__(self._keys)
            return
        super().__init__(self._by(vectorizer.transform([question]).toarray().ravel()))

    def refit(self, relevance: Mapping[str, bool]) -> list[str] | None:
        """Return all records in the order learnt from labels, if both kinds exist."""
        if self._matrix is None or len(set(relevance.values())) < len((True, False)):
            return None
        centres = {
            is_relevant: np.asarray(
                self._matrix[
                    sorted(
                        self._rows[k] for k, v in relevance.items() if v == is_relevant
                    )
                ].mean(axis=0)
            ).ravel()
            for is_relevant in (True, False)
        }
        return self._by(centres[True] - centres[False])

    def _by(self, direction: Floats) -> list[str]:
        # machines differ in the sixteenth digit, and would break ties differently
        scores = np.asarray(self._matrix @ direction).ravel().round(12)
        return [self._keys[row] for row in np.argsort(-scores, kind="stable")]


def random_order(keys: Iterable[str], seed: int) -> list[str]:
    """Sort records by the SHA-256 of seed and key, the same on every machine."""
    return sorted(
        keys, key=lambda key: hashlib.sha256(f"{seed}\x1f{key}".encode()).digest()
    )


def order_hash(order: Iterable[str]) -> str:
    """Return the SHA-256 over keys in order, each ended by a line feed, in hex."""
    joined = "".join(f"{key}\n" for key in order)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
