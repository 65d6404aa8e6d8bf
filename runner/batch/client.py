"""Sends calls in batches: collects them, sends them together, answers them later.

It differs from other clients in three ways. It records its own events, because a batch
outlives the process: a batch is in the log before it is sent. It waits up to a day, and
it retries requests about batches. And it detaches: when the process ends, calls are
left at the provider for a later process (`CallLeft`).

The first call of a batch drives it: the batch moves from state to state in that call's
coroutine, so nothing runs outside the engine's control.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from runner.batch.batch import (
    Batch,
    BatchedAttempt,
    BatchEndpoint,
    BatchEvent,
    BatchStage,
    CallOutcome,
    key_of,
    stage_after,
)
from runner.batch.carrier import BatchCarrier, BatchContext, BatchTiming, ItemAdoption
from runner.clients.client import (
    Call,
    CallLeft,
    CallUnsent,
    ClientOptions,
    ClientStatistics,
    ClientTally,
    Received,
    Secret,
)
from runner.clients.wire_shared import Shape
from runner.errors import AttemptError, BadRequest, Expired, Unavailable, UsageError
from runner.messages import ChatRequest
from runner.options import RunOptions
from store.events import (
    AttemptStarted,
    BatchCreated,
    BatchItem,
    BatchPrepared,
    Entry,
    batch_bytes,
)
from store.read.usage import RecordedBatch, batches, items_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingBatch:
    """A batch with attempts that have no outcome yet."""

    key: str
    model: str
    id: str | None  #: the provider's id; None: it may or may not exist there
    prepared_us: int
    has_ended: bool  #: whether its end is in the log
    items: tuple[BatchItem, ...]  #: all items, in the order of sending
    open: frozenset[tuple[int, int]]  #: items without an outcome, as (task, attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingBatches:
    """Batches left by a run's earlier processes."""

    batches: tuple[PendingBatch, ...] = ()
    ids: frozenset[str] = frozenset()
    """Ids of all batches known to exist at the provider."""
    adopted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Items adopted from batches of a lost log, by batch id."""

    def of(self, model: str) -> tuple[PendingBatch, ...]:
        """Return the batches of one model."""
        return tuple(batch for batch in self.batches if batch.model == model)


def pending_batches(
    conn: sqlite3.Connection, starts: Iterable[AttemptStarted]
) -> PendingBatches:
    """Return the sent batches in which the attempts *starts* wait.

    Newest first, because an attempt may have been in a batch that was never created
    before it joined another.
    """
    recorded_batches = batches(conn)
    still = {(start.task, start.attempt) for start in starts}
    pending = []
    for batch in reversed(recorded_batches):
        if not still:
            break
        if batch.id is None and not batch.is_open:
            continue  # it was never created: nothing of it was sent
        pending_batch = _pending_batch(conn, batch, still)
        if pending_batch.open:
            pending.append(pending_batch)
            still -= pending_batch.open
    ids = frozenset(batch.id for batch in recorded_batches if batch.id is not None)
    return PendingBatches(
        batches=tuple(pending), ids=ids, adopted=_adopted(conn, recorded_batches)
    )


def _adopted(
    conn: sqlite3.Connection, recorded_batches: Iterable[RecordedBatch]
) -> dict[str, frozenset[str]]:
    """Return adopted items: their ids have a different key than their batch."""
    adopted: dict[str, frozenset[str]] = {}
    for batch in recorded_batches:
        if batch.id is None or not batch.is_listed:
            continue
        items = {item.id for item in items_of(conn, batch)}
        if any(key_of(item) != batch.key for item in items):
            adopted[batch.id] = adopted.get(batch.id, frozenset()) | items
    return adopted


def _pending_batch(
    conn: sqlite3.Connection, batch: RecordedBatch, still: set[tuple[int, int]]
) -> PendingBatch:
    items = tuple(items_of(conn, batch))
    return PendingBatch(
        key=batch.key,
        model=batch.model,
        id=batch.id,
        prepared_us=batch.prepared_us,
        has_ended=not batch.is_open,
        items=items,
        open=frozenset((item.task, item.attempt) for item in items) & still,
    )


LINGER_S: Final = 2.0
"""A batch is sent after this time without a further call."""
ENVELOPE: Final = 256
"""Maximum bytes of an item beyond its body."""
MOST_MISSES: Final = 5
"""Consecutive batches that may fail to be created before calls fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """Size and timing of batches."""

    size: int  #: maximum number of requests
    timing: BatchTiming  #: delays of polling
    adopts: bool = False  #: adopts batches of a lost log of the run


