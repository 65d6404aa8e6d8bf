"""The items of a metric on both sides of a change, each with its share of it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from jobs.differences.difference import ItemShare
from jobs.metrics import Term, shares_of_change
from runner.scorecard import ItemValues

NEAR = Fraction(1, 10**9)
"""By how much shares may miss a metric's change: more is no rounding, and the metric is
something else than the ratio of its items' sums."""


def item_shares(
    before: ItemValues, after: ItemValues, change: Fraction
) -> tuple[tuple[ItemShare, ...], Fraction | None]:
    """The items that moved a metric, and what its own rounding leaves.

    Args:
        before: the items as they were.
        after: as they became.
        change: of the metric, exactly.

    Returns:
        The items, the largest shares first, without shares where the metric is no ratio
        of sums; and what is left of the change.
    """
    old, new = terms(before), terms(after)
    clusters = {
        item: cluster
        for values in (before, after)
        for item, cluster in zip(values.items, values.clusters, strict=True)
    }
    shares = shares_of_change(old, new) if _are_summed(before, after) else None
    rest = None if shares is None else change - sum(shares.values(), Fraction())
    if rest is None or abs(rest) > NEAR:
        shares = rest = None
    moved = (item for item in clusters if old.get(item) != new.get(item))
    found = [
        ItemShare(
            item=item,
            cluster=clusters[item],
            before=_value(old.get(item), before),
            after=_value(new.get(item), after),
            share=None if shares is None else shares[item],
        )
        for item in (moved if shares is None else shares)
    ]
    found.sort(key=lambda each: (-abs(each.share or 0), each.item))
    return tuple(found), rest


def _are_summed(*sides: ItemValues) -> bool:
    return all(values.kind in {"mean", "ratio"} for values in sides)


def terms(values: ItemValues) -> Mapping[str, Term]:
    """What each item that has a value adds above and below the line.

    Of an area, its label and its score.
    """
    second = [1.0] * len(values.items) if values.second is None else values.second
    columns = zip(values.items, values.first, second, strict=True)
    return {
        item: (float(above), float(below))
        for item, above, below in columns
        if above is not None and below is not None
    }


def _value(term: Term | None, values: ItemValues) -> float | None:
    """What a reader is shown of an item: its value, or, of an area, its score."""
    if term is None:
        return None
    above, below = term
    if _are_summed(values):
        return above / below if below else None
    return below
