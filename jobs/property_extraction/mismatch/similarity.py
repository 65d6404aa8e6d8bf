"""How alike names are spelled: of many at once, in flat memory.

The similarity is 2 LCS / (length a + length b) of the lower-cased names, LCS being the
length of their longest common subsequence: `ratio` of python-Levenshtein, and not that
of difflib. Lower-casing may make a name longer (that of U+0130 has two characters).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

Block = NDArray[np.float64]

CELLS = 1 << 20
"""Similarities held at a time: 8 MB, which a processor's cache takes."""


def similarity(a: str, b: str) -> float:
    """How alike two names are, 0 to 1, whatever their case."""
    return Indel.normalized_similarity(a.lower(), b.lower())


def blocks(rows: Sequence[str], columns: Sequence[str]) -> Iterator[tuple[int, Block]]:
    """The similarities of all rows with all columns, some rows at a time.

    Each block comes with the place of its first row. In float32, rapidfuzz's default,
    similarities that differ by up to 3e-8 would be ties.
    """
    lowered = [name.lower() for name in columns]
    step = max(1, CELLS // max(1, len(columns)))
    for start in range(0, len(rows), step):
        yield (
            start,
            cdist(
                [name.lower() for name in rows[start : start + step]],
                lowered,
                scorer=Indel.normalized_similarity,
                dtype=np.float64,
            ),
        )


def contains(a: str, b: str) -> bool:
    """Whether one of two lower-cased names is a part of the other, and none empty."""
    short, long = sorted((a.lower(), b.lower()), key=len)
    return bool(short) and short in long


def count_contained(rows: Sequence[str], columns: Sequence[str]) -> int:
    """How many pairs of names are such that one contains the other.

    Of a name within another the whole is common to both, so the similarity says which
    few pairs are worth looking at.
    """
    lengths = np.array([len(name.lower()) for name in columns], np.float64)
    found = 0
    for start, block in blocks(rows, columns):
        own = [len(name.lower()) for name in rows[start : start + len(block)]]
        tall = np.array(own, np.float64)[:, np.newaxis]
        least = 2 * np.minimum(tall, lengths) / np.maximum(tall + lengths, 1)
        for row, column in np.argwhere(block >= least - 1e-9).tolist():
            found += contains(rows[start + row], columns[column])
    return found
