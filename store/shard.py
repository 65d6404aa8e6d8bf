"""Which part of a run one of its logs holds.

A `Shard` is part of the event `RunStarted` of a log that plans a part of the run only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A part of a run, as it was asked for."""

    index: int  #: from 0
    count: int  #: of how many
    slices: str  #: what it plans, as `store.slices.Slices` writes it

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
