"""One model of one run, as its newest scoring found it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jobs.metrics import mean, ratio
from store.results import ItemScore, Milestone


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the history."""

    run: str
    at_us: int  #: when the run was made, microseconds since 1970 UTC
    model: str
    milestone: Milestone

    @property
    def standings(self) -> Mapping[str, ItemScore]:
        """What it reached, by item."""
        return self.milestone.standings[self.model]

    @property
    def is_alone(self) -> bool:
        """Whether its run has no other model."""
        return len(self.milestone.standings) == 1

    @property
    def cost_usd(self) -> float | None:
        """What its calls took; None: unknown, or there were none."""
        return self.milestone.cost_usd.get(self.model)

    @property
    def micro(self) -> float | None:
        """The value over all items together."""
        every = self.standings.values()
        return ratio(sum(own.got for own in every), sum(own.of for own in every))

    @property
    def passed(self) -> int:
        """Items that passed."""
        return sum(own.passed for own in self.standings.values())

    @property
    def verdicts(self) -> tuple[int, int] | None:
        """Items that pass what is judged beside, and those that were; None: none."""
        judged = [
            own.verdict for own in self.standings.values() if own.verdict is not None
        ]
        return (sum(judged), len(judged)) if judged else None

    def macro(self, items: Iterable[str] | None = None) -> float | None:
        """The mean value of some items; of all, where none are named."""
        named = self.standings if items is None else items
        return mean(_value(self.standings[item]) for item in named)

    def tries(self, items: Iterable[str]) -> list[float | None]:
        """The same of each replicate alone; none where there is only one."""
        lists = [
            [ratio(got, own.of) for got in own.tries]
            for own in map(self.standings.__getitem__, items)
        ]
        return [mean(values) for values in zip(*lists, strict=True)]


def _value(own: ItemScore) -> float | None:
    return ratio(own.got, own.of)
