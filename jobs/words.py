"""Content words: what a text is about, as the offline baselines count it."""

from __future__ import annotations

import re

_STOP_WORDS = """
about after all also and any are because been before being between both but can could
did does each for from had has have how into its may more most not one only other our
over such than that the their them then there these they this those through under was
were what when where which while who whose will with within without would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_WORD = re.compile(r"[^\W\d_]{3,}")


def content_words(text: str) -> list[str]:
    """Distinct words of three letters or more with a meaning, singular, in order."""
    words = (word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS)
    return list(dict.fromkeys(map(_singular, words)))


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
