"""What happened to batches: requests that a provider answers within a day, together.

A batch has a key of ours, made from what is in it, under which the log knows it; the
provider is told the key and gives an id of its own. All of these events are marked, so
that the batches of a log are found without reading it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

import msgspec

Outcome: TypeAlias = Literal["completed", "expired", "cancelled", "failed", "missing"]
"""How a batch ended; missing: the provider never had it, so nothing of it was billed.
Whatever the word, each request of it has an outcome of its own."""


class BatchItem(NamedTuple):
    """An attempt in a batch."""

    task: int
    attempt: int
    id: str  #: what the provider calls it in its results; says nothing of the attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class OfBatch:
    """What every event of a batch says."""

    batch: str  #: its key


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPrepared(OfBatch):
    """A batch is about to be sent; durable before its first byte leaves.

    The payload lists its items as JSON.
    """

    VERSION: ClassVar[int] = 1

    model: str
    form: str  #: how the provider is spoken to, a name of `runner.batch.opening.FORMS`
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCreated(OfBatch):
    """The provider is known to have the batch."""

    VERSION: ClassVar[int] = 1

    id: str  #: the provider's
    file: str | None = None  #: id of what was uploaded for it, where that has one
    found: bool = False  #: in the provider's list: whoever created it could not say so


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPolled(OfBatch):
    """The provider said something new of an open batch."""

    VERSION: ClassVar[int] = 1

    status: str  #: in the provider's words
    done: int = 0  #: requests that it has answered
    failed: int = 0  #: requests that it could not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEnded(OfBatch):
    """Nothing will change about the batch any more; its results may still be read."""

    VERSION: ClassVar[int] = 1

    outcome: str  #: an `Outcome`
    requests: int
    done: int = 0
    failed: int = 0
    why: str | None = None  #: one sentence, where it did not complete


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCancelled(OfBatch):
    """The provider was asked to cancel the batch; what it had answered is billed."""

    VERSION: ClassVar[int] = 1

    by: str


BatchEvent: TypeAlias = (
    BatchPrepared | BatchCreated | BatchPolled | BatchEnded | BatchCancelled
)

_items: Final = msgspec.json.Decoder(list[BatchItem])


def batch_bytes(items: Sequence[BatchItem]) -> bytes:
    """The payload of `BatchPrepared`."""
    return msgspec.json.encode(items)


def batch_items(payload: bytes) -> list[BatchItem]:
    """The items in a payload; raises `msgspec.DecodeError` for any other bytes."""
    return _items.decode(payload)
