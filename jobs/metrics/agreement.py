"""Agreement of two or more judges, chance taken into account in several ways."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from jobs.metrics.columns import Floats, as_value, of_one_length, quotient

Load: TypeAlias = Literal["none", "linear", "quadratic"]
"""How near categories count as half agreeing; by their place in the list."""

Scale: TypeAlias = Literal["nominal", "ordinal", "interval"]

_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two judges over one set of items; None where undefined."""

    n: int
    percent: float | None
    kappa: float | None  #: Cohen's, 1960 and 1968
    pi: float | None  #: Scott's, 1955
    ac: float | None  #: Gwet's AC1, with weights AC2, 2008
    prevalence_index: float | None  #: two categories only (Byrt and others, 1993)
    bias_index: float | None  #: likewise


def agreement(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    categories: Sequence[Hashable],
    load: Load = "none",
) -> Agreement:
    """How far *a* and *b* agree; the categories are given, not inferred.

    Raises:
        ValueError: where lengths differ, or a value is no category.
    """
    of_one_length(a=a, b=b)
    table = _crossed(a, b, categories)
    n, q = float(table.sum()), len(categories)
    near = _nearness(q, load)
    cells = quotient(table, n)
    rows, columns = cells.sum(axis=1), cells.sum(axis=0)
    mean = (rows + columns) / 2
    seen = float((near * cells).sum())
    by_chance = {
        "kappa": float((near * np.outer(rows, columns)).sum()),
        "pi": float((near * np.outer(mean, mean)).sum()),
        "ac": float(near.sum() * (mean * (1 - mean)).sum() / (q * (q - 1)))
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


def _nearness(q: int, load: Load) -> Floats:
    if load == "none":
        return np.eye(q)
    apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / max(1, q - 1)
    near: Floats = 1 - (apart if load == "linear" else apart**2)
    return near


def alpha(
    units: Iterable[Sequence[Hashable | None]],
    categories: Sequence[Hashable],
    scale: Scale = "nominal",
) -> float | None:
    """Krippendorff's alpha: judges may be many and values missing (None).

    Units with fewer than two values are left out. `ordinal` goes by the order of the
    categories, `interval` by their numbers (Krippendorff, 2011).
    """
    index = {category: i for i, category in enumerate(categories)}
    q = len(categories)
    together = np.zeros((q, q))
    for unit in units:
        seen = Counter(index[value] for value in unit if value is not None)
        m = seen.total()
        if m < len(("one", "another")):
            continue
        for c, n_c in seen.items():
            for k, n_k in seen.items():
                together[c, k] += n_c * (n_k - (c == k)) / (m - 1)
    totals = together.sum(axis=1)
    n = float(totals.sum())
    apart = _distances(totals, categories, scale)
    observed = float((together * apart).sum())
    expected = float((np.outer(totals, totals) * apart).sum())
    if not expected:
        return None
    return 1 - (n - 1) * observed / expected


def _distances(totals: Floats, categories: Sequence[Hashable], scale: Scale) -> Floats:
    q = len(totals)
    if scale == "nominal":
        return 1 - np.eye(q)
    if scale == "interval":
        numbers = np.array([float(str(category)) for category in categories])
        squares: Floats = np.subtract.outer(numbers, numbers) ** 2
        return squares
    middle = np.cumsum(totals) - totals / 2
    ranks: Floats = np.subtract.outer(middle, middle) ** 2
    return ranks


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
    place = {item: i for i, item in enumerate(second)}
    if len(place) != len(second) or sorted(place.get(x, -1) for x in first) != [
        *range(len(second))
    ]:
        raise ValueError("first and second must be orders of the same distinct items.")
    n = len(second)
    if n < _PAIR:
        return None
    found = np.array([place[item] for item in first])
    rising = np.count_nonzero(np.triu(found[None, :] > found[:, None]))
    pairs = math.comb(n, _PAIR)
    return float(2 * rising - pairs) / pairs


def pass_at_k(n: int, right: int, k: int) -> float | None:
    """The chance that at least one of *k* of *n* replicates is right.

    Unbiased (Chen and others, 2021); None where there are fewer than *k*.
    """
    if k > n:
        return None
    return 1 - math.comb(n - right, k) / math.comb(n, k)


def pass_hat_k(n: int, right: int, k: int) -> float | None:
    """The chance that all of *k* of *n* replicates are right; None where n < k."""
    return math.comb(right, k) / math.comb(n, k) if k <= n else None


def mean_over_pairs(judges: Sequence[Sequence[Hashable]]) -> float | None:
    """The mean over all pairs of judges of the share of items on which they agree."""
    shares = [
        sum(x == y for x, y in zip(a, b, strict=True)) / len(a)
        for a, b in combinations(judges, 2)
        if a
    ]
    return math.fsum(shares) / len(shares) if shares else None
