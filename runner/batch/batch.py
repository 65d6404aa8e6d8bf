"""Describes one batch: its calls, states, ids, endpoint and cancellation.

The provider creates the batch at some time between `PREPARED` and `OPEN`, and after a
crash in between it is unknown whether it did. Hence `SOUGHT`: such a batch is looked up
before any of its requests is sent again.

The batch's key is stored with the batch, or, if the provider stores no metadata, as the
prefix of the items' ids. So a later process can identify a batch and its content.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol, TypeAlias

from runner.clients.client import CallLeft, CallUnsent, Received
from runner.clients.fallbacks import Fallbacks
from runner.clients.wire_shared import Shape
from runner.errors import AttemptError, Expired
from runner.messages import ChatRequest
from store.clock import Clock
from store.database import open_reader
from store.events import BatchCancelled, BatchEnded, BatchItem, BatchOutcome
from store.log.interface import Log
from store.read.usage import RecordedBatch, batches
from store.runs import RunFolder

ItemOutcome: TypeAlias = Received | AttemptError
"""Outcome of one request of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBounds:
    """A provider's limits for one batch."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchQuery:
    """A batch that may exist at the provider, as recorded in the log."""

    key: str
    requests: int
    prepared_us: int  #: time just before it was sent, by our clock
    others: Collection[str] = ()  #: ids of other batches


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearch:
    """Result of a search for a batch in the provider's list."""

    id: str | None = None  #: the provider's id, if found
    is_settled: bool = True  #: False: an open batch may be the one


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """Status of a batch."""

    status: str  #: the provider's status
    done: int = 0  #: answered requests
    failed: int = 0  #: requests that ended with an error, without unprocessed ones
    outcome: BatchOutcome | None = None  #: None: not ended
    reason: str | None = None  #: the provider's reason for a failed batch
    files: tuple[str, ...] = ()  #: ids of result files
    faults: Mapping[int, AttemptError] = field(default_factory=dict)
    """Errors of a failed batch, by the index of the item from 0."""
    rest: AttemptError | None = None  #: outcome of items without results


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanItem:
    """An item of a run in a batch that is missing from the run's log."""

    batch: str  #: id of the batch
    item: str  #: id of an item that was or may be answered


