"""Pairs the predictions of a paper with its truth rows, each at most once.

Rows that no rule can distinguish form one bundle with a count: ten thousand equal rows
on both sides are one edge instead of a hundred million. The solver only gets components
in which both sides have several rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from jobs.kit.grouping import grouped
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.values.comparison import Edge

_EXACT = 1 << 52
"""Limit for exact sums of whole numbers in the floats that solvers add."""

_STEPS = 1_000_000
"""Most steps into which the errors of a component are divided."""

_DENSE = 1_000_000
"""Largest dense matrix of rows."""


@dataclass(frozen=True, slots=True)
class BundleLink:
    """An edge between two bundles, by their indices."""

    left: int
    right: int
    is_unaliased: bool  #: whether the prediction has the truth's name without an alias
    error: float  #: relative


@dataclass(frozen=True, slots=True)
class BundleFlow:
    """A number of rows of one bundle paired with rows of another."""

    left: int
    right: int
    n: int


def solve(
    left: Sequence[int], right: Sequence[int], links: Sequence[BundleLink]
) -> list[BundleFlow]:
    """Return a solution with the most pairs, and of those the best.

    Most pairs first, then most pairs without an alias, then the smallest sum of
    relative errors, in steps so fine that all sums stay exact. Ties are resolved by the
    order of bundles, which is that of their first rows.

    Args:
        left: rows of each bundle of predictions.
        right: rows of each bundle of truth rows.
        links: between them; at most one between two bundles.
    """
    flows: list[BundleFlow] = []
    for component in _components(len(left), links):
        flows += _solved(left, right, component)
    return sorted(flows, key=lambda flow: (flow.left, flow.right))


def _components(n_left: int, links: Sequence[BundleLink]) -> list[list[BundleLink]]:
    """Return links by connected component, in the order of their first links."""
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = parent.get(above, above)
            node = parent[node]
        return node

    for link in links:
        parent[root(link.left)] = root(n_left + link.right)
    return list(grouped((root(link.left), link) for link in links).values())


def _solved(
    left: Sequence[int], right: Sequence[int], links: Sequence[BundleLink]
) -> list[BundleFlow]:
    lefts = sorted({link.left for link in links})
    rights = sorted({link.right for link in links})
    if len(lefts) == 1 or len(rights) == 1:
        return _star(left, right, links)
    return _assigned(left, right, lefts, rights, links)


def _star(
    left: Sequence[int], right: Sequence[int], links: Sequence[BundleLink]
) -> list[BundleFlow]:
    """Pair one bundle that meets several: the best of them comes first."""
    room = {("left", link.left): left[link.left] for link in links}
    room |= {("right", link.right): right[link.right] for link in links}
    flows = []
    for link in sorted(
        links,
        key=lambda link: (not link.is_unaliased, link.error, link.left, link.right),
    ):
        ends = (("left", link.left), ("right", link.right))
        n = min(room[end] for end in ends)
        if n:
            flows.append(BundleFlow(link.left, link.right, n))
            for end in ends:
                room[end] -= n
    return flows


def _assigned(
    left: Sequence[int],
    right: Sequence[int],
    lefts: Sequence[int],
    rights: Sequence[int],
    links: Sequence[BundleLink],
) -> list[BundleFlow]:
    """Return the solver's solution, over single rows."""
    # rows in excess of all that their neighbours can take are never paired
    meets_left = dict.fromkeys(lefts, 0)
    meets_right = dict.fromkeys(rights, 0)
    for link in links:
        meets_left[link.left] += right[link.right]
        meets_right[link.right] += left[link.left]
    rows = [
        bundle for bundle in lefts for _ in range(min(left[bundle], meets_left[bundle]))
    ]
    columns = [
        bundle
        for bundle in rights
        for _ in range(min(right[bundle], meets_right[bundle]))
    ]
    costs = _costs(links, len(rows), len(columns))
    by_ends = {
        (link.left, link.right): cost for link, cost in zip(links, costs, strict=True)
    }
    pairs = (
        _dense(rows, columns, by_ends)
        if len(rows) * len(columns) <= _DENSE
        else _sparse(rows, columns, by_ends)
    )
    return [BundleFlow(*pair, n) for pair, n in Counter(pairs).items()]


