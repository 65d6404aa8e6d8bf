"""Vectors of texts without a model: words counted in signed buckets.

The offline baselines answer with them where vectors are asked for.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

BUCKETS = 256
"""Dimensions of a vector."""


def hashed(text: str, words: Sequence[str]) -> list[float]:
    """Counts of words in signed buckets, of length 1.

    A text without words, or whose words cancel out, is hashed as a whole: a vector
    without length would have no direction.

    Args:
        text: the whole text.
        words: those of it that count.
    """
    counts = _counts(words)
    if not any(counts):
        counts = _counts([text])
    length = math.sqrt(math.fsum(count * count for count in counts))
    return [count / length for count in counts]


def _counts(words: Sequence[str]) -> list[int]:
    counts = [0] * BUCKETS
    for word in words:
        packed = word.encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest())
        bucket, rest = number % BUCKETS, number // BUCKETS
        counts[bucket] += 1 if rest % 2 else -1
    return counts
