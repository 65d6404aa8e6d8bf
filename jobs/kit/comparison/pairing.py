"""Pairs the items that two models both have, and measures agreement of labels.

Items are paired by key and never by position. What only one side has is
counted, and so is what both have and one has no value for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics import Agreement, agreement
from jobs.kit.metrics.columns import Floats, quotient
from runner.scorecard import ItemValues, Labels

RIGHT_OR_WRONG = (0.0, 1.0)
"""Values of an item that is judged and not measured."""


class Incomparable(Exception):
    """The two sides speak of different things; the message says in what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideValues:
    """One side's values of the paired items."""

    first: Floats
    second: Floats | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCounts:
    """Items by outcome of B: better than A, however little, worse, or equal."""

    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Overlap of the items of two sides."""

    n: int  #: items with a value on both sides
    clusters: int  #: that these items are part of
    only_a: int
    only_b: int
    undefined: int  #: common items that a side has no value for

    @property
    def common(self) -> int:
        """Items of both sides, with a value or without."""
        return self.n + self.undefined

    @property
    def unpaired(self) -> int:
        """Items that only one side has."""
        return self.only_a + self.only_b


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemGap:
    """One item on both sides."""

    item: str
    cluster: str  #: the document that it is part of
    a: float
    b: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedItems:
    """One metric of A and of B over their common items, ascending by key."""

    values: ItemValues  #: of A; what they are, such as the kind, holds for both
    items: Sequence[str]  #: those with a value on both sides
    clusters: Sequence[str]  #: of those items
    a: SideValues
    b: SideValues
    resampled_clusters: tuple[str, ...]  #: the clusters of all common items, ascending
    overlap: Overlap
    common: CommonItems  #: with those that a side has no value of

    @property
    def is_clustered(self) -> bool:
        """Whether some cluster has several of the items."""
        return self.overlap.clusters < self.overlap.n

    @property
    def has_item_values(self) -> bool:
        """Whether an item by itself is higher on one side."""
        return self.values.kind in {"mean", "ratio"}

    @property
    def is_right_or_wrong(self) -> bool:
        """Whether every item is 0 or 1 on both sides."""
        return self.values.kind == "mean" and all(
            bool(np.isin(side.first, RIGHT_OR_WRONG).all()) for side in (self.a, self.b)
        )

    def by_item(self) -> tuple[Floats, Floats]:
        """A's and B's value of each item; NaN where a ratio has none."""
        return _by_item(self.a), _by_item(self.b)

    def outcomes(self) -> OutcomeCounts:
        """On how many items each side is better."""
        a, b = self.by_item()
        if self.values.lower_is_better:
            a, b = b, a
        wins, losses = int(np.sum(b > a)), int(np.sum(b < a))
        return OutcomeCounts(wins=wins, losses=losses, ties=int(np.sum(b == a)))

    def favour(self, gap: ItemGap) -> int:
        """1 where B is better on an item, -1 where it is worse, else 0."""
        higher = (gap.b > gap.a) - (gap.b < gap.a)
        return -higher if self.values.lower_is_better else higher

    def furthest(self, n: int) -> Iterator[ItemGap]:
        """The *n* items that differ most, by falling difference and then by key."""
        a, b = self.by_item()
        gaps = np.abs(b - a)
        for position in np.argsort(-gaps, kind="stable")[:n].tolist():
            if gaps[position] > 0:
                yield self._gap(position, a, b)

    def every(self) -> Iterator[ItemGap]:
        """All items by key, those without a difference too."""
        a, b = self.by_item()
        for position in range(len(self.items)):
            yield self._gap(position, a, b)

    def _gap(self, position: int, a: Floats, b: Floats) -> ItemGap:
        return ItemGap(
            item=self.items[position],
            cluster=self.clusters[position],
            a=float(a[position]),
            b=float(b[position]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonItems:
    """The items that two sides have, ascending by key, whatever metric is compared."""

    lists: tuple[Sequence[str], ...]  #: items and clusters that they were found in
    items: Sequence[str]
    clusters: Sequence[str]  #: of those items
    resampled_clusters: tuple[str, ...]  #: the same clusters once, ascending
    in_a: npt.NDArray[np.intp]  #: the index of each item in A
    in_b: npt.NDArray[np.intp]
    only_a: int
    only_b: int

    def is_of(self, a: ItemValues, b: ItemValues) -> bool:
        """Whether both sides have the very lists that these items were found in."""
        lists = zip(self.lists, _lists(a, b), strict=True)
        return all(one is other for one, other in lists) and all(
            len(column) == len(values.items)
            for values in (a, b)
            for column in _value_columns(values)
        )


def _lists(a: ItemValues, b: ItemValues) -> tuple[Sequence[str], ...]:
    return a.items, a.clusters, b.items, b.clusters


def _value_columns(values: ItemValues) -> tuple[Sequence[float | None], ...]:
    return (values.first,) if values.second is None else (values.first, values.second)


def _common_items(a: ItemValues, b: ItemValues) -> CommonItems:
    at_a, at_b = _item_indices("A", a), _item_indices("B", b)
    items = sorted(at_a.keys() & at_b.keys())
    in_a = [at_a[item] for item in items]
    clusters = [a.clusters[index] for index in in_a]
    return CommonItems(
        lists=_lists(a, b),
        items=items,
        clusters=clusters,
        resampled_clusters=tuple(sorted(set(clusters))),
        in_a=np.array(in_a, dtype=np.intp),
        in_b=np.array([at_b[item] for item in items], dtype=np.intp),
        only_a=len(at_a) - len(items),
        only_b=len(at_b) - len(items),
    )


def pair_items(
    a: ItemValues, b: ItemValues, common: CommonItems | None = None
) -> PairedItems:
    """Both sides of one metric, on the items that both have.

    Args:
        a: values of side A.
        b: values of side B.
        common: of the metric before. Metrics of one frame share them.

    Raises:
        Incomparable: where they are not the same metric, or not of the same truth.
        ValueError: where a side gives an item twice, or columns of unequal length.
    """
    if (a.kind, a.definition) != (b.kind, b.definition):
        raise Incomparable(
            f"A defines it as {a.definition} and B as {b.definition}; "
            "score both under the same settings."
        )
    if common is None or not common.is_of(a, b):
        common = _common_items(a, b)
    left, right = _columns(a, common.in_a), _columns(b, common.in_b)
    defined = _defined(left) & _defined(right)
    left, right = _selected_values(left, defined), _selected_values(right, defined)
    positions = np.flatnonzero(defined).tolist()
    if a.kind in {"auroc", "auprc"}:
        _same_labels(left, right)
    clusters = [common.clusters[position] for position in positions]
    return PairedItems(
        values=a,
        items=[common.items[position] for position in positions],
        clusters=clusters,
        a=left,
        b=right,
        resampled_clusters=common.resampled_clusters,
        overlap=Overlap(
            n=len(positions),
            clusters=len(set(clusters)),
            only_a=common.only_a,
            only_b=common.only_b,
            undefined=len(common.items) - len(positions),
        ),
        common=common,
    )


def _same_labels(a: SideValues, b: SideValues) -> None:
    differing = int((a.first != b.first).sum())
    if differing:
        raise Incomparable(
            f"A and B disagree about the label of {differing} items; score both with "
            "the same gold."
        )


def _item_indices(side: str, values: ItemValues) -> dict[str, int]:
    indices = {item: index for index, item in enumerate(values.items)}
    lengths = {len(column) for column in (values.clusters, *_value_columns(values))}
    if lengths != {len(indices)} or len(values.items) != len(indices):
        raise ValueError(
            f"{side} gives {len(values.items)} items, {len(indices)} of them "
            f"different, and columns of {sorted(lengths)} values."
        )
    return indices


def _columns(values: ItemValues, indices: npt.NDArray[np.intp]) -> SideValues:
    """The values at *indices*; NaN where they are undefined."""
    first = np.array(values.first, dtype=np.float64)[indices]
    if values.second is None:
        return SideValues(first=first, second=None)
    return SideValues(
        first=first, second=np.array(values.second, dtype=np.float64)[indices]
    )


def _defined(columns: SideValues) -> npt.NDArray[np.bool_]:
    second = columns.first if columns.second is None else columns.second
    return ~(np.isnan(columns.first) | np.isnan(second))


def _selected_values(columns: SideValues, which: npt.NDArray[np.bool_]) -> SideValues:
    second = None if columns.second is None else columns.second[which]
    return SideValues(first=columns.first[which], second=second)


def _by_item(columns: SideValues) -> Floats:
    if columns.second is None:
        return columns.first
    return quotient(columns.first, columns.second)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAgreement:
    """Two models' labels against each other."""

    what: str  #: a label is, such as "decision"
    n: int  #: items that both have a label of
    agreement: Agreement


def label_agreement(a: Labels, b: Labels) -> LabelAgreement | None:
    """Agreement over the items that both label; None where there is none.

    Nor is there any where the labels are not from one list.
    """
    if (a.what, a.categories) != (b.what, b.categories):
        return None
    assigned_b = dict(zip(b.items, b.assigned, strict=True))
    both = [
        (word, other)
        for item, word in zip(a.items, a.assigned, strict=True)
        if word is not None and (other := assigned_b.get(item)) is not None
    ]
    if not both:
        return None
    assigned_a, others = zip(*both, strict=True)
    coefficients = agreement(assigned_a, others, a.categories)
    return LabelAgreement(what=a.what, n=len(both), agreement=coefficients)
