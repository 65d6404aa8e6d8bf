"""BM25 over a small pool of texts (Robertson and Zaragoza, 2009)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from jobs.tokens import tokens

K1 = 1.2
B = 0.75


class Bm25:
    """A pool of texts, ready for any number of queries.

    Statistics are the pool's own, so that a score depends on nothing but pool and
    query; *idf* of a whole data set may be given instead.
    """

    def __init__(self, pool: Sequence[str], idf: Idf | None = None) -> None:
        words = [tokens(sentence) for sentence in pool]
        self._counts = [Counter(own) for own in words]
        self._idf = idf or Idf(words)
        lengths = [len(own) for own in words]
        average = math.fsum(lengths) / len(lengths) if lengths else 0.0
        # a pool without a single word has no average length, and no score either
        self._loads = [
            K1 * (1 - B + B * length / average) if average else K1 for length in lengths
        ]

    def scores(self, query: str) -> list[float]:
        """The score of each sentence; each distinct word of the query counts once."""
        return [math.fsum(shares.values()) for shares in self.shares(query)]

    def shares(self, query: str) -> list[dict[str, float]]:
        """What each word of the query adds to the score of each sentence."""
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
    """How telling a word is that n of N texts have: ln(1 + (N-n+0.5) / (n+0.5))."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._n = len(texts)
        self._having = Counter(word for words in texts for word in set(words))

    def of(self, word: str) -> float:
        """The weight of a word."""
        having = self._having[word]
        return math.log(1 + (self._n - having + 0.5) / (having + 0.5))
