"""Defines recorded results: milestones of scorings, and the early stopping rule.

A `Milestone` is part of the event `ScoringRecorded`, small enough to be read of a
thousand runs at once. What lies below its sums, the `ItemParts`, is stored beside the
event and is read only of the runs that are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScore:
    """What one model reached on one item; its value is `got / of`."""

    got: float
    of: float
    passed: bool
    tries: list[float] = field(default_factory=list)
    """What each replicate alone would have got; empty where there is one."""
    verdict: bool | None = None  #: of what is judged beside the value; None: it is not


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """What a scoring found, model by model and item by item."""

    job: str
    measure: str  #: what a standing's value is, such as "recall"
    item: str  #: what an item is called, such as "review"
    part: str  #: what an item is made of, such as "study"
    data: str = ""  #: hash of what was searched; empty: nothing was
    items: dict[str, str]
    """Items, each with a hash of what two runs must share for it to be compared."""
    standings: dict[str, dict[str, ItemScore]]  #: by model, then item
    partial: bool = False  #: it was of an unfinished run
    cost_usd: dict[str, float] = field(default_factory=dict)
    """By model, as far as it is known; none of an import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPart:
    """What became of one thing that an item asks for."""

    got: bool
    score: float | None = None
    lost_at: str = ""  #: the step that lost it


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemParts:
    """The parts of all items, in an order that goes with the item's hash."""

    names: dict[str, list[str]]  #: by item
    models: dict[str, dict[str, list[ItemPart]]]  #: by model, then item


_DECODER = msgspec.json.Decoder(ItemParts)


def parts_payload(parts: ItemParts) -> bytes:
    """The parts as they stand beside an event."""
    return msgspec.json.encode(parts)


def parts_of(payload: bytes) -> ItemParts:
    """The parts of a payload.

    Raises:
        msgspec.DecodeError: it holds something else.
    """
    return _DECODER.decode(payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """The question that a run of two models stops at once it is decided.

    B, the second model, is compared with A, the first.
    """

    metric: str  #: path
    margin: float = 0.0  #: a difference that does not matter is no larger
    alpha: float = 0.05  #: chance of a wrong decision, at most

    @classmethod
    def of(cls, typed: str, alpha: float) -> StoppingRule:
        """What was typed as `METRIC` or `METRIC>=MARGIN`.

        Raises:
            ValueError: the margin is no share from 0 to below 1.
        """
        metric, _, margin = typed.partition(">=")
        try:
            share = float(margin or 0)
        except ValueError:
            share = -1.0
        if not 0 <= share < 1:
            raise ValueError(f"the margin in {typed!r} is no number from 0 to below 1")
        return cls(metric=metric.strip(), margin=share, alpha=alpha)

    def __str__(self) -> str:
        """As it is typed."""
        return f"{self.metric}>={self.margin:g}" if self.margin else self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonDecided:
    """Sequential stopping decided between two models.

    What it says follows from the answers alone: whoever looks again, however late,
    finds it decided after the same documents.
    """

    VERSION: ClassVar[int] = 1

    stopping: StoppingRule
    a: str  #: model
    b: str
    verdict: str  #: of B: "better", "worse", or "close", apart by less than the margin
    clusters: int  #: documents that it took, from the first one planned on
    cluster: str  #: what such a document is called, such as "paper"
    difference: float  #: B minus A, mean over these documents
    lo: float  #: what the mean difference lies between, whenever one looks
    hi: float
    seq: int  #: the log's last event that was read