class BatchClient:
    """Sends the calls of one model in batches."""

    def __init__(
        self,
        model: str,
        endpoint: BatchEndpoint,
        habits: BatchSettings,
        setting: BatchContext,
        pending: Sequence[PendingBatch] = (),
    ) -> None:
        """Continue the *pending* batches of earlier processes."""
        self._model = model
        self._endpoint = endpoint
        self._habits = habits
        self._run = setting
        self._log = setting.log
        self._clock = setting.clock
        self._size = min(habits.size, endpoint.bounds.requests)
        self._ladder = endpoint.ladder
        self._tally = ClientTally()
        self._gathering: dict[str | None, Batch] = {}
        """By the provider's id of an adopted batch; None: batches to send."""
        self._under_way: list[Batch] = []
        self._carrier = BatchCarrier(model, endpoint, setting, habits.timing)
        poll_s = habits.timing.poll_s
        self._adoption = (
            ItemAdoption(endpoint, setting, poll_s) if habits.adopts else None
        )
        self._misses = 0  #: consecutive batches that were never created
        self._outcomes: dict[
            tuple[int, int], tuple[Batch, asyncio.Future[CallOutcome]]
        ] = {}
        for pending_batch in pending:
            self._take_up(pending_batch)

    def _take_up(self, pending: PendingBatch) -> None:
        stage = BatchStage.SOUGHT if pending.id is None else BatchStage.OPEN
        batch = Batch(stage, batch_id=pending.id)
        batch.key = pending.key
        batch.prepared_us = pending.prepared_us
        batch.has_ended = pending.has_ended
        self._under_way.append(batch)
        for attempt, outcome in batch.take_up(pending.items, pending.open).items():
            self._outcomes[attempt] = batch, outcome

    # -- calls -----------------------------------------------------------------

    async def call(self, call: Call) -> Received:
        """Wait for the outcome of the call in its batch.

        Raises:
            AttemptError: There is no usable reply.
            CallLeft: The process ends or the endpoint is unusable; the batch continues.
            CallUnsent: The batch was never created.
        """
        sent = self._ladder.sent(call.request, call.task.number)
        taken_up = self._outcomes.pop((call.task.number, call.attempt), None)
        with self._tally.attempt():
            if taken_up is None and self._adoption is not None:
                await self._adoption.search(batch.key for batch in self._under_way)
            batch, outcome = taken_up or self._join(call, sent.shape)
            del call  # do not keep its texts in memory for a day
            if not batch.is_led:
                await self._lead(batch)
            match await outcome:
                case Received() as received:
                    return received
                case AttemptError() as error:
                    raise self._ladder.handle_error(error, sent)
                case CallLeft(error=endpoint_error):
                    raise CallLeft(endpoint_error)
                case CallUnsent():
                    raise CallUnsent

    def _join(
        self, call: Call, shape: Shape
    ) -> tuple[Batch, asyncio.Future[CallOutcome]]:
        """Add the call to the batch that collects calls."""
        if not isinstance(call.request, ChatRequest):
            raise BadRequest("Batches take chats only.")
        if call.is_stale:
            raise Expired("Its request has changed since; it was never sent.")
        attempt = BatchedAttempt(call.task.number, call.attempt, call.request_sha256)
        adoption = self._adoption
        orphan = None if adoption is None else adoption.claim(call.request_sha256)
        if orphan is not None:
            batch = self._open_to(0, orphan.batch)
            return batch, batch.gather(attempt, b"", orphan.item)
        body = self._endpoint.encode(call.request, shape)
        batch = self._open_to(len(body))
        return batch, batch.gather(attempt, body)

    def _open_to(self, more: int, batch_id: str | None = None) -> Batch:
        """Return the batch for a body of *more* bytes; see `_gathering`."""
        batch = self._gathering.get(batch_id)
        if batch is None or not self._has_room(batch, more):
            batch = self._gathering[batch_id] = Batch(batch_id=batch_id)
            self._under_way.append(batch)
        return batch

    def _is_gathering(self, batch: Batch) -> bool:
        """Return whether the next call may join it."""
        return self._gathering.get(batch.id) is batch

    def _has_room(self, batch: Batch, more: int) -> bool:
        """Return whether a body of *more* bytes fits, with some overhead."""
        size = batch.bytes + more + ENVELOPE * (len(batch) + 1)
        return len(batch) < self._size and size <= self._endpoint.bounds.bytes

    # -- the course of a batch -------------------------------------------------

    async def _lead(self, batch: Batch) -> None:
        """Carry a batch to its end, or until this process leaves it."""
        batch.is_led = True
        left = CallLeft()
        try:
            if batch.stage is BatchStage.GATHERING:
                await self._gather(batch)
            await self._carrier.carry(batch)
            if batch.stage is BatchStage.MISSING:
                self._resolve_missing(batch)
            else:
                self._misses = 0
        except CallLeft as error:
            left = error
        finally:
            batch.resolve_rest(left)  # the driving call too
            self._under_way.remove(batch)
            self._close(batch)

    def _resolve_missing(self, batch: Batch) -> None:
        """Let the calls of a batch that was never created join another."""
        self._misses += 1
        if batch.error is not None and self._misses > MOST_MISSES:
            batch.resolve_rest(
                Unavailable(
                    f"no batch could be made in {self._misses} tries; the last one: "
                    f"{batch.error}",
                    status=batch.error.status,
                )
            )
        batch.resolve_rest(CallUnsent())

    async def _gather(self, batch: Batch) -> None:
        """Wait for calls; then record the batch to send."""
        linger_s = min(LINGER_S, self._habits.timing.poll_s)
        while self._is_gathering(batch) and len(batch) < self._size:
            before = len(batch)
            await self._run.pause(linger_s)
            if len(batch) == before:
                break
        self._close(batch)
        items = batch.close(self._run.tag, self._model, self._clock.now_us())
        prepared = BatchPrepared(
            batch=batch.key,
            model=self._model,
            form=self._endpoint.form,
            requests=batch.requests,
        )
        entry = Entry(event=prepared, payload=batch_bytes(items))
        if batch.id is None:
            await self._log.append(entry)
            batch.stage = stage_after(batch.stage, BatchEvent.RECORDED)
            return
        self._run.ids.add(batch.id)
        batch.sent()
        created = BatchCreated(batch=batch.key, id=batch.id, found=True)
        await self._log.append(entry, created)
        batch.stage = stage_after(batch.stage, BatchEvent.LISTED)

    def _close(self, batch: Batch) -> None:
        """Close the batch for further calls."""
        if self._is_gathering(batch):
            del self._gathering[batch.id]

    # -- figures ---------------------------------------------------------------

    def statistics(self) -> ClientStatistics:
        """Return the client's figures."""
        sent = sum(batch.stage is not BatchStage.GATHERING for batch in self._under_way)
        return replace(self._tally.statistics(), batches=sent)

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoint.close()


