"""Defines recorded results: milestones of scorings, and the early stopping rule.

A `Milestone` is part of the event `ScoringRecorded`, small enough to be read of a
thousand runs at once. The values below its sums, `ItemParts`, are the event's payload
and are read only for the compared runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScore:
    """Result of one model on one item; its value is `got / of`."""

    got: float
    of: float
    passed: bool
    tries: list[float] = field(default_factory=list)
    """Results of each replicate separately; empty for a single one."""
    verdict: bool | None = None  #: of a second judged value; None: not judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """Results of a scoring, by model and item."""

    job: str
    measure: str  #: name of a standing's value, such as "recall"
    item: str  #: name of an item, such as "review"
    part: str  #: name of an item's parts, such as "study"
    data: str = ""  #: hash of the searched corpus; empty: no search
    items: dict[str, str]
    """Items, each with a hash that must be equal in two runs to compare it."""
    standings: dict[str, dict[str, ItemScore]]  #: by model, then item
    partial: bool = False  #: it was of an unfinished run
    cost_usd: dict[str, float] = field(default_factory=dict)
    """By model, if known; none for an import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPart:
    """Outcome of one part of an item."""

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
    """Return the parts encoded as a payload."""
    return msgspec.json.encode(parts)


def parts_of(payload: bytes) -> ItemParts:
    """Decode the parts of a payload.

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
        """A rule written as `METRIC` or `METRIC>=MARGIN`.

        Raises:
            ValueError: the margin is not from 0 to below 1.
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
        """Return the rule as typed."""
        return f"{self.metric}>={self.margin:g}" if self.margin else self.metric


class ComparisonDecided(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sequential stopping decided between two models.

    The decision follows from the answers only: a later check finds it decided after the
    same documents.
    """

    VERSION: ClassVar[int] = 1

    stopping: StoppingRule
    a: str  #: model
    b: str
    #: of B: "better", "worse", or "close": the difference is below the margin
    verdict: str
    clusters: int  #: documents that it took, from the first one planned on
    cluster: str  #: name of such a document, such as "paper"
    difference: float  #: B minus A, mean over these documents
    lo: float  #: bounds of the mean difference, valid at any number of checks
    hi: float
    seq: int  #: the log's last event that was read