class BatchEndpoint(Protocol):
    """A provider's batches of one model; every method may raise `AttemptError`."""

    form: str  #: a name of `runner.batch.client.FORMS`
    bounds: BatchBounds
    ladder: Fallbacks  #: accepted request parameters

    def encode(self, request: ChatRequest, shape: Shape) -> bytes:
        """Encode a request's body."""
        ...

    async def upload(self, key: str, items: Sequence[tuple[str, bytes]]) -> str | None:
        """Upload ids and bodies; return the id of the file, if there is one.

        An upload alone is neither processed nor billed.
        """
        ...

    async def create(
        self, key: str, items: Sequence[tuple[str, bytes]], file: str | None
    ) -> str:
        """Create the batch and return its id."""
        ...

    async def find(self, query: BatchQuery) -> BatchSearch:
        """Search for a batch that may have been created."""
        ...

    async def orphans(
        self, tag: str, *, known: AbstractSet[str], before_us: int
    ) -> Sequence[OrphanItem] | None:
        """Return the items of the run with that tag in other than *known* batches.

        None: an open batch from *before_us* may still turn out to have some.
        """
        ...

    async def poll(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch."""
        ...

    def results(
        self, batch_id: str, status: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        """Yield the outcomes of the items by id, in any order, as they are read."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class BatchStage(enum.Enum):
    """Stage of a batch."""

    GATHERING = "gathering"  #: collects calls
    PREPARED = "prepared"  #: in the log, not yet sent
    SOUGHT = "sought"  #: may exist at the provider
    OPEN = "open"  #: exists at the provider; its id is in the log
    ENDED = "ended"  #: results are available
    COLLECTED = "collected"  #: all calls have outcomes
    REFUSED = "refused"  #: refused or dropped by the provider
    MISSING = "missing"  #: never existed at the provider: its calls may be sent again

    @property
    def is_final(self) -> bool:
        """Whether the stage is final."""
        return self in {BatchStage.COLLECTED, BatchStage.REFUSED, BatchStage.MISSING}


class BatchEvent(enum.Enum):
    """Result of a step."""

    RECORDED = "the log has it"
    CREATED = "the provider gave it an id"
    POSTPONED = "the provider accepted nothing; it is tried again later"
    UNSURE = "the provider may have taken it"
    DECLINED = "the provider will not take it"
    LISTED = "the provider's list has it"
    ABSENT = "the provider's list has it not"
    UNDECIDED = "the provider's list is not conclusive yet"
    SEEN = "the provider is at work on it"
    DONE = "the provider has ended it"
    TURNED_AWAY = "too many requests are queued there: the provider rejected it"
    GONE = "the provider knows no such batch"
    BROKEN = "its results did not come whole"
    READ = "its results were read to the end"


_S, _H = BatchStage, BatchEvent
BATCH_TRANSITIONS: Final[Mapping[tuple[BatchStage, BatchEvent], BatchStage]] = {
    (_S.GATHERING, _H.RECORDED): _S.PREPARED,
    (_S.GATHERING, _H.LISTED): _S.OPEN,
    (_S.PREPARED, _H.CREATED): _S.OPEN,
    (_S.PREPARED, _H.POSTPONED): _S.PREPARED,
    (_S.PREPARED, _H.UNSURE): _S.SOUGHT,
    (_S.PREPARED, _H.DECLINED): _S.REFUSED,
    (_S.SOUGHT, _H.LISTED): _S.OPEN,
    (_S.SOUGHT, _H.ABSENT): _S.MISSING,
    (_S.SOUGHT, _H.UNDECIDED): _S.SOUGHT,
    (_S.OPEN, _H.SEEN): _S.OPEN,
    (_S.OPEN, _H.DONE): _S.ENDED,
    (_S.OPEN, _H.TURNED_AWAY): _S.MISSING,
    (_S.OPEN, _H.GONE): _S.REFUSED,
    (_S.ENDED, _H.BROKEN): _S.ENDED,
    (_S.ENDED, _H.READ): _S.COLLECTED,
}
"""Allowed transitions; any other pair is a bug."""


def stage_after(stage: BatchStage, happening: BatchEvent) -> BatchStage:
    """Return the stage after an event; raise `KeyError` if it is not allowed."""
    return BATCH_TRANSITIONS[stage, happening]


class BatchedAttempt(NamedTuple):
    """An attempt to be sent in a batch."""

    task: int
    attempt: int
    request: str  #: hash of the request, hex


def run_tag(run_id: str) -> str:
    """Return the key prefix of all batches of a run."""
    return f"siftlog-{_digest([run_id], size=4)}"


def batch_key(
    tag: str, model: str, attempts: Iterable[BatchedAttempt], prepared_us: int
) -> str:
    """Return the key of a batch with these attempts, prepared at that time.

    Attempt numbers matter: a repetition after an expired batch is another batch. So
    does the time: a new log, after one was lost, counts attempts from 1 again.
    """
    words = (
        f"{attempt.task} {attempt.attempt} {attempt.request}" for attempt in attempts
    )
    return f"{tag}-{_digest([model, str(prepared_us), *words], size=8)}"


def item_id(key: str, attempt: BatchedAttempt) -> str:
    """Return the id of a task in a batch.

    >>> item_id("siftlog-0a1b2c3d-0123456789abcdef", BatchedAttempt(7, 2, "feed" * 16))
    'siftlog-0a1b2c3d-0123456789abcdef-7-feedfeedfeedfeed'
    """
    return f"{key}-{attempt.task}-{digest_of(attempt.request)}"


def digest_of(request: str) -> str:
    """Return the part of a request's hash used in item ids: its first 64 bits."""
    return request[:16]


def key_of(item: str) -> str:
    """Return the key prefix of an item's id."""
    return item.rsplit("-", 2)[0]


def request_of(item: str) -> str:
    """Return the request part of an item's id; see `digest_of`."""
    return item.rsplit("-", 1)[-1]


def _digest(words: Iterable[str], *, size: int) -> str:
    digest = blake2b(digest_size=size)
    for word in words:
        digest.update(f"{word}\n".encode())
    return digest.hexdigest()


CallOutcome: TypeAlias = ItemOutcome | CallLeft | CallUnsent
"""Result of a call; the last two if it has no outcome."""


@dataclass(slots=True)
class _Gathered:
    """A call that waits in a batch."""

    attempt: BatchedAttempt
    body: bytes  #: body to send
    item: str | None  #: the provider's id, if adopted
    outcome: asyncio.Future[CallOutcome]


class Batch:
    """Calls that are sent to the provider together."""

    def __init__(
        self, stage: BatchStage = BatchStage.GATHERING, *, batch_id: str | None = None
    ) -> None:
        self.stage = stage
        self.key = ""
        self.id = batch_id  #: the provider's
        self.requests = 0
        self.prepared_us = 0
        self.ids: list[str] = []  #: ids of all items, in the order of sending
        self.status: BatchStatus | None = None  #: last status from the provider
        self.has_ended = False  #: whether its end is in the log
        self.is_led = False  #: whether a call drives it
        self.error: AttemptError | None = None  #: why it may not exist at the provider
        self.refusals = 0  #: number of temporary refusals
        self.pauses = 0  #: consecutive polls without news
        self.absent_since: float | None = None  #: first failed search in a row
        self.readings = 0  #: number of incomplete readings of its results
        self.is_troubled = False  #: whether the user was notified of a problem
        self.bytes = 0
        self._gathered: list[_Gathered] = []
        self._waiting: dict[str, asyncio.Future[CallOutcome]] = {}

    # -- gathering -------------------------------------------------------------

    def __len__(self) -> int:
        """Number of calls."""
        return len(self._gathered)

    def gather(
        self, attempt: BatchedAttempt, body: bytes, item: str | None = None
    ) -> asyncio.Future[CallOutcome]:
        """Add a call; *item* is the provider's id of an adopted item."""
        outcome: asyncio.Future[CallOutcome] = (
            asyncio.get_running_loop().create_future()
        )
        self._gathered.append(_Gathered(attempt, body, item, outcome))
        self.bytes += len(body)
        return outcome

    def close(self, tag: str, model: str, now_us: int) -> list[BatchItem]:
        """Accept no more calls; set the key and return the items."""
        attempts = [call.attempt for call in self._gathered]
        self.key = batch_key(tag, model, attempts, now_us)
        self.prepared_us = now_us
        items = [
            BatchItem(
                call.attempt.task,
                call.attempt.attempt,
                call.item or item_id(self.key, call.attempt),
            )
            for call in self._gathered
        ]
        self._hold(items)
        for item, call in zip(items, self._gathered, strict=True):
            self._waiting[item.id] = call.outcome
        return items

    def bodies(self) -> list[tuple[str, bytes]]:
        """Return the ids and bodies to send."""
        return [
            (item, call.body)
            for item, call in zip(self.ids, self._gathered, strict=True)
        ]

    def sent(self) -> None:
        """Drop the bodies."""
        self._gathered.clear()

    # -- of an earlier process -------------------------------------------------

    def take_up(
        self, items: Iterable[BatchItem], open_: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], asyncio.Future[CallOutcome]]:
        """Continue an earlier process's batch; return futures of *open_* attempts."""
        batch_items = list(items)
        self._hold(batch_items)
        still_open = set(open_)
        loop = asyncio.get_running_loop()
        outcomes: dict[tuple[int, int], asyncio.Future[CallOutcome]] = {}
        for item in batch_items:
            if (item.task, item.attempt) in still_open:
                outcome: asyncio.Future[CallOutcome] = loop.create_future()
                outcomes[item.task, item.attempt] = self._waiting[item.id] = outcome
        return outcomes

    def _hold(self, items: list[BatchItem]) -> None:
        self.requests = len(items)
        self.ids = [item.id for item in items]

    # -- outcomes --------------------------------------------------------------

    def resolve(self, item: str, outcome: CallOutcome) -> None:
        """Set the outcome of a call; ignore ids without a waiting call."""
        waiting = self._waiting.pop(item, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)

    @property
    def unresolved(self) -> list[tuple[int, str]]:
        """Indices, from 0, and ids of items with waiting calls."""
        numbered = enumerate(self.ids)
        return [(n, item) for n, item in numbered if item in self._waiting]

    def resolve_rest(self, outcome: CallOutcome) -> None:
        """Set the same outcome for all waiting calls, collected ones too."""
        for _, item in self.unresolved:
            self.resolve(item, outcome)
        for call in self._gathered:
            if not call.outcome.done():
                call.outcome.set_result(outcome)