FORMS: Final = ("openai", "anthropic")
"""Batch APIs, named after their providers."""

ANTHROPIC_KEY: Final = "ANTHROPIC_API_KEY"
ANTHROPIC_ADDRESSES: Final = ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL")
"""In this order, as litellm reads them for single calls."""


def open_endpoint(model: str, options: ClientOptions) -> BatchEndpoint:
    """Open the batches of *model* in its provider's API, or in OpenAI's.

    Raises:
        UsageError: its provider has no supported batches, or requires a key.
    """
    # imported here, so that a run without batches does not pay for them
    from runner.batch.anthropic import (  # noqa: PLC0415 - see above
        AnthropicBatches,
    )
    from runner.batch.openai import OpenAIBatches  # noqa: PLC0415 - see above

    provider = model.partition("/")[0]
    if options.base_url is not None:
        # a base URL implies OpenAI's API, whatever the model's name
        return OpenAIBatches(model, options)
    if provider not in FORMS:
        raise UsageError(
            f"{model} has no batch API: --batch works with openai/..., "
            "anthropic/... and a --base-url in OpenAI's format; run "
            "without --batch."
        )
    if provider == AnthropicBatches.form:
        return AnthropicBatches(model, _at_anthropic(options))
    return OpenAIBatches(model, options)


def _at_anthropic(options: ClientOptions) -> ClientOptions:
    """Read Anthropic's address and key from the variables of its clients."""
    addresses = (options.environment.get(name) for name in ANTHROPIC_ADDRESSES)
    base_url = next(filter(None, addresses), None)
    if base_url is not None and not base_url.rstrip("/").endswith("/v1"):
        # Anthropic's clients append /v1, after a gateway's path too
        base_url = f"{base_url.rstrip('/')}/v1"
    key = options.environment.get(ANTHROPIC_KEY)
    api_key = options.api_key or (Secret(key) if key else None)
    if api_key is None and base_url is None:
        raise UsageError(
            f"Anthropic's batches need a key: set {ANTHROPIC_KEY} in the environment "
            "or in .env."
        )
    return replace(options, api_key=api_key, base_url=base_url)


def open_batch_clients(
    endpoints: Mapping[str, BatchEndpoint],
    options: RunOptions,
    setting: BatchContext,
    left: PendingBatches,
) -> dict[str, BatchClient]:
    """Create the clients of *endpoints* by model, continuing what is *left*."""
    timing = BatchTiming(poll_s=options.batch_poll_s, settle_s=options.batch_settle_s)
    habits = BatchSettings(
        size=options.batch_requests, timing=timing, adopts=options.batch_adopt
    )
    return {
        model: BatchClient(model, endpoint, habits, setting, left.of(model))
        for model, endpoint in endpoints.items()
    }
