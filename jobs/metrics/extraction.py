"""Extracted values against gold: matching, counts, closeness of numbers and texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from rapidfuzz.distance import Indel

A = TypeVar("A")
B = TypeVar("B")

Pairs = tuple[tuple[int, int], ...]
"""Indices (predicted, gold) of what was matched, by the first."""


def match_values(
    predicted: Sequence[A],
    gold: Sequence[B],
    equal: Callable[[A, B], bool],
    *,
    method: Literal["maximum", "greedy"] = "maximum",
) -> Pairs:
    """Match as many predicted with gold values as can be, each of them once.

    `maximum` is a maximum matching (Hopcroft and Karp, 1973), the same for the same
    input order. `greedy` gives each predicted value the first gold value left that it
    equals, which can match fewer.
    """
    partners = [[j for j, b in enumerate(gold) if equal(a, b)] for a in predicted]
    if method == "greedy":
        return _greedy(partners)
    # not for those who match nothing, which is most jobs
    from scipy.sparse import csr_array  # noqa: PLC0415 - see above
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    ends = np.cumsum([0, *map(len, partners)])
    columns = np.array([j for own in partners for j in own], dtype=np.int64)
    graph = csr_array(
        (np.ones(len(columns), dtype=np.int8), columns, ends),
        shape=(len(predicted), len(gold)),
    )
    if not len(columns):
        return ()
    found = maximum_bipartite_matching(graph, perm_type="column")
    return tuple((i, int(j)) for i, j in enumerate(found) if j >= 0)


def _greedy(partners: Sequence[Sequence[int]]) -> Pairs:
    taken: set[int] = set()
    pairs = []
    for i, own in enumerate(partners):
        free = next((j for j in own if j not in taken), None)
        if free is not None:
            taken.add(free)
            pairs.append((i, free))
    return tuple(pairs)


def match_keys(predicted: Sequence[Hashable], gold: Sequence[Hashable]) -> Pairs:
    """A maximum matching where values are equal just if their keys are.

    Equality of keys is an equivalence, so counting is enough: the n-th predicted value
    of a key goes with its n-th gold value.
    """
    places: dict[Hashable, list[int]] = {}
    for j, key in enumerate(gold):
        places.setdefault(key, []).append(j)
    for own in places.values():
        own.reverse()
    return tuple(
        (i, places[key].pop()) for i, key in enumerate(predicted) if places.get(key)
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """Matched, predicted without gold, gold not predicted."""

    tp: int
    fp: int
    fn: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)


def counts(
    predicted: Collection[object], gold: Collection[object], pairs: Pairs
) -> Counts:
    """The counts of one matching."""
    matched = len(pairs)
    return Counts(tp=matched, fp=len(predicted) - matched, fn=len(gold) - matched)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prf:
    """Precision, recall and F1; None where undefined."""

    precision: float | None
    recall: float | None
    f1: float | None


def prf(of: Counts, *, zero_division: float | None = None) -> Prf:
    """The rates of some counts; 0/0 is *zero_division*."""

    def rate(above: int, below: int) -> float | None:
        return above / below if below else zero_division

    return Prf(
        precision=rate(of.tp, of.tp + of.fp),
        recall=rate(of.tp, of.tp + of.fn),
        f1=rate(2 * of.tp, 2 * of.tp + of.fp + of.fn),
    )


def set_recall(found: Collection[Hashable], gold: Collection[Hashable]) -> float:
    """Share of the distinct gold values that were found.

    Raises:
        ValueError: where gold is empty: what that means is the caller's to say.
    """
    wanted = set(gold)
    if not wanted:
        raise ValueError(
            "gold is empty, so there is no recall; decide before the call."
        )
    return len(wanted & set(found)) / len(wanted)


def numeric_close(
    a: float,
    b: float,
    rel: float,
    *,
    basis: Literal["expected", "larger"] = "expected",
) -> bool:
    """Whether *a* lies within *rel* of *b*, the expected value, borders included.

    The distance is measured against |b|, or against the larger of both. Zero only
    equals zero.
    """
    if a == 0 or b == 0:
        return a == b
    scale = abs(b) if basis == "expected" else max(abs(a), abs(b))
    return abs(a - b) <= rel * scale


def string_ratio(a: str, b: str) -> float:
    """Indel similarity, 2 LCS / (len a + len b); 1.0 for two empty texts."""
    return float(Indel.normalized_similarity(a, b))
