"""Intervals of a rate that stay valid however often people look while they label.

Valid are only the first labels of a random draw, in its order: what comes after an item
without a label may have been chosen. An item that people labelled and could not decide
counts as the lower value for the lower end, and as the upper one for the upper end, so
the interval holds whatever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from jobs.kit.metrics.confidence_sequences import MeanSequence
from store.labels.events import ItemDrawn


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyTimeInterval:
    """Ends that hold at all looks together, with the level of the interval."""

    lo: float
    hi: float
    labels: int  #: first ones of the draw that it rests on


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledDraw:
    """The items of a random draw in its order, and which of them have a label."""

    order: Sequence[str]
    labelled: Collection[str]  #: also of items that nobody could decide

    @classmethod
    def of(
        cls, draw: Sequence[ItemDrawn], labelled: Collection[str], population: str
    ) -> LabelledDraw | None:
        """Return the draw; None if its order says nothing about the run's items.

        Args:
            draw: its events in order.
            labelled: items with a label.
            population: `population_hash` of the run's items.
        """
        if not draw or draw[0].design != "random":
            return None
        if draw[0].population_sha256 != population:
            return None
        return cls(order=[event.item for event in draw], labelled=labelled)

    def rate(
        self,
        items: Collection[str],
        value: Callable[[str], float | None],
        level: float,
    ) -> AnyTimeInterval | None:
        """The interval of the mean over *items*; None before the first label.

        Args:
            items: some of the run's, chosen without a look at labels.
            value: of a labelled item, from 0 to 1; None: undecided.
            level: of the interval.
        """
        drawn = (item for item in self.order if item in items)
        values = [value(item) for item in takewhile(self.labelled.__contains__, drawn)]
        if not values:
            return None
        low, high = (
            MeanSequence(
                values=[undecided if one is None else one for one in values],
                population=len(items),
                alpha=1 - level,
            ).interval
            for undecided in (0.0, 1.0)
        )
        if low.lo is None or high.hi is None:
            return None
        return AnyTimeInterval(lo=low.lo, hi=high.hi, labels=len(values))
