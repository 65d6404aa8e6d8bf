"""What a scoring leaves behind for later runs to be held against.

A `Milestone` is part of the event `ScoringRecorded`, small enough to be read of a
thousand runs at once. What lies below its sums, the `Parts`, stands beside the event
and is read of the runs that are compared, and of no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
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
    standings: dict[str, dict[str, Standing]]  #: by model, then item
    partial: bool = False  #: it was of an unfinished run
    cost_usd: dict[str, float] = field(default_factory=dict)
    """By model, as far as it is known; none of an import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What became of one thing that an item asks for."""

    got: bool
    score: float | None = None
    lost_at: str = ""  #: the step that lost it


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of all items, in an order that goes with the item's hash."""

    names: dict[str, list[str]]  #: by item
    models: dict[str, dict[str, list[Part]]]  #: by model, then item


_DECODER = msgspec.json.Decoder(Parts)


def parts_payload(parts: Parts) -> bytes:
    """The parts as they stand beside an event."""
    return msgspec.json.encode(parts)


def parts_of(payload: bytes) -> Parts:
    """The parts of a payload.

    Raises:
        msgspec.DecodeError: it holds something else.
    """
    return _DECODER.decode(payload)
