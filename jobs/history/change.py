"""The parts that one row has lost or gained since another: the studies of a review."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.history.comparison import Comparison
from store.results import ItemPart, ItemParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A part that was got by one of two rows only."""

    item: str
    part: str  #: its name
    before: ItemPart
    after: ItemPart

    @property
    def is_lost(self) -> bool:
        """Whether it was got before."""
        return self.before.got


def changes(
    comparison: Comparison, now: ItemParts, then: ItemParts
) -> Iterator[Change]:
    """The parts that differ, by item and in the item's order.

    Args:
        comparison: of two rows.
        now: the parts of the run that is looked at.
        then: those of the other run; comparable items have the same ones.
    """
    for item in comparison.items:
        pairs = zip(
            now.names[item],
            then.models[comparison.then.model][item],
            now.models[comparison.now.model][item],
            strict=True,
        )
        yield from (
            Change(item=item, part=name, before=before, after=after)
            for name, before, after in pairs
            if before.got != after.got
        )
