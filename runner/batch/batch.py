"""Describes one batch: its calls, states, ids, endpoint and cancellation.

The provider creates the batch at some moment between `PREPARED` and `OPEN`, and a
process killed in between cannot know whether it did. Hence `SOUGHT`: such a batch is
looked up before any of its requests is sent again.

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
"""What came of one request of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBounds:
    """What a provider takes in one batch."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchQuery:
    """A batch that a provider may have, as far as the log tells."""

    key: str
    requests: int
    prepared_us: int  #: when it was about to be sent, by our clock
    others: Collection[str] = ()  #: ids that are known to be of other batches


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearch:
    """What a provider's list says of a batch that is sought."""

    id: str | None = None  #: under which the provider has it
    is_settled: bool = True  #: False: one that is at work yet may turn out to be it


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """How a batch stands."""

    status: str  #: in the provider's words
    done: int = 0  #: requests that are answered
    failed: int = 0  #: requests that ended with an error; not those it never came to
    outcome: BatchOutcome | None = None  #: None: it has not ended
    reason: str | None = None  #: what the provider says of a batch that failed
    files: tuple[str, ...] = ()  #: ids of what its results stand in
    faults: Mapping[int, AttemptError] = field(default_factory=dict)
    """By the number of the item from 0: what was wrong with a batch that failed."""
    rest: AttemptError | None = None  #: what an item without results ends with


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanItem:
    """An item of a run in a batch that the run's log does not know."""

    batch: str  #: id of the batch
    item: str  #: id of the item: it was answered, or may be yet


