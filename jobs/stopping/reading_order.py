"""Puts the records of a library into the order in which people read them.

The guarantee of a stop holds in any order; a good one only saves reading. A model's
order follows its mean stated probability of inclusion, where a decision without one
counts as 1, 0.5 or 0, and a record without a readable reply as 0.5. TF-IDF puts first
what is most similar to the question and the criteria. Ties keep the library's order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

from jobs.screening.labelling import EXCLUDE, INCLUDE
from runner.labelling import ModelLabel

OrderName: TypeAlias = Literal["model", "tfidf", "random"]
ORDERS: Final[tuple[OrderName, ...]] = get_args(OrderName)

_BY_DECISION: Final = {INCLUDE: 1.0, EXCLUDE: 0.0}
_UNKNOWN: Final = 0.5


def model_order(
    keys: Sequence[str], replies: Mapping[str, Sequence[ModelLabel]]
) -> list[str]:
    """Records by the models' mean probability of inclusion, highest first.

    Args:
        keys: of all records.
        replies: of all models and replicates, by record.
    """
    scores = {key: _probability(replies.get(key, ())) for key in keys}
    return sorted(keys, key=lambda key: -scores[key])


def _probability(replies: Iterable[ModelLabel]) -> float:
    values = [_stated(reply) for reply in replies if reply.value is not None]
    return math.fsum(values) / len(values) if values else _UNKNOWN


def _stated(reply: ModelLabel) -> float:
    if reply.probability is None:
        return _BY_DECISION.get(reply.value or "", _UNKNOWN)
    is_exclusion = reply.value == EXCLUDE  # whose probability is that of exclusion
    return 1 - reply.probability if is_exclusion else reply.probability


def tfidf_order(texts: Mapping[str, str], question: str) -> list[str]:
    """Records by similarity of their text to a question, most similar first.

    Lower case, English stop words out, sublinear counts, cosine.

    Args:
        texts: title and abstract, by record.
        question: the question with its criteria.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - slow

    keys = list(texts)
    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    try:
        matrix = vectorizer.fit_transform(texts.values())
    except ValueError:  # no text has a word
        return keys
    similarity = (matrix @ vectorizer.transform([question]).T).toarray().ravel()
    # machines differ in the sixteenth digit, and would break ties differently
    rounded = dict(zip(keys, similarity.round(12).tolist(), strict=True))
    return sorted(keys, key=lambda key: -rounded[key])


def random_order(keys: Iterable[str], seed: int) -> list[str]:
    """Records by the SHA-256 of seed and key: any order, and the same everywhere."""
    return sorted(
        keys, key=lambda key: hashlib.sha256(f"{seed}\x1f{key}".encode()).digest()
    )


def order_hash(order: Iterable[str]) -> str:
    """SHA-256 over keys in their order, each ended by a line feed, in hex."""
    joined = "".join(f"{key}\n" for key in order)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
