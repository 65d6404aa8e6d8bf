"""Agreement of judges beyond chance, and of extracted values with gold values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Indel

from jobs.kit.metrics.columns import Floats, as_value, check_same_length, quotient

_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two judges over one set of items; None where undefined."""

    n: int
    percent: float | None
    kappa: float | None  #: Cohen's, 1960
    pi: float | None  #: Scott's, 1955
    ac: float | None  #: Gwet's AC1, 2008
    prevalence_index: float | None  #: two categories only (Byrt and others, 1993)
    bias_index: float | None  #: likewise


def agreement(
    a: Sequence[Hashable], b: Sequence[Hashable], categories: Sequence[Hashable]
) -> Agreement:
    """How far *a* and *b* agree; the categories are given, not inferred.

    Raises:
        ValueError: where lengths differ, or a value is no category.
    """
    check_same_length(a=a, b=b)
    return agreement_of(_crossed(a, b, categories))


def agreement_of(table: Floats) -> Agreement:
    """How far two judges agree who are already counted.

    Args:
        table: items by what the first judge said, down, and the second, across.
    """
    n, q = float(table.sum()), len(table)
    same = np.eye(q)
    cells = quotient(table, n)
    rows, columns = cells.sum(axis=1), cells.sum(axis=0)
    mean = (rows + columns) / 2
    seen = float((same * cells).sum())
    by_chance = {
        "kappa": float((same * np.outer(rows, columns)).sum()),
        "pi": float((same * np.outer(mean, mean)).sum()),
        "ac": float(same.sum() * (mean * (1 - mean)).sum() / (q * (q - 1)))
        if q > 1
        else math.nan,
    }
    beyond = {
        name: as_value(float(quotient(seen - chance, 1 - chance)))
        for name, chance in by_chance.items()
    }
    is_binary = q == len(("yes", "no")) and n > 0
    return Agreement(
        n=int(n),
        percent=float(np.trace(table)) / n if n else None,
        kappa=beyond["kappa"],
        pi=beyond["pi"],
        ac=beyond["ac"],
        prevalence_index=float(cells[0, 0] - cells[1, 1]) if is_binary else None,
        bias_index=float(cells[0, 1] - cells[1, 0]) if is_binary else None,
    )


def _crossed(
    a: Sequence[Hashable], b: Sequence[Hashable], categories: Sequence[Hashable]
) -> Floats:
    index = {category: i for i, category in enumerate(categories)}
    table = np.zeros((len(categories), len(categories)))
    for i, pair in enumerate(zip(a, b, strict=True)):
        for argument, value in zip(("a", "b"), pair, strict=True):
            if value not in index:
                raise ValueError(
                    f"{argument} holds {value!r} at index {i}, no category."
                )
        table[index[pair[0]], index[pair[1]]] += 1
    return table


def fleiss_kappa(counts: npt.ArrayLike) -> float | None:
    """Agreement of many judges beyond chance (Fleiss, 1971).

    Args:
        counts: how many judges put each item, down, into each category, across. Items
            with fewer than two judges say nothing and are left out; their number may
            differ from item to item.
    """
    table = np.asarray(counts, dtype=np.float64)
    judges = table.sum(axis=1)
    table = table[judges >= _PAIR]
    judges = table.sum(axis=1)
    if not len(table):
        return None
    pairs = (table * (table - 1)).sum(axis=1) / (judges * (judges - 1))
    seen = math.fsum(pairs) / len(table)
    shares = table.sum(axis=0) / table.sum()
    by_chance = math.fsum(shares**2)
    return as_value(float(quotient(seen - by_chance, 1 - by_chance)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateAgreement:
    """How far replicates of one question agree, over all questions."""

    items: int  #: with two replicates or more
    mean_pairwise: float | None  #: mean over items of the share of equal pairs
    all_equal: float | None  #: share of items whose replicates are all alike


def replicate_agreement(items: Iterable[Sequence[Hashable]]) -> ReplicateAgreement:
    """Replicates against each other; an item with fewer than two says nothing."""
    shares = []
    for values in items:
        pairs = math.comb(len(values), 2)
        if pairs:
            equal = sum(math.comb(n, 2) for n in Counter(values).values())
            shares.append(equal / pairs)
    n = len(shares)
    return ReplicateAgreement(
        items=n,
        mean_pairwise=math.fsum(shares) / n if n else None,
        all_equal=sum(share == 1 for share in shares) / n if n else None,
    )


def flip_rate(items: Iterable[tuple[Hashable, Hashable]]) -> float | None:
    """Share of items whose second answer is another one than the first."""
    flips = [a != b for a, b in items]
    return sum(flips) / len(flips) if flips else None


def kendall_tau(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """How far two orders of the same items agree: 1 the same, -1 the reverse.

    Pairs in the same order less pairs in the other, by all pairs (Kendall, 1938); None
    below two items.

    Raises:
        ValueError: where they are not orders of the same distinct items.
    """
    position_of = {item: i for i, item in enumerate(second)}
    if len(position_of) != len(second) or sorted(
        position_of.get(x, -1) for x in first
    ) != [*range(len(second))]:
        raise ValueError("first and second must be orders of the same distinct items.")
    n = len(second)
    if n < _PAIR:
        return None
    positions = np.array([position_of[item] for item in first])
    rising = np.count_nonzero(np.triu(positions[None, :] > positions[:, None]))
    pairs = math.comb(n, _PAIR)
    return float(2 * rising - pairs) / pairs


def string_ratio(a: str, b: str) -> float:
    """Indel similarity, 2 LCS / (len a + len b); 1.0 for two empty texts."""
    return float(Indel.normalized_similarity(a, b))
