"""A full-size set made by arithmetic alone, with known answers for every metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CRITERIA = 10
POSTS = 1477
POSITIVE = 1379
FOLD_POSTS = 295

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SetA:
    """Queries of posts x criteria, in file order."""

    index: Ints
    y: npt.NDArray[np.bool_]
    p: Floats
    p2: Floats
    fold: Ints
    post: list[str]
    pool: Ints  #: sentences of the post

    @property
    def tau_neg(self) -> Floats:
        return (5 + self.fold) / 100

    def ranked(self, i: int) -> list[str]:
        n = int(self.pool[i])
        return [f"{self.post[i]}_{(17 * i + j) % n}" for j in range(n)]

    def gold(self, i: int) -> list[str]:
        if not self.y[i]:
            return []
        n = int(self.pool[i])
        found = [f"{self.post[i]}_{(13 * i + 5 * m) % n}" for m in range(i % 3 + 1)]
        return list(dict.fromkeys(found))


def set_a(times: float = 1) -> SetA:
    """The set, or one *times* as large."""
    i = np.arange(int(POSTS * times) * CRITERIA, dtype=np.int64)
    a, c = i // CRITERIA, i % CRITERIA
    h = (7 * a * a + 131 * c * c + 17 * a * c) % 1009
    y = np.zeros(len(i), dtype=np.bool_)
    y[np.lexsort((i, h))[: int(POSITIVE * times)]] = True
    return SetA(
        index=i,
        y=y,
        p=((7919 * i) % 701 + 299 * (y & ((31 * i) % 13 != 0))) / 1000,
        p2=np.minimum(1000, (4787 * i) % 801 + 199 * y) / 1000,
        fold=np.minimum(a // int(FOLD_POSTS * times), 4),
        post=[f"p{each:06d}" for each in a],
        pool=1 + (37 * a) % 40,
    )