def _costs(links: Sequence[BundleLink], rows: int, columns: int) -> list[int]:
    """Return the cost of each pair; an omitted pair costs nothing.

    All are negative: omitting a pair never pays. One pair more outweighs any number of
    unaliased names, and one unaliased name any sum of errors.
    """
    most = min(rows, columns)
    steps = max(1, min(_STEPS, _EXACT // (most * (most + 1) * (most + 1) + 1)))
    worst = max(link.error for link in links) or 1.0
    name_bonus = most * steps + 1
    pair = most * name_bonus + name_bonus + 1
    return [
        round(link.error / worst * steps)
        - (name_bonus if link.is_unaliased else 0)
        - pair
        for link in links
    ]


def _dense(
    rows: Sequence[int], columns: Sequence[int], costs: dict[tuple[int, int], int]
) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import

    matrix = np.array(
        [[float(costs.get((row, column), 0)) for column in columns] for row in rows]
    )
    chosen = zip(*linear_sum_assignment(matrix), strict=True)
    pairs = ((rows[int(i)], columns[int(j)]) for i, j in chosen)
    return [pair for pair in pairs if pair in costs]


def _sparse(
    rows: Sequence[int], columns: Sequence[int], costs: dict[tuple[int, int], int]
) -> list[tuple[int, int]]:
    """Solve over edges only; a dummy column for each row leaves it unpaired."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - as above
    from scipy.sparse.csgraph import (  # noqa: PLC0415
        min_weight_full_bipartite_matching,
    )

    indices = grouped((column, index) for index, column in enumerate(columns))
    neighbours = grouped((row, (column, cost)) for (row, column), cost in costs.items())
    # the solver takes no weight of 0 for an edge; a shift of all weights changes no
    # optimum, since every row has exactly one
    shift = 1 - min(costs.values())
    at, weights, ends = [], [], [0]
    for index, row in enumerate(rows):
        for column, cost in neighbours[row]:
            at += indices[column]
            weights += [float(cost + shift)] * len(indices[column])
        at.append(len(columns) + index)
        weights.append(float(shift))
        ends.append(len(at))
    graph = csr_array(
        (np.array(weights), np.array(at), np.array(ends)),
        shape=(len(rows), len(columns) + len(rows)),
    )
    chosen = zip(*min_weight_full_bipartite_matching(graph), strict=True)
    return [(rows[int(i)], columns[int(j)]) for i, j in chosen if j < len(columns)]


EdgesOf: TypeAlias = Callable[
    [str, Sequence[Prediction], Sequence[TruthRow]], Iterable[Edge]
]
"""Returns all pairs with the same value, by the rule of a name's property."""


@dataclass(frozen=True, slots=True)
class NamedPrediction:
    """A prediction under its targets: a single one, except with target sets."""

    prediction: Prediction
    names: tuple[str, ...]


def _bundles(keys: Iterable[Hashable]) -> list[list[int]]:
    """Return indices of rows with equal keys, in file order."""
    return list(grouped((key, index) for index, key in enumerate(keys)).values())


def pairs_of_paper(
    predictions: Sequence[NamedPrediction],
    truths: Sequence[TruthRow],
    edges_of: EdgesOf,
    *,
    method: Literal["maximum", "greedy"] = "maximum",
    material: Callable[[str], str] = lambda _: "",
) -> list[tuple[int, int]]:
    """Return the indices of paired predictions and truth rows.

    Args:
        predictions: of one paper, in file order.
        truths: of it, in file order.
        edges_of: the rule of a property.
        method: the most pairs, or for each prediction in turn the first free truth row.
        material: a key that two materials must share to be compared.
    """

    def key(row: Prediction | TruthRow) -> Hashable:
        return row.name, row.value, row.unit, material(row.material)

    left = _bundles((named.names, key(named.prediction)) for named in predictions)
    right = _bundles(map(key, truths))
    links = list(
        _links(
            [(index, predictions[rows[0]]) for index, rows in enumerate(left)],
            [(index, truths[rows[0]]) for index, rows in enumerate(right)],
            edges_of,
            material,
        )
    )
    if not links:
        return []
    if method == "greedy":
        return _greedy(left, right, links)
    flows = solve(
        [len(bundle) for bundle in left], [len(bundle) for bundle in right], links
    )
    # the earliest of equal rows are the matched ones, on both sides
    taken_left, taken_right = [0] * len(left), [0] * len(right)
    pairs = []
    for flow in flows:
        for _ in range(flow.n):
            i, j = taken_left[flow.left], taken_right[flow.right]
            pairs.append((left[flow.left][i], right[flow.right][j]))
            taken_left[flow.left], taken_right[flow.right] = i + 1, j + 1
    return sorted(pairs)


def _links(
    predictions: Sequence[tuple[int, NamedPrediction]],
    truths: Sequence[tuple[int, TruthRow]],
    edges_of: EdgesOf,
    material: Callable[[str], str],
) -> Iterator[BundleLink]:
    """Yield edges between bundles, from one row of each; property by property."""
    offered = grouped(
        ((name, material(stated.prediction.material)), (index, stated.prediction))
        for index, stated in predictions
        for name in stated.names
    )
    truth_groups = grouped(
        ((row.name, material(row.material)), (index, row)) for index, row in truths
    )
    for (name, about), rows in truth_groups.items():
        stated = offered.get((name, about), [])
        for edge in edges_of(
            name, [prediction for _, prediction in stated], [row for _, row in rows]
        ):
            index, prediction = stated[edge.prediction]
            yield BundleLink(
                left=index,
                right=rows[edge.truth][0],
                is_unaliased=prediction.name == name,
                error=edge.error,
            )


def _greedy(
    left: Sequence[Sequence[int]],
    right: Sequence[Sequence[int]],
    links: Sequence[BundleLink],
) -> list[tuple[int, int]]:
    """Pair each prediction, in file order, with the first free truth row."""
    neighbours = grouped((link.left, link.right) for link in links)
    order = sorted((row, index) for index in neighbours for row in left[index])
    taken = [0] * len(right)
    pairs = []
    for row, index in order:
        free = [
            (right[other][taken[other]], other)
            for other in neighbours[index]
            if taken[other] < len(right[other])
        ]
        if free:
            truth, other = min(free)
            taken[other] += 1
            pairs.append((row, truth))
    return pairs
