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

from runner.batch.batch import Batch, Told
from runner.batch.carrier import Carrier, Patience, Setting
from runner.batch.course import Happening, Stage, after
from runner.batch.endpoint import BatchEndpoint
from runner.batch.ids import Asked
from runner.batch.known import Known
from runner.clients.client import Call, ClientStatistics, Left, Received, Unsent
from runner.clients.ladder import Ladder
from runner.clients.tally import Tally
from runner.errors import (
    AttemptError,
    BadRequest,
    Expired,
)
from runner.request import ChatRequest
from runner.wire import Structure
from store.batches import (
    BatchPrepared,
    batch_bytes,
)
from store.events import Entry

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
    structured: bool = True  #: put the schema of a reply to the provider


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
        structures = Structure if habits.structured else (Structure.TEXT,)
        self._structures = Ladder(*structures)
        self._tally = Tally()
        self._gathering: Batch | None = None
        self._under_way: list[Batch] = []
        self._carrier = Carrier(model, endpoint, setting, habits.patience)
        self._misses = 0  #: batches in a row that never came to be
        self._told: dict[tuple[int, int], tuple[Batch, asyncio.Future[Told]]] = {}
        for each in known:
            self._take_up(each)

    def _take_up(self, known: Known) -> None:
        batch = Batch(Stage.SOUGHT if known.id is None else Stage.OPEN)
        batch.key, batch.id = known.key, known.id
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
        structure = self._structure(call)
        place = self._told.pop((call.task.number, call.attempt), None)
        with self._tally.attempt():
            batch, told = place or self._join(call, structure)
            del call  # its texts are not to be held for a day
            if not batch.is_led:
                await self._lead(batch)
            match await told:
                case Received() as received:
                    return received
                case AttemptError() as error:
                    raise self._structures.met(error, structure)
                case Left(why=why):
                    raise Left(why)
                case Unsent():
                    raise Unsent

    def _structure(self, call: Call) -> Structure:
        request = call.request
        has_schema = isinstance(request, ChatRequest) and request.schema is not None
        return self._structures.rung if has_schema else Structure.TEXT

    def _join(
        self, call: Call, structure: Structure
    ) -> tuple[Batch, asyncio.Future[Told]]:
        """A place for the call in the batch that is being gathered."""
        if not isinstance(call.request, ChatRequest):
            raise BadRequest("Only chats are asked by batches.")
        if call.is_stale:
            raise Expired("What is asked has changed since; it was never sent.")
        body = self._endpoint.encode(call.request, structure)
        batch = self._gathering
        if batch is None or not self._has_room(batch, len(body)):
            batch = self._gathering = Batch()
            self._under_way.append(batch)
        asked = Asked(call.task.number, call.attempt, call.asked)
        return batch, batch.gather(asked, body)

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
            batch.tell_rest(batch.error)
        batch.tell_rest(Unsent())

    async def _gather(self, batch: Batch) -> None:
        """Wait for calls; then record what is to be sent."""
        linger_s = min(LINGER_S, self._habits.patience.poll_s)
        while batch is self._gathering and len(batch) < self._size:
            before = len(batch)
            await self._carrier.pause(linger_s)
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
        await self._log.append(Entry(event=prepared, payload=batch_bytes(items)))
        batch.stage = after(batch.stage, Happening.RECORDED)

    def _close(self, batch: Batch) -> None:
        """Have the next call begin another batch."""
        if batch is self._gathering:
            self._gathering = None

    # -- figures ---------------------------------------------------------------

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        sent = sum(batch.stage is not Stage.GATHERING for batch in self._under_way)
        return replace(self._tally.statistics(), batches=sent)

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoint.close()
