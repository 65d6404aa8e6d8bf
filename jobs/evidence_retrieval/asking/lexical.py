"""How well sentences match a criterion by their words alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jobs.lexical import Bm25, tokens

_WORDS = """
a an the this that these those and or but if because as so of to in on at by for with
from about into i me my we our you your he she it its they them their is are was were be
been am have has had do does did will would can could should not no never
"""

FUNCTION_WORDS = frozenset(_WORDS.split())
"""Words that stand in any sentence, and say nothing of what it is about."""

DENIALS = frozenset({"not", "no", "never"})
REACH = 3
"""Words over which a denial reaches forward."""


def content_words(text: str) -> list[str]:
    """The words of a text that carry meaning by themselves."""
    return [word for word in tokens(text) if word not in FUNCTION_WORDS]


def matches(sentences: Sequence[str], query: str) -> list[dict[str, float]]:
    """What each word of *query* adds to the bm25 score of each sentence."""
    pool = [" ".join(content_words(sentence)) for sentence in sentences]
    return Bm25(pool).shares(" ".join(content_words(query)))


def stated_scores(sentences: Sequence[str], query: str) -> list[float]:
    """Bm25 scores in which a word that is denied counts half."""
    return [
        math.fsum(
            share * (1 - denied_share(words, word) / 2)
            for word, share in shares.items()
        )
        for words, shares in zip(
            map(tokens, sentences), matches(sentences, query), strict=True
        )
    ]


def denied_share(words: Sequence[str], word: str) -> float:
    """The share of a word's places that have a denial shortly before them."""
    places = [place for place, each in enumerate(words) if each == word]
    denied = [
        place
        for place in places
        if not DENIALS.isdisjoint(words[max(0, place - REACH) : place])
    ]
    return len(denied) / len(places)
