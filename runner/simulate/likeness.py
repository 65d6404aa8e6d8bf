"""Vectors and scores of a simulated model: texts that share words are alike.

Pure, and a function of seed and texts alone. A word has a place and a sign in every
vector, so the cosine of two texts grows with the words that they share.
"""

from __future__ import annotations

import math
import re
from typing import Final

from runner.reply import Ranked, Ranking, Vectors
from runner.request import EmbedRequest, RerankRequest
from runner.simulate.chance import Chance

DIMENSIONS: Final = 64
"""Of a vector, where the request does not say: enough for tests, and small."""

_WORD = re.compile(r"\w+")


def vectors(request: EmbedRequest, seed: int) -> Vectors:
    """One vector of length 1 a text."""
    width = request.dimensions or DIMENSIONS
    return Vectors.of(_vector(text, seed, width) for text in request.texts)


def ranking(request: RerankRequest, seed: int) -> Ranking:
    """Documents by the share of the query's words that they hold, the best first."""
    asked = _words(request.query)
    scores = [
        len(asked & _words(text)) / max(1, len(asked)) * 0.9
        # chance breaks ties: equal scores are rare among real ones
        + 0.1 * Chance("score", seed, request.query, text).unit()
        for text in request.documents
    ]
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return Ranking(
        results=tuple(
            Ranked(index=index, score=scores[index])
            for index in order[: request.top_n or None]
        )
    )


def _vector(text: str, seed: int, width: int) -> list[float]:
    sums = [0.0] * width
    # every vector holds the text's own word, so none is zero and no two are equal
    for word in (*sorted(_words(text)), f" {text}"):
        chance = Chance("word", seed, word)
        sums[chance.below(width)] += 1.0 if chance.unit() < 0.5 else -1.0  # noqa: PLR2004
    length = math.sqrt(math.fsum(value * value for value in sums))
    return [value / length for value in sums] if length else [1.0, *sums[1:]]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
