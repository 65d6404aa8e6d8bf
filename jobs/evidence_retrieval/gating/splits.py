"""Which posts fit a gate, which set its thresholds, and which it is tested on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import numpy.typing as npt

INNER_FOLDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One outer fold; the three groups of posts have none in common."""

    fold: str
    test: tuple[str, ...]
    tune: tuple[str, ...]
    fit: tuple[str, ...]


def split(
    fold: str,
    fold_of: Mapping[str, str],
    judged: Iterable[str],
    *,
    seed: int,
    tune_fraction: float,
) -> Split:
    """The posts of one fold against all other judged ones.

    The others are ordered by the hash of "seed:fold:post"; the first share of them, at
    least one post, sets thresholds. No post of the fold itself ever does.
    """
    rest = sorted(
        (post for post in judged if fold_of.get(post, fold) != fold),
        key=lambda post: _digest(f"{seed}:{fold}:{post}"),
    )
    # on decimals, for 0.3 * 5 rounds down in doubles
    share = Decimal(str(tune_fraction)) * len(rest)
    count = max(1, int(share.quantize(Decimal(1), rounding=ROUND_HALF_UP)))
    return Split(
        fold=fold,
        test=tuple(sorted(post for post, own in fold_of.items() if own == fold)),
        tune=tuple(rest[:count]),
        fit=tuple(rest[count:]),
    )


def inner_folds(posts: Sequence[str]) -> npt.NDArray[np.intp]:
    """A fold for each row, by its post: folds of even numbers of rows.

    The largest post first, each to the lightest fold, as scikit-learn's `GroupKFold`
    does; ties go by the post's id and to the first fold, where that leaves them to the
    machine's sort. Fewer folds where there are fewer posts.
    """
    names, index, sizes = np.unique(posts, return_inverse=True, return_counts=True)
    count = min(INNER_FOLDS, len(names))
    loads = [0] * count
    own = np.empty(len(names), dtype=np.intp)
    for place in sorted(range(len(names)), key=lambda place: -sizes[place]):
        lightest = loads.index(min(loads))
        loads[lightest] += int(sizes[place])
        own[place] = lightest
    return own[index]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
