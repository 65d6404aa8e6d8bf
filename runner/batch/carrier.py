"""Moves batches from state to state until their calls are answered.

It also adopts batches of a run whose log is lost, because their answers are paid for.

If a log is lost with its disk, the provider still has the batches. The ids of their
items start with the run's tag and end with the hash of the request, so a call of the
same run with an equal request can take that item's answer. Each item is claimed once:
equal calls are different samples.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from runner.batch.batch import (
    Batch,
    BatchEndpoint,
    BatchEvent,
    BatchQuery,
    BatchStage,
    BatchStatus,
    OrphanItem,
    digest_of,
    key_of,
    request_of,
    stage_after,
)
from runner.clients.client import CallLeft
from runner.engine.failure_policy import RETRY_RULES, decide_retry
from runner.errors import (
    AttemptError,
    ConnectionLost,
    Expired,
    MalformedReply,
    NotServed,
    Overloaded,
    RateLimited,
    ServerError,
    Timeout,
    Unavailable,
)
from store.clock import Clock
from store.events import BatchCreated, BatchEnded, BatchPolled
from store.log.interface import Log

BACKOFF_FACTOR: Final = 1.25
"""Growth of the delay after each poll without news,"""
LONGEST: Final = 10
"""up to this multiple of the first delay."""
MOST_SEARCHES: Final = 60
"""Maximum consecutive failed searches for a batch that may exist; a later process
continues. An hour with the usual delay, as the breaker's `GIVE_UP_S`."""
MOST_READINGS: Final = 5
"""Maximum incomplete readings of results without a broken connection."""
STRIDE: Final = 256
"""Results between two waits for the log."""

MISSING_ROUTE: Final = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_IMPLEMENTED,
)
"""Statuses of servers without batches for an upload or a creation."""

