"""Pairs the predictions of a paper with its truth rows, each of them once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from jobs.property_extraction.matching.problem import Link, solve
from jobs.property_extraction.row import Prediction, TruthRow
from jobs.property_extraction.values.comparison import Edge


class EdgesOf(Protocol):
    """What the rule of a property makes of predictions and truth rows."""

    def __call__(
        self,
        name: str,
        predictions: Sequence[Prediction],
        truths: Sequence[TruthRow],
        /,
    ) -> Iterable[Edge]:
        """All pairs that state one value."""
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """A prediction under the names that it stands for: one, but for target sets."""

    prediction: Prediction
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Rows by bundles: places of equal ones, in file order."""

    bundles: Sequence[Sequence[int]]

    @classmethod
    def of(cls, keys: Iterable[Hashable]) -> _Side:
        found: dict[Hashable, list[int]] = {}
        for place, key in enumerate(keys):
            found.setdefault(key, []).append(place)
        return cls(bundles=list(found.values()))


def pairs_of_paper(
    predictions: Sequence[Named],
    truths: Sequence[TruthRow],
    edges_of: EdgesOf,
    *,
    method: Literal["maximum", "greedy"] = "maximum",
    material: Callable[[str], str] = lambda _: "",
) -> list[tuple[int, int]]:
    """Places of predictions with those of the truth rows that they match.

    Args:
        predictions: of one paper, in file order.
        truths: of it, in file order.
        edges_of: the rule of a property.
        method: as many pairs as can be, or for each prediction in turn the first truth
            row that is left.
        material: what two materials must share to be compared.
    """
    left = _Side.of(
        (own.names, each.name, each.value, each.unit, material(each.material))
        for own in predictions
        for each in (own.prediction,)
    ).bundles
    right = _Side.of(
        (each.name, each.value, each.unit, material(each.material)) for each in truths
    ).bundles
    links = list(
        _links(
            [(place, predictions[rows[0]]) for place, rows in enumerate(left)],
            [(place, truths[rows[0]]) for place, rows in enumerate(right)],
            edges_of,
            material,
        )
    )
    if not links:
        return []
    if method == "greedy":
        return _greedy(left, right, links)
    flows = solve([len(each) for each in left], [len(each) for each in right], links)
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
    predictions: Sequence[tuple[int, Named]],
    truths: Sequence[tuple[int, TruthRow]],
    edges_of: EdgesOf,
    material: Callable[[str], str],
) -> Iterator[Link]:
    """Edges between bundles, each told by a row; property by property."""
    offered: dict[tuple[str, str], list[tuple[int, Prediction]]] = {}
    for place, own in predictions:
        about = material(own.prediction.material)
        for name in own.names:
            offered.setdefault((name, about), []).append((place, own.prediction))
    wanted: dict[tuple[str, str], list[tuple[int, TruthRow]]] = {}
    for place, row in truths:
        wanted.setdefault((row.name, material(row.material)), []).append((place, row))
    for (name, about), rows in wanted.items():
        stated = offered.get((name, about), [])
        for edge in edges_of(
            name, [own for _, own in stated], [row for _, row in rows]
        ):
            place, prediction = stated[edge.prediction]
            yield Link(
                left=place,
                right=rows[edge.truth][0],
                is_own=prediction.name == name,
                error=edge.error,
            )


def _greedy(
    left: Sequence[Sequence[int]],
    right: Sequence[Sequence[int]],
    links: Sequence[Link],
) -> list[tuple[int, int]]:
    """Each prediction in file order with the first truth row that is left."""
    neighbours: dict[int, list[int]] = {}
    for link in links:
        neighbours.setdefault(link.left, []).append(link.right)
    order = sorted((row, place) for place in neighbours for row in left[place])
    taken = [0] * len(right)
    pairs = []
    for row, place in order:
        free = [
            (right[other][taken[other]], other)
            for other in neighbours[place]
            if taken[other] < len(right[other])
        ]
        if free:
            truth, other = min(free)
            taken[other] += 1
            pairs.append((row, truth))
    return pairs
