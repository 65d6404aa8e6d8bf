"""Text that compresses as prose does, drawn by seed."""

from __future__ import annotations

import random
from functools import lru_cache

_SYLLABLES = [
    a + b for a in "bcdfglmnprst" for b in ("a", "e", "i", "o", "u", "er", "on")
]


@lru_cache(maxsize=1)
def _words() -> list[str]:
    chance = random.Random(0)
    return [
        "".join(chance.choices(_SYLLABLES, k=chance.choice((1, 2, 2, 3))))
        for _ in range(4000)
    ]


def prose(size: int, seed: int) -> bytes:
    """*size* bytes of words, as frequent as words are (Zipf)."""
    chance = random.Random(seed)
    words = _words()
    text = " ".join(
        words[int(len(words) ** chance.random()) - 1] for _ in range(size // 4)
    )
    while len(text) < size:
        text += " " + chance.choice(words)
    return text[:size].encode()


def replies(size: int, count: int) -> list[bytes]:
    """Bodies of *size* bytes, a few of them different, so that making them is cheap."""
    made = [b'{"text":"' + prose(size - 12, seed) + b'"}' for seed in range(64)]
    return [made[number % len(made)] for number in range(count)]