VAGUE: Final = (ConnectionLost, Timeout, ServerError, Overloaded, MalformedReply)
"""Errors after which a batch may have been created all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """The run for which batches are carried."""

    tag: str  #: key prefix of its batches
    log: Log
    clock: Clock
    leaving: asyncio.Event  #: set when the process is about to end
    notify: Callable[[str], None]  #: shows a message to the user
    ids: set[str]  #: the provider's ids of all known batches of the run
    adopted: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    """Items adopted from batches of another log, by batch id."""

    async def pause(self, seconds: float) -> None:
        """Wait; raise `CallLeft` when the process is about to end."""
        try:
            async with asyncio.timeout(seconds):
                await self.leaving.wait()
        except TimeoutError:
            return
        raise CallLeft


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTiming:
    """Delays of polling and searching, in seconds."""

    poll_s: float  #: first delay between polls
    settle_s: float  #: time after which an unlisted batch counts as absent


class BatchCarrier:
    """Carries the batches of one model."""

    def __init__(
        self,
        model: str,
        endpoint: BatchEndpoint,
        setting: BatchContext,
        timing: BatchTiming,
    ) -> None:
        """Carry the batches of *model* at *endpoint*."""
        self._model = model
        self._endpoint = endpoint
        self._poll_s = timing.poll_s
        self._settle_s = timing.settle_s
        self._run = setting
        self._log = setting.log
        self._steps: Mapping[BatchStage, Callable[[Batch], Awaitable[BatchEvent]]] = {
            BatchStage.PREPARED: self._send,
            BatchStage.SOUGHT: self._seek,
            BatchStage.OPEN: self._poll,
            BatchStage.ENDED: self._read,
        }

    async def carry(self, batch: Batch) -> None:
        """Carry a recorded batch to its end.

        Raises:
            CallLeft: The process ends or the endpoint is unusable; the batch continues.
        """
        while not batch.stage.is_final:
            happening = await self._steps[batch.stage](batch)
            batch.stage = stage_after(batch.stage, happening)

    async def _send(self, batch: Batch) -> BatchEvent:
        """Upload and create the batch."""
        bodies = batch.bodies()
        try:
            file = await self._endpoint.upload(batch.key, bodies)
        except AttemptError as error:
            return await self._postpone(batch, error)
        try:
            batch.id = await self._endpoint.create(batch.key, bodies, file)
        except AttemptError as error:
            if error.was_sent and isinstance(error, VAGUE):
                batch.error = error
                return BatchEvent.UNSURE
            return await self._postpone(batch, error)
        await self._created(batch, file=file)
        return BatchEvent.CREATED

    async def _postpone(self, batch: Batch, error: AttemptError) -> BatchEvent:
        """Wait before the next try of a refused batch, while that makes sense.

        If the provider's queue is full, other batches may block it for a day.
        """
        if isinstance(error, RateLimited):
            await self._back_off(batch, error)
            return BatchEvent.POSTPONED
        batch.refusals += 1
        if error.status in MISSING_ROUTE:
            error = Unavailable(
                f"the endpoint has no batch API; run without --batch ({error})",
                status=error.status,
            )
        decision = decide_retry(
            error,
            same=batch.refusals,
            attempts=batch.refusals,
            elapsed_s=0.0,
            deadline_s=float("inf"),
            chance=1.0,
        )
        rule = RETRY_RULES[type(error)]
        is_shared = rule.stops_endpoint or isinstance(error, NotServed | Unavailable)
        if decision.retry_in_s is None and isinstance(error, VAGUE):
            error = Unavailable(
                f"no batch could be made in {batch.refusals} tries; the last one: "
                f"{error}",
                status=error.status,
            )
        if decision.retry_in_s is None or is_shared:
            await self._ended(
                batch, BatchStatus(status="", outcome="failed", reason=str(error))
            )
            batch.resolve_rest(error)
            return BatchEvent.DECLINED
        await self._run.pause(decision.retry_in_s)
        return BatchEvent.POSTPONED

    async def _seek(self, batch: Batch) -> BatchEvent:
        """Search for it in the provider's list."""
        query = BatchQuery(
            key=batch.key,
            requests=batch.requests,
            prepared_us=batch.prepared_us,
            others=self._run.ids,
        )
        try:
            search = await self._endpoint.find(query)
        except AttemptError as error:
            batch.refusals += 1
            if batch.refusals >= MOST_SEARCHES:
                raise CallLeft(
                    Unavailable(
                        f"whether batch {batch.key} was made could not be found out in "
                        f"{batch.refusals} tries; the last one: {error}",
                        status=error.status,
                    )
                ) from error
            await self._back_off(batch, error)
            return BatchEvent.UNDECIDED
        batch.refusals = 0
        if search.id is not None:
            batch.id = search.id
            await self._created(batch, is_listed=True)
            return BatchEvent.LISTED
        if not search.is_settled:
            await self._run.pause(self._poll_s)
            return BatchEvent.UNDECIDED
        if await self._may_appear(batch, "is not in the provider's list"):
            return BatchEvent.UNDECIDED
        await self._ended(batch, BatchStatus(status="", outcome="missing"))
        return BatchEvent.ABSENT

    async def _may_appear(self, batch: Batch, reason: str) -> bool:
        """Wait for the next search and return whether the batch may still appear.

        Providers answer from replicas with different lags, so an existing batch may be
        missing in one search and present in the next. It counts as absent only after no
        search has found it for some time.
        """
        now = self._run.clock.monotonic()
        if batch.absent_since is None:
            batch.absent_since = now
        left_s = batch.absent_since + self._settle_s - now
        if left_s <= 0:
            return False
        if not batch.is_troubled:
            batch.is_troubled = True
            self._run.notify(
                f"Batch {batch.id or batch.key} {reason}, which may lag "
                f"behind: checking for {left_s:.0f} seconds before any of "
                "its requests are sent again."
            )
        await self._run.pause(min(self._poll_s, left_s))
        return True

    async def _created(
        self, batch: Batch, *, file: str | None = None, is_listed: bool = False
    ) -> None:
        """Record the provider's id."""
        batch_id = _id_of(batch)
        self._run.ids.add(batch_id)
        batch.absent_since = None
        batch.sent()
        await self._log.append(
            BatchCreated(batch=batch.key, id=batch_id, file=file, found=is_listed)
        )

    async def _poll(self, batch: Batch) -> BatchEvent:
        """Poll the status; at once the first time, then with growing delays."""
        before = batch.status
        if before is not None:
            longer = min(BACKOFF_FACTOR**batch.pauses, LONGEST)
            await self._run.pause(self._poll_s * longer)
        try:
            batch.status = seen = await self._endpoint.poll(_id_of(batch))
        except AttemptError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return await self._unknown(batch)
            await self._back_off(batch, error)
            return BatchEvent.SEEN
        batch.is_troubled, batch.absent_since = False, None
        if seen.outcome is not None:
            if not batch.has_ended:
                await self._ended(batch, seen)
            if isinstance(seen.rest, RateLimited):
                await self._back_off(batch, seen.rest, LONGEST)
                return BatchEvent.TURNED_AWAY
            return BatchEvent.DONE
        if before is not None and _figures(seen) == _figures(before):
            batch.pauses += 1
            return BatchEvent.SEEN
        batch.pauses = 0
        await self._log.append(
            BatchPolled(
                batch=batch.key, status=seen.status, done=seen.done, failed=seen.failed
            )
        )
        return BatchEvent.SEEN

    async def _unknown(self, batch: Batch) -> BatchEvent:
        """Handle a batch that the provider does not find, perhaps temporarily."""
        if await self._may_appear(batch, "is unknown to the provider"):
            return BatchEvent.SEEN
        reason = f"the provider no longer has batch {batch.id}"
        if not batch.has_ended:
            await self._ended(
                batch, BatchStatus(status="", outcome="failed", reason=reason)
            )
        self._run.notify(f"{self._model}: {reason}; its requests are sent again.")
        batch.resolve_rest(Expired(f"Not answered: {reason}"))
        return BatchEvent.GONE

    async def _read(self, batch: Batch) -> BatchEvent:
        """Resolve every call from the results; read again if they are incomplete."""
        status = batch.status or BatchStatus(status="")
        try:
            await self._resolve_results(batch, status)
        except MalformedReply as error:
            batch.readings += 1
            if batch.readings < MOST_READINGS:
                await self._back_off(batch, error)
                return BatchEvent.BROKEN
            self._run.notify(
                f"Batch {batch.id}: {error}; missing requests are sent again."
            )
        except AttemptError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                await self._back_off(batch, error)
                return BatchEvent.BROKEN
            if await self._may_appear(batch, "has no results at the provider"):
                return BatchEvent.BROKEN
        for number, item in batch.unresolved:
            fault = status.faults.get(number) or status.rest
            batch.resolve(
                item, fault or Expired("Not answered: the results have it not")
            )
        return BatchEvent.READ

    async def _resolve_results(self, batch: Batch, status: BatchStatus) -> None:
        """Resolve calls from the results.

        Raises:
            AttemptError: the results are malformed or incomplete.
        """
        seen: set[str] = set()
        keys = {key_of(item) for item in batch.ids}
        results = self._endpoint.results(_id_of(batch), status)
        async with aclosing(results) as coming:
            async for item, outcome in coming:
                batch.resolve(item, outcome)
                if key_of(item) not in keys or isinstance(outcome, Expired):
                    continue
                seen.add(item)
                if len(seen) % STRIDE == 0:
                    await self._keep_pace()
        if len(seen) < status.done + status.failed:
            raise MalformedReply(
                f"{len(seen):,} of {status.done + status.failed:,} results came"
            )

    async def _keep_pace(self) -> None:
        """Let the log catch up before more results are read into memory."""
        await asyncio.sleep(0)  # resolved calls append now
        await self._log.last_seq()

    async def _ended(self, batch: Batch, status: BatchStatus) -> None:
        """Record that the batch has ended."""
        assert status.outcome is not None  # noqa: S101 - of an ended one
        batch.has_ended = True
        await self._log.append(
            BatchEnded(
                batch=batch.key,
                outcome=status.outcome,
                requests=batch.requests,
                done=status.done,
                failed=status.failed,
                why=status.reason,
            )
        )

    async def _back_off(
        self, batch: Batch, error: AttemptError, pauses: int = 1
    ) -> None:
        """Report once what delays a batch, and wait.

        Raises:
            CallLeft: waiting does not help, as with a refused key.
        """
        if RETRY_RULES[type(error)].stops_endpoint:
            raise CallLeft(error) from error
        if not batch.is_troubled:
            batch.is_troubled = True
            self._run.notify(f"Batch {batch.id or batch.key}: {error}; trying again.")
        await self._run.pause(max(self._poll_s * pauses, error.retry_after_s or 0.0))


