"""What the batch client asks of a provider, in either form."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from runner.clients.client import Received
from runner.clients.ladder import Ladder
from runner.errors import AttemptError
from runner.request import ChatRequest
from runner.wire import Shape
from store.events import BatchOutcome

ItemOutcome: TypeAlias = Received | AttemptError
"""What came of one request of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a provider takes in one batch."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A batch that a provider may have, as far as the log tells."""

    key: str
    requests: int
    prepared_us: int  #: when it was about to be sent, by our clock
    others: Collection[str] = ()  #: ids that are known to be of other batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a provider's list says of a batch that is sought."""

    id: str | None = None  #: under which the provider has it
    is_settled: bool = True  #: False: one that is at work yet may turn out to be it


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a batch stands."""

    status: str  #: in the provider's words
    done: int = 0  #: requests that are answered
    failed: int = 0  #: requests that ended with an error; not those it never came to
    outcome: BatchOutcome | None = None  #: None: it has not ended
    why: str | None = None  #: what the provider says of a batch that failed
    files: tuple[str, ...] = ()  #: ids of what its results stand in
    faults: Mapping[int, AttemptError] = field(default_factory=dict)
    """By the number of the item from 0: what was wrong with a batch that failed."""
    rest: AttemptError | None = None  #: what an item without results ends with


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """An item of a run in a batch that the run's log does not know."""

    batch: str  #: id of the batch
    item: str  #: id of the item: it was answered, or may be yet


class BatchEndpoint(Protocol):
    """A provider's batches of one model; every method may raise `AttemptError`."""

    form: str  #: a name of `runner.batch.opening.FORMS`
    bounds: Bounds
    ladder: Ladder  #: what the provider takes

    def encode(self, request: ChatRequest, shape: Shape) -> bytes:
        """A request's body."""
        ...

    async def upload(self, key: str, items: Sequence[tuple[str, bytes]]) -> str | None:
        """Bring ids and bodies to the provider; the id of the file, if it has one.

        Nothing is answered, and nothing billed, of what was only uploaded.
        """
        ...

    async def create(
        self, key: str, items: Sequence[tuple[str, bytes]], file: str | None
    ) -> str:
        """Have the items answered; the batch's id."""
        ...

    async def find(self, sought: Sought) -> Search:
        """Look for a batch that may have been created."""
        ...

    async def orphans(
        self, tag: str, *, known: AbstractSet[str], before_us: int
    ) -> Sequence[Orphan] | None:
        """The items of the run of that tag in batches of no *known* id or key.

        None: one that was at work *before_us*, and is still, may turn out to be its.
        """
        ...

    async def look(self, batch_id: str) -> Standing:
        """How a batch stands."""
        ...

    def results(
        self, batch_id: str, standing: Standing
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        """What came of the items, by their ids, in any order; each as it is read."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Have nothing more of a batch answered."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
