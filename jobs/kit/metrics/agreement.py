"""Agreement of judges beyond chance, and of extracted values with gold values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Indel

from jobs.kit.metrics.columns import Floats, as_value, check_same_length, quotient

Load: TypeAlias = Literal["none", "linear", "quadratic"]
"""Weights of disagreement between categories, by their position in the list."""

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
    """Return the agreement of *a* and *b*; the categories are given, not inferred.

    Raises:
        ValueError: where lengths differ, or a value is no category.
    """
    check_same_length(a=a, b=b)
    return agreement_of(_crossed(a, b, categories), load)


def agreement_of(table: Floats, load: Load = "none") -> Agreement:
    """Return the agreement of two judges from a table of counts.

    Args:
        table: items by what the first judge said, down, and the second, across.
        load: how near categories count.
    """
    n, q = float(table.sum()), len(table)
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

    Units with fewer than two values are left out. `ordinal` uses the order of the
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
    """Agreement of the replicates of one question, over all questions."""

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
    """Return Kendall's tau of two orders of the same items: 1 the same, -1 the reverse.

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
    columns = np.array(
        [j for row_partners in partners for j in row_partners], dtype=np.int64
    )
    graph = csr_array(
        (np.ones(len(columns), dtype=np.int8), columns, ends),
        shape=(len(predicted), len(gold)),
    )
    if not len(columns):
        return ()
    matching = maximum_bipartite_matching(graph, perm_type="column")
    return tuple((i, int(j)) for i, j in enumerate(matching) if j >= 0)


def _greedy(partners: Sequence[Sequence[int]]) -> Pairs:
    taken: set[int] = set()
    pairs = []
    for i, row_partners in enumerate(partners):
        free = next((j for j in row_partners if j not in taken), None)
        if free is not None:
            taken.add(free)
            pairs.append((i, free))
    return tuple(pairs)


def match_keys(predicted: Sequence[Hashable], gold: Sequence[Hashable]) -> Pairs:
    """A maximum matching where values are equal just if their keys are.

    Equality of keys is an equivalence, so counting is enough: the n-th predicted value
    of a key goes with its n-th gold value.
    """
    positions: dict[Hashable, list[int]] = {}
    for j, key in enumerate(gold):
        positions.setdefault(key, []).append(j)
    for indices in positions.values():
        indices.reverse()
    return tuple(
        (i, positions[key].pop())
        for i, key in enumerate(predicted)
        if positions.get(key)
    )


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """Matched, predicted without gold, gold not predicted."""

    tp: int
    fp: int
    fn: int

    def __add__(self, other: MatchCounts) -> MatchCounts:
        return MatchCounts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)


def counts(
    predicted: Collection[object], gold: Collection[object], pairs: Pairs
) -> MatchCounts:
    """The counts of one matching."""
    matched = len(pairs)
    return MatchCounts(tp=matched, fp=len(predicted) - matched, fn=len(gold) - matched)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prf:
    """Precision, recall and F1; None where undefined."""

    precision: float | None
    recall: float | None
    f1: float | None


def prf(of: MatchCounts, *, zero_division: float | None = None) -> Prf:
    """The rates of some counts; 0/0 is *zero_division*."""

    def rate(above: int, below: int) -> float | None:
        return above / below if below else zero_division

    return Prf(
        precision=rate(of.tp, of.tp + of.fp),
        recall=rate(of.tp, of.tp + of.fn),
        f1=rate(2 * of.tp, 2 * of.tp + of.fp + of.fn),
    )


def set_recall(retrieved: Collection[Hashable], gold: Collection[Hashable]) -> float:
    """Share of the distinct gold values that were found.

    Raises:
        ValueError: where gold is empty: what that means is the caller's to say.
    """
    gold_values = set(gold)
    if not gold_values:
        raise ValueError(
            "gold is empty, so there is no recall; decide before the call."
        )
    return len(gold_values & set(retrieved)) / len(gold_values)


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