class BatchEndpoint(Protocol):
    """A provider's batches of one model; every method may raise `AttemptError`."""

    form: str  #: a name of `runner.batch.client.FORMS`
    bounds: BatchBounds
    ladder: Fallbacks  #: what the provider takes

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

    async def find(self, query: BatchQuery) -> BatchSearch:
        """Look for a batch that may have been created."""
        ...

    async def orphans(
        self, tag: str, *, known: AbstractSet[str], before_us: int
    ) -> Sequence[OrphanItem] | None:
        """The items of the run of that tag in batches of no *known* id or key.

        None: one that was at work *before_us*, and is still, may turn out to be its.
        """
        ...

    async def poll(self, batch_id: str) -> BatchStatus:
        """How a batch stands."""
        ...

    def results(
        self, batch_id: str, status: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        """What came of the items, by their ids, in any order; each as it is read."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Have nothing more of a batch answered."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class BatchStage(enum.Enum):
    """Where a batch stands."""

    GATHERING = "gathering"  #: calls may still join it
    PREPARED = "prepared"  #: the log has it, and the provider has not
    SOUGHT = "sought"  #: the provider may have it
    OPEN = "open"  #: the provider has it, by an id that the log knows
    ENDED = "ended"  #: its results are there to be read
    COLLECTED = "collected"  #: each of its calls has an outcome
    REFUSED = "refused"  #: the provider would not take it, or not keep it
    MISSING = "missing"  #: the provider did nothing of it: its calls may be sent again

    @property
    def is_final(self) -> bool:
        """Whether nothing is left to do about it."""
        return self in {BatchStage.COLLECTED, BatchStage.REFUSED, BatchStage.MISSING}


class BatchEvent(enum.Enum):
    """What a step of a batch came to."""

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
"""A pair that is not in here is a bug."""


def stage_after(stage: BatchStage, happening: BatchEvent) -> BatchStage:
    """Where a batch stands once that has happened; `KeyError` for what cannot."""
    return BATCH_TRANSITIONS[stage, happening]


LONGEST: Final = 64
"""Characters of an item's id (Anthropic; of [A-Za-z0-9_-])."""


class BatchedAttempt(NamedTuple):
    """An attempt that is to go into a batch."""

    task: int
    attempt: int
    request: str  #: hash of what is asked, hex


def run_tag(run_id: str) -> str:
    """The beginning of the keys of all batches of a run."""
    return f"siftlog-{_digest([run_id], size=4)}"


def batch_key(
    tag: str, model: str, attempts: Iterable[BatchedAttempt], prepared_us: int
) -> str:
    """The key of the batch of a run that asks this, and was prepared then.

    Attempts count: what is asked again after a batch expired is another batch. So does
    the time: a log that begins anew, after one was lost, counts attempts anew.
    """
    words = (
        f"{attempt.task} {attempt.attempt} {attempt.request}" for attempt in attempts
    )
    return f"{tag}-{_digest([model, str(prepared_us), *words], size=8)}"


def item_id(key: str, attempt: BatchedAttempt) -> str:
    """What a task is called in a batch.

    >>> item_id("siftlog-0a1b2c3d-0123456789abcdef", BatchedAttempt(7, 2, "feed" * 16))
    'siftlog-0a1b2c3d-0123456789abcdef-7-feedfeedfeedfeed'
    """
    return f"{key}-{attempt.task}-{digest_of(attempt.request)}"


def digest_of(request: str) -> str:
    """What an item's id tells of the hash of what it asks: its first 64 bits."""
    return request[:16]


def key_of(item: str) -> str:
    """The key that an item's id begins with."""
    return item.rsplit("-", 2)[0]


def request_of(item: str) -> str:
    """What an item's id tells of what it asks; see `digest_of`."""
    return item.rsplit("-", 1)[-1]


def _digest(words: Iterable[str], *, size: int) -> str:
    digest = blake2b(digest_size=size)
    for word in words:
        digest.update(f"{word}\n".encode())
    return digest.hexdigest()


CallOutcome: TypeAlias = ItemOutcome | CallLeft | CallUnsent
"""What a call is told; the last two where it has no outcome."""


@dataclass(slots=True)
class _Gathered:
    """A call that waits in a batch."""

    attempt: BatchedAttempt
    body: bytes  #: to be sent
    item: str | None  #: what the provider calls it already
    outcome: asyncio.Future[CallOutcome]


class Batch:
    """Calls that go to the provider together."""

    def __init__(
        self, stage: BatchStage = BatchStage.GATHERING, *, batch_id: str | None = None
    ) -> None:
        self.stage = stage
        self.key = ""
        self.id = batch_id  #: the provider's
        self.requests = 0
        self.prepared_us = 0
        self.ids: list[str] = []  #: of all items, in the order they are sent in
        self.status: BatchStatus | None = None  #: what the provider said last
        self.has_ended = False  #: and the log knows that
        self.is_led = False  #: a call sees to it that it goes on
        self.error: AttemptError | None = None  #: why the provider may not have it
        self.refusals = 0  #: times that the provider would not take it yet
        self.pauses = 0  #: looks in a row that showed nothing new
        self.absent_since: float | None = None  #: the first look in a row without it
        self.readings = 0  #: of its results, that did not bring all of them
        self.is_troubled = False  #: and people were told
        self.bytes = 0
        self._gathered: list[_Gathered] = []
        self._waiting: dict[str, asyncio.Future[CallOutcome]] = {}

    # -- gathering -------------------------------------------------------------

    def __len__(self) -> int:
        """Calls in it."""
        return len(self._gathered)

    def gather(
        self, attempt: BatchedAttempt, body: bytes, item: str | None = None
    ) -> asyncio.Future[CallOutcome]:
        """Take a call in; with *item*, what the provider calls it already."""
        outcome: asyncio.Future[CallOutcome] = (
            asyncio.get_running_loop().create_future()
        )
        self._gathered.append(_Gathered(attempt, body, item, outcome))
        self.bytes += len(body)
        return outcome

    def close(self, tag: str, model: str, now_us: int) -> list[BatchItem]:
        """Take no more calls in; what is in it, under the key that it has from now."""
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
        """What is sent: ids and bodies."""
        return [
            (item, call.body)
            for item, call in zip(self.ids, self._gathered, strict=True)
        ]

    def sent(self) -> None:
        """The bodies will not be needed any more."""
        self._gathered.clear()

    # -- of an earlier process -------------------------------------------------

    def take_up(
        self, items: Iterable[BatchItem], open_: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], asyncio.Future[CallOutcome]]:
        """Go on for an earlier process; what its *open_* attempts will be told."""
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
        """Tell a call how it ended; ids that nobody waits for are passed over."""
        waiting = self._waiting.pop(item, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)

    @property
    def unresolved(self) -> list[tuple[int, str]]:
        """Numbers, from 0, and ids of the items whose calls wait still."""
        numbered = enumerate(self.ids)
        return [(n, item) for n, item in numbered if item in self._waiting]

    def resolve_rest(self, outcome: CallOutcome) -> None:
        """Tell all that wait still the same; before it is closed, too."""
        for _, item in self.unresolved:
            self.resolve(item, outcome)
        for call in self._gathered:
            if not call.outcome.done():
                call.outcome.set_result(outcome)


POLL_S: Final = 5.0
"""Between two looks for a batch that nobody was told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCancellation:
    """How the batches of a cancelled run are ended."""

    folder: RunFolder
    log: Log
    clock: Clock
    endpoints: Mapping[str, BatchEndpoint]  #: where batches are, by model
    settle_s: float  #: time after which an unlisted batch counts as absent
    notify: Callable[[str], None]  #: takes a sentence for people

    async def cancel(self, by: str) -> None:
        """Ask for the end of every open batch; say which could not be reached.

        Args:
            by: who cancels.
        """
        with open_reader(self.folder.log) as reader:
            recorded_batches = batches(reader)
        others = {batch.id for batch in recorded_batches if batch.id is not None}
        # all of them were sent before this, if they were: one time holds for all
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
        """The id of a batch that nobody was told of; None: the provider has it not.

        Raises:
            AttemptError: the provider does not say.
        """
        query = BatchQuery(
            key=batch.key,
            requests=batch.requests,
            prepared_us=batch.prepared_us,
            others=others,
        )
        is_announced = False
        while True:
            # first, so that the last look begins when all is settled
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