def _id_of(batch: Batch) -> str:
    """Return the provider's id of an open or ended batch."""
    assert batch.id is not None  # noqa: S101 - ensured by the stages
    return batch.id


def _figures(status: BatchStatus) -> tuple[str, int, int]:
    """Return the values whose change is recorded as an event."""
    return status.status, status.done, status.failed


class ItemAdoption:
    """Items that are in no log of the run, until calls claim them."""

    def __init__(
        self, endpoint: BatchEndpoint, setting: BatchContext, poll_s: float
    ) -> None:
        """Search at *endpoint*, every *poll_s* seconds until it is conclusive."""
        self._endpoint = endpoint
        self._run = setting
        self._poll_s = poll_s
        self._begun_us = setting.clock.now_us()
        self._lock = asyncio.Lock()
        self._orphans: dict[str, deque[OrphanItem]] | None = None  #: by request

    async def search(self, keys: Iterable[str]) -> None:
        """Search for orphaned items, the first time.

        Args:
            keys: keys of pending batches, whose ids may be unknown.

        Raises:
            CallLeft: the process ends, or the key is refused.
        """
        async with self._lock:
            if self._orphans is None:
                # a batch may have been adopted in part
                adopted = self._run.adopted
                whole = self._run.ids - adopted.keys()
                orphans = await self._find_orphans(whole.union(keys))
                self._orphans = {}
                for orphan in orphans:
                    if orphan.item in adopted.get(orphan.batch, ()):
                        continue
                    request_digest = request_of(orphan.item)
                    self._orphans.setdefault(request_digest, deque()).append(orphan)

    async def _find_orphans(self, known: AbstractSet[str]) -> Sequence[OrphanItem]:
        is_announced = False
        while True:
            try:
                orphans = await self._endpoint.orphans(
                    self._run.tag, known=known, before_us=self._begun_us
                )
            except AttemptError as error:
                if RETRY_RULES[type(error)].stops_endpoint:
                    raise CallLeft(error) from error
                reason = str(error)
            else:
                if orphans is not None:
                    self._announce(orphans)
                    return orphans
                reason = "open batches may belong to this run"
            if not is_announced:
                is_announced = True
                self._run.notify(
                    f"Looking for batches of the run that its log lacks: {reason}; "
                    "trying again."
                )
            await self._run.pause(self._poll_s)

    def _announce(self, orphans: Sequence[OrphanItem]) -> None:
        """Report available items."""
        if orphans:
            batch_count = len({orphan.batch for orphan in orphans})
            self._run.notify(
                f"The provider has {len(orphans):,} requests of this run in "
                f"{batch_count} batches that are missing from its log: "
                "equal requests take their answers."
            )

    def claim(self, request: str) -> OrphanItem | None:
        """Claim an item with that *request*, a hash in hex; each only once."""
        left = (self._orphans or {}).get(digest_of(request))
        return left.popleft() if left else None
