"""One batch in this process: the calls that wait in it, and where it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from runner.batch.course import Stage
from runner.batch.endpoint import ItemOutcome, Standing
from runner.batch.ids import Asked, batch_key, item_id
from runner.clients.client import Left, Unsent
from runner.errors import AttemptError
from store.events import BatchItem

Told: TypeAlias = ItemOutcome | Left | Unsent
"""What a call is told; the last two where it has no outcome."""


@dataclass(slots=True)
class _Gathered:
    """A call that waits in a batch."""

    asked: Asked
    body: bytes  #: to be sent
    item: str | None  #: what the provider calls it already
    told: asyncio.Future[Told]


class Batch:
    """Calls that go to the provider together."""

    def __init__(
        self, stage: Stage = Stage.GATHERING, *, batch_id: str | None = None
    ) -> None:
        self.stage = stage
        self.key = ""
        self.id = batch_id  #: the provider's
        self.requests = 0
        self.prepared_us = 0
        self.ids: list[str] = []  #: of all items, in the order they are sent in
        self.standing: Standing | None = None  #: what the provider said last
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
        self._waiting: dict[str, asyncio.Future[Told]] = {}

    # -- gathering -------------------------------------------------------------

    def __len__(self) -> int:
        """Calls in it."""
        return len(self._gathered)

    def gather(
        self, asked: Asked, body: bytes, item: str | None = None
    ) -> asyncio.Future[Told]:
        """Take a call in; with *item*, what the provider calls it already."""
        told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._gathered.append(_Gathered(asked, body, item, told))
        self.bytes += len(body)
        return told

    def close(self, tag: str, model: str, now_us: int) -> list[BatchItem]:
        """Take no more calls in; what is in it, under the key that it has from now."""
        asked = [call.asked for call in self._gathered]
        self.key = batch_key(tag, model, asked, now_us)
        self.prepared_us = now_us
        items = [
            BatchItem(
                call.asked.task,
                call.asked.attempt,
                call.item or item_id(self.key, call.asked),
            )
            for call in self._gathered
        ]
        self._hold(items)
        for item, call in zip(items, self._gathered, strict=True):
            self._waiting[item.id] = call.told
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
    ) -> dict[tuple[int, int], asyncio.Future[Told]]:
        """Go on for an earlier process; what its *open_* attempts will be told."""
        there = list(items)
        self._hold(there)
        still_open = set(open_)
        loop = asyncio.get_running_loop()
        found: dict[tuple[int, int], asyncio.Future[Told]] = {}
        for item in there:
            if (item.task, item.attempt) in still_open:
                told: asyncio.Future[Told] = loop.create_future()
                found[item.task, item.attempt] = self._waiting[item.id] = told
        return found

    def _hold(self, items: list[BatchItem]) -> None:
        self.requests = len(items)
        self.ids = [item.id for item in items]

    # -- outcomes --------------------------------------------------------------

    def tell(self, item: str, told: Told) -> None:
        """Tell a call how it ended; ids that nobody waits for are passed over."""
        waiting = self._waiting.pop(item, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(told)

    @property
    def untold(self) -> list[tuple[int, str]]:
        """Numbers, from 0, and ids of the items whose calls wait still."""
        numbered = enumerate(self.ids)
        return [(n, item) for n, item in numbered if item in self._waiting]

    def tell_rest(self, told: Told) -> None:
        """Tell all that wait still the same; before it is closed, too."""
        for _, item in self.untold:
            self.tell(item, told)
        for call in self._gathered:
            if not call.told.done():
                call.told.set_result(told)
