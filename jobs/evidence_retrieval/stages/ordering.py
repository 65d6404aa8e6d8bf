"""From scores to a ranking of the pool."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

DECIMALS = 10


def ranked(scores: Sequence[float]) -> list[int]:
    """Places in the pool by falling score, ties by place.

    Scores count to ten decimals.
    """
    rounded = [round(score, DECIMALS) for score in scores]
    return sorted(range(len(rounded)), key=lambda place: -rounded[place])


def shuffled(n: int, seed: int, query: str, replicate: int) -> list[int]:
    """*n* places in an order that depends on nothing but its arguments."""

    def key(place: int) -> bytes:
        text = f"{seed}:{query}:{replicate}:{place}"
        return hashlib.sha256(text.encode()).digest()

    return sorted(range(n), key=key)
