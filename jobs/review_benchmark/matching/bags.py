"""How many characters two titles have in common at most, for many pairs at once.

Whatever the order of its characters, a title has no more in common with another than
the sum over all characters of the smaller count. Counted in unary (three e are "one e",
"a second e", "a third e") the sum is the number of equal features, and so all pairs are
one product of matrices: a tenth of the time that comparing the titles takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Counts: TypeAlias = npt.NDArray[np.intp]

COLUMNS = 97
"""Characters are told apart by their code modulo this: a to z, digits and the blank.

Others share a column with some of them, which can only raise a bound.
"""


class Bags:
    """Normalised titles as bags of their characters."""

    def __init__(self, titles: Sequence[str]) -> None:
        counts = _counted(titles)
        # further ones of another title can be common to none of these
        most = counts.max(axis=0)
        self._columns = np.repeat(np.arange(COLUMNS), most)
        self._ordinals = np.concatenate([np.arange(1, n + 1) for n in most])
        self._features = self._unary(counts)

    def common(self, titles: Sequence[str]) -> Floats:
        """Characters in common at most: a row a title of the bags, a column a title."""
        shared: Floats = self._features @ self._unary(_counted(titles)).T
        return shared

    def _unary(self, counts: Counts) -> Floats:
        return (counts[:, self._columns] >= self._ordinals).astype(np.float32)


def _counted(titles: Sequence[str]) -> Counts:
    """How often each character occurs: a row a title."""
    codes = np.frombuffer("".join(titles).encode("utf-32-le"), dtype=np.uint32)
    rows = np.repeat(np.arange(len(titles)), [len(title) for title in titles])
    cells = rows * COLUMNS + codes % COLUMNS
    counts = np.bincount(cells, minlength=len(titles) * COLUMNS)
    return counts.reshape(len(titles), COLUMNS)
