"""Compares texts by their words: tokens, BM25, hashed vectors and their cosines.

The offline baselines and the lexical stages are built on it.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_WORD = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    """Lower-case words of the NFKC form; no stemming, no stop words."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


_STOP_WORDS = """
about after all also and any are because been before being between both but can could
did does each for from had has have how into its may more most not one only other our
over such than that the their them then there these they this those through under was
were what when where which while who whose will with within without would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_CONTENT_WORD = re.compile(r"[^\W\d_]{3,}")


def content_words(text: str) -> list[str]:
    """Distinct words of three letters or more with a meaning, singular, in order."""
    words = (
        word for word in _CONTENT_WORD.findall(text.lower()) if word not in STOP_WORDS
    )
    return list(dict.fromkeys(map(_singular, words)))


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


K1 = 1.2
B = 0.75


class Bm25:
    """A pool of texts, ready for any number of queries.

    Statistics are the pool's own, so that a score depends on nothing but pool and
    query; *idf* of a whole data set may be given instead.
    """

    def __init__(self, pool: Sequence[str], idf: Idf | None = None) -> None:
        words = [tokens(sentence) for sentence in pool]
        self._counts = [Counter(sentence_words) for sentence_words in words]
        self._idf = idf or Idf(words)
        lengths = [len(sentence_words) for sentence_words in words]
        average = math.fsum(lengths) / len(lengths) if lengths else 0.0
        # a pool without a single word has no average length, and no score either
        self._loads = [
            K1 * (1 - B + B * length / average) if average else K1 for length in lengths
        ]

    def scores(self, query: str) -> list[float]:
        """The score of each sentence; each distinct word of the query counts once."""
        return [math.fsum(shares.values()) for shares in self.shares(query)]

    def shares(self, query: str) -> list[dict[str, float]]:
        """Return what each word of the query adds to the score of each sentence."""
        words = dict.fromkeys(tokens(query))
        return [
            {
                word: self._idf.of(word) * counts[word] / (counts[word] + load)
                for word in words
                if word in counts
            }
            for counts, load in zip(self._counts, self._loads, strict=True)
        ]


class Idf:
    """Weight of a word in n of N texts: ln(1 + (N-n+0.5) / (n+0.5))."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._n = len(texts)
        self._having = Counter(word for words in texts for word in set(words))

    def of(self, word: str) -> float:
        """The weight of a word."""
        having = self._having[word]
        return math.log(1 + (self._n - having + 0.5) / (having + 0.5))


BUCKETS = 256
"""Dimensions of a vector."""


def hashed_vector(text: str, words: Sequence[str]) -> list[float]:
    """Counts of words in signed buckets, of length 1.

    A text without words, or whose words cancel out, is hashed as a whole: a vector
    without length would have no direction.

    Args:
        text: the whole text.
        words: those of it that count.
    """
    counts = _bucket_counts(words)
    if not any(counts):
        counts = _bucket_counts([text])
    length = math.sqrt(math.fsum(count * count for count in counts))
    return [count / length for count in counts]


def _bucket_counts(words: Sequence[str]) -> list[int]:
    counts = [0] * BUCKETS
    for word in words:
        packed = word.encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest())
        bucket, rest = number % BUCKETS, number // BUCKETS
        counts[bucket] += 1 if rest % 2 else -1
    return counts


Floats: TypeAlias = "npt.NDArray[np.float64]"


def cosines(first: Floats, second: Floats) -> Floats:
    """The cosine of each row of *first* with each row of *second*.

    Rows must have a length above zero, which parsing has seen to.
    """
    return _units(first) @ _units(second).T


def _units(rows: Floats) -> Floats:
    import numpy as np  # noqa: PLC0415 - the other lexical stages do without it

    # by the largest entry first: squares of very small or large numbers would vanish
    scaled = rows / np.abs(rows).max(axis=1, keepdims=True)
    units: Floats = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return units