POLL_S: Final = 5.0
"""Delay between two searches for a batch without a known id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCancellation:
    """Cancels the batches of a cancelled run."""

    folder: RunFolder
    log: Log
    clock: Clock
    endpoints: Mapping[str, BatchEndpoint]  #: batch endpoints, by model
    settle_s: float  #: time after which an unlisted batch counts as absent
    notify: Callable[[str], None]  #: shows a message to the user

    async def cancel(self, by: str) -> None:
        """Cancel every open batch; report those that were unreachable.

        Args:
            by: who cancels.
        """
        with open_reader(self.folder.log) as reader:
            recorded_batches = batches(reader)
        others = {batch.id for batch in recorded_batches if batch.id is not None}
        # none of them is sent later, so one deadline applies to all
        settled_at = self.clock.monotonic() + self.settle_s
        for batch in recorded_batches:
            endpoint = self.endpoints.get(batch.model)
            if not batch.is_open or endpoint is None:
                continue
            try:
                batch_id = batch.id
                if batch_id is None:
                    batch_id = await self._find(batch, endpoint, others, settled_at)
                if batch_id is not None:
                    await endpoint.cancel(batch_id)
            except AttemptError as error:
                self.notify(
                    f"Batch {batch.id or batch.key} of {batch.model} may still "
                    f"be open; cancel it at the provider: {error}"
                )
                continue
            outcome: BatchOutcome = "missing" if batch_id is None else "cancelled"
            await self.log.append(
                BatchCancelled(batch=batch.key, by=by),
                BatchEnded(batch=batch.key, outcome=outcome, requests=batch.requests),
            )

    async def _find(
        self,
        batch: RecordedBatch,
        endpoint: BatchEndpoint,
        others: Collection[str],
        settled_at: float,
    ) -> str | None:
        """Return the provider's id of a batch; None: it does not exist there.

        Raises:
            AttemptError: the search fails.
        """
        query = BatchQuery(
            key=batch.key,
            requests=batch.requests,
            prepared_us=batch.prepared_us,
            others=others,
        )
        is_announced = False
        while True:
            # first, so that the last search starts after the deadline
            now = self.clock.monotonic()
            search = await endpoint.find(query)
            if not search.is_settled:
                raise Expired("its list does not show yet which one it is")
            if search.id is not None or now >= settled_at:
                return search.id
            if not is_announced:
                is_announced = True
                self.notify(
                    f"Batch {batch.key} is not in the provider's list, which may lag "
                    f"behind: looking again for {settled_at - now:.0f} seconds."
                )
            await self.log.heartbeat()
            await self.clock.sleep_until(min(now + POLL_S, settled_at))
