"""Asks by batches: calls are gathered, sent together, and told what came of them.

A client like any other, but for three things. It keeps its own record, because a batch
outlives the process: what it is about to send stands in the log before it is sent. It
waits, because a batch takes a day, and asks again by itself whatever concerns a batch
and none of its calls. And it lets go: where the process ends, calls are `Left` at the
provider for a later one.

The first call of a batch leads it: in its coroutine the batch is carried from stage to
stage, so nothing goes on that the engine does not know of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from runner.batch.adopting import Adoption
from runner.batch.batch import Batch, Told
from runner.batch.carrier import Carrier, Patience, Setting
from runner.batch.course import Happening, Stage, after
from runner.batch.endpoint import BatchEndpoint
from runner.batch.ids import Asked
from runner.batch.known import Known
from runner.clients.client import Call, ClientStatistics, Left, Received, Unsent
from runner.clients.tally import Tally
from runner.errors import AttemptError, BadRequest, Expired, Unavailable
from runner.request import ChatRequest
from runner.wire import Shape
from store.events import BatchCreated, BatchPrepared, Entry, batch_bytes

LINGER_S: Final = 2.0
"""A batch is sent once no further call has come for so long."""
ENVELOPE: Final = 256
"""Bytes of an item beyond its body, at most."""
MOST_MISSES: Final = 5
"""Times in a row that calls are sent again because their batch never came to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How batches are made and waited for."""

    size: int  #: requests, at most
    patience: Patience  #: how they are waited for
    adopts: bool = False  #: takes over batches that a lost log of the run had


class BatchClient:
    """Asks one model by batches."""

    def __init__(
        self,
        model: str,
        endpoint: BatchEndpoint,
        habits: Habits,
        setting: Setting,
        known: Sequence[Known] = (),
    ) -> None:
        """Go on with the batches of earlier processes, those that are *known*."""
        self._model = model
        self._endpoint = endpoint
        self._habits = habits
        self._run = setting
        self._log = setting.log
        self._clock = setting.clock
        self._size = min(habits.size, endpoint.bounds.requests)
        self._ladder = endpoint.ladder
        self._tally = Tally()
        self._gathering: dict[str | None, Batch] = {}
        """By the provider's id of what is taken over; None: of what is to be sent."""
        self._under_way: list[Batch] = []
        self._carrier = Carrier(model, endpoint, setting, habits.patience)
        poll_s = habits.patience.poll_s
        self._adoption = Adoption(endpoint, setting, poll_s) if habits.adopts else None
        self._misses = 0  #: batches in a row that never came to be
        self._told: dict[tuple[int, int], tuple[Batch, asyncio.Future[Told]]] = {}
        for each in known:
            self._take_up(each)

    def _take_up(self, known: Known) -> None:
        stage = Stage.SOUGHT if known.id is None else Stage.OPEN
        batch = Batch(stage, batch_id=known.id)
        batch.key = known.key
        batch.prepared_us = known.prepared_us
        batch.has_ended = known.has_ended
        self._under_way.append(batch)
        for attempt, told in batch.take_up(known.items, known.open).items():
            self._told[attempt] = batch, told

    # -- calls -----------------------------------------------------------------

    async def call(self, call: Call) -> Received:
        """Wait for what a batch brings for the call.

        Raises:
            AttemptError: It brought no usable reply.
            Left: The process ends, or the endpoint is out, and the batch goes on.
            Unsent: The provider never had the batch.
        """
        sent = self._ladder.sent(call.request, call.task.number)
        taken_up = self._told.pop((call.task.number, call.attempt), None)
        with self._tally.attempt():
            if taken_up is None and self._adoption is not None:
                await self._adoption.look(batch.key for batch in self._under_way)
            batch, told = taken_up or self._join(call, sent.shape)
            del call  # its texts are not to be held for a day
            if not batch.is_led:
                await self._lead(batch)
            match await told:
                case Received() as received:
                    return received
                case AttemptError() as error:
                    raise self._ladder.met(error, sent)
                case Left(why=why):
                    raise Left(why)
                case Unsent():
                    raise Unsent

    def _join(self, call: Call, shape: Shape) -> tuple[Batch, asyncio.Future[Told]]:
        """A place for the call in the batch that is being gathered."""
        if not isinstance(call.request, ChatRequest):
            raise BadRequest("Only chats are asked by batches.")
        if call.is_stale:
            raise Expired("What is asked has changed since; it was never sent.")
        asked = Asked(call.task.number, call.attempt, call.asked)
        adoption = self._adoption
        orphan = None if adoption is None else adoption.claim(call.asked)
        if orphan is not None:
            batch = self._open_to(0, orphan.batch)
            return batch, batch.gather(asked, b"", orphan.item)
        body = self._endpoint.encode(call.request, shape)
        batch = self._open_to(len(body))
        return batch, batch.gather(asked, body)

    def _open_to(self, more: int, batch_id: str | None = None) -> Batch:
        """The batch that takes in a body of *more* bytes; see `_gathering`."""
        batch = self._gathering.get(batch_id)
        if batch is None or not self._has_room(batch, more):
            batch = self._gathering[batch_id] = Batch(batch_id=batch_id)
            self._under_way.append(batch)
        return batch

    def _is_gathering(self, batch: Batch) -> bool:
        """Whether the next call may join it."""
        return self._gathering.get(batch.id) is batch

    def _has_room(self, batch: Batch, more: int) -> bool:
        """Whether a body of *more* bytes fits; an item is some 200 bytes beyond it."""
        size = batch.bytes + more + ENVELOPE * (len(batch) + 1)
        return len(batch) < self._size and size <= self._endpoint.bounds.bytes

    # -- the course of a batch -------------------------------------------------

    async def _lead(self, batch: Batch) -> None:
        """Carry a batch to its end, or to where this process leaves it."""
        batch.is_led = True
        left = Left()
        try:
            if batch.stage is Stage.GATHERING:
                await self._gather(batch)
            await self._carrier.carry(batch)
            if batch.stage is Stage.MISSING:
                self._tell_missing(batch)
            else:
                self._misses = 0
        except Left as error:
            left = error
        finally:
            batch.tell_rest(left)  # the leading call too
            self._under_way.remove(batch)
            self._close(batch)

    def _tell_missing(self, batch: Batch) -> None:
        """The provider never had it: its calls join another, but not for ever."""
        self._misses += 1
        if batch.error is not None and self._misses > MOST_MISSES:
            batch.tell_rest(
                Unavailable(
                    f"no batch could be made in {self._misses} tries; the last one: "
                    f"{batch.error}",
                    status=batch.error.status,
                )
            )
        batch.tell_rest(Unsent())

    async def _gather(self, batch: Batch) -> None:
        """Wait for calls; then record what is to be sent."""
        linger_s = min(LINGER_S, self._habits.patience.poll_s)
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
            batch.stage = after(batch.stage, Happening.RECORDED)
            return
        self._run.ids.add(batch.id)
        batch.sent()
        created = BatchCreated(batch=batch.key, id=batch.id, found=True)
        await self._log.append(entry, created)
        batch.stage = after(batch.stage, Happening.FOUND)

    def _close(self, batch: Batch) -> None:
        """Have the next call begin another batch."""
        if self._is_gathering(batch):
            del self._gathering[batch.id]

    # -- figures ---------------------------------------------------------------

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        sent = sum(batch.stage is not Stage.GATHERING for batch in self._under_way)
        return replace(self._tally.statistics(), batches=sent)

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoint.close()
