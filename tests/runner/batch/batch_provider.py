"""A provider of batches without a wire: it outlives processes, and keeps a ledger.

A batch ends after some looks and its items fare as chance has it. What is destined to
succeed is billed once the batch is created, whether or not anybody ever learns of it.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import msgspec

from runner import errors as e
from runner.batch.batch import (
    BatchBounds,
    BatchQuery,
    BatchSearch,
    BatchStatus,
    ItemOutcome,
    OrphanItem,
)
from runner.batch.carrier import MOST_READINGS
from runner.batch.openai import received
from runner.clients.fallbacks import Fallbacks
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.clients.wire_shared import Shape
from runner.messages import ChatRequest, Usage


@dataclass(slots=True, kw_only=True)
class Chances:
    """How likely each thing is that may go wrong."""

    lost: float = 0.0  #: a batch is created, and nobody is told
    refused: float = 0.0  #: it is not created, with a 429
    broken: float = 0.0  #: the results break off
    short: float = 0.0  #: the results end early, and say nothing of it
    expires: float = 0.0  #: an item is not answered
    fails: float = 0.0  #: an item ends with status 500


@dataclass(slots=True, kw_only=True)
class There:
    """A batch that the provider has."""

    key: str
    fates: dict[str, str]  #: of its items, by id
    texts: dict[str, str]
    looks: int  #: until it has ended
    loop: asyncio.AbstractEventLoop  #: whose time the next is of
    made_at: float
    is_cancelled: bool = False
    shorts: int = 0  #: times that its results ended early


@dataclass(slots=True)
class Provider:
    """What is the provider's own, whoever asks."""

    chance: random.Random
    chances: Chances = field(default_factory=Chances)
    is_labelled: bool = True  #: its list tells keys, as OpenAI's does
    lag_s: float = 0.0  #: until it shows what it has, to each process anew
    there: dict[str, There] = field(default_factory=dict)
    billed: Counter[str] = field(default_factory=Counter)  #: by what was asked
    bodies: int = 0  #: items of all batches
    unlucky: set[str] = field(default_factory=set)
    """What was not answered once; the next time it is, or a task may fail for good."""

    def happens(self, share: float) -> bool:
        return self.chance.random() < share

    def create(self, key: str, items: Sequence[tuple[str, bytes]]) -> str:
        texts = {item: _text(body) for item, body in items}
        self.bodies += len(texts)
        fates = {}
        for item, text in texts.items():
            fate = "answered"
            if text not in self.unlucky and self.happens(self.chances.expires):
                fate = "expired"
            elif text not in self.unlucky and self.happens(self.chances.fails):
                fate = "failed"
            if fate != "answered":
                self.unlucky.add(text)
            fates[item] = fate
            self.billed[text] += fate == "answered"
        batch_id = f"batch-{len(self.there)}"
        looks = self.chance.randint(0, 3)
        loop = asyncio.get_running_loop()
        self.there[batch_id] = There(
            key=key,
            fates=fates,
            texts=texts,
            looks=looks,
            loop=loop,
            made_at=loop.time(),
        )
        return batch_id

    def shown(self) -> dict[str, There]:
        """What it tells of to whoever asks."""
        loop = asyncio.get_running_loop()
        return {
            batch_id: batch
            for batch_id, batch in self.there.items()
            # the time of a loop begins anew, and so does the lag: the worst there is
            if loop.time() - (batch.made_at if batch.loop is loop else 0) >= self.lag_s
        }

    def find(self, batch_id: str) -> There:
        shown = self.shown()
        if batch_id not in shown:
            raise e.BadRequest("no such batch", status=404)
        return shown[batch_id]


class FakeBatches:
    """A model's batches at a `Provider`; *step* is told of all that is done there."""

    form = "openai"
    bounds = BatchBounds(requests=1000, bytes=1_000_000)

    def __init__(
        self, provider: Provider, step: Callable[[], None] = lambda: None
    ) -> None:
        self._provider = provider
        self._step = step
        self.ladder = Fallbacks("fake", "m")

    def encode(self, request: ChatRequest, shape: Shape) -> bytes:
        del shape
        return msgspec.json.encode(request.messages[0].text)

    async def upload(self, key: str, items: Sequence[tuple[str, bytes]]) -> str | None:
        del items
        self._step()
        return f"file-of-{key}"

    async def create(
        self, key: str, items: Sequence[tuple[str, bytes]], file: str | None
    ) -> str:
        assert file == f"file-of-{key}"
        provider = self._provider
        self._step()
        if provider.happens(provider.chances.refused):
            raise e.RateLimited("later", status=429, retry_after_s=30.0)
        batch_id = provider.create(key, items)
        self._step()
        if provider.happens(provider.chances.lost):
            raise e.ConnectionLost("gone")
        return batch_id

    async def find(self, query: BatchQuery) -> BatchSearch:
        self._step()
        provider, is_settled = self._provider, True
        for batch_id, batch in provider.shown().items():
            if provider.is_labelled:
                if batch.key == query.key:
                    return BatchSearch(id=batch_id)
                continue
            if batch_id in query.others or len(batch.fates) != query.requests:
                continue
            batch.looks -= 1
            if batch.looks >= 0:
                is_settled = False
            elif batch.key == query.key:
                return BatchSearch(id=batch_id)
        return BatchSearch(is_settled=is_settled)

    async def orphans(
        self, tag: str, *, known: AbstractSet[str], before_us: int
    ) -> list[OrphanItem] | None:
        del before_us
        self._step()
        provider = self._provider
        others = {i: b for i, b in provider.shown().items() if not known & {i, b.key}}
        if not provider.is_labelled:
            for batch in others.values():
                batch.looks -= 1
            if any(batch.looks >= 0 for batch in others.values()):
                return None
        return [
            OrphanItem(batch=batch_id, item=item)
            for batch_id, batch in others.items()
            if batch.key.startswith(f"{tag}-")
            for item, fate in batch.fates.items()
            if fate == "answered" or (provider.is_labelled and batch.looks >= 0)
        ]

    async def poll(self, batch_id: str) -> BatchStatus:
        self._step()
        batch = self._provider.find(batch_id)
        batch.looks -= 1
        fates = Counter(batch.fates.values())
        if batch.looks >= 0 and not batch.is_cancelled:
            return BatchStatus(status="in_progress")
        return BatchStatus(
            status="completed",
            done=fates["answered"],
            failed=fates["failed"],
            outcome="expired" if fates["expired"] else "completed",
        )

    async def results(
        self, batch_id: str, standing: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        del standing
        provider = self._provider
        batch = provider.find(batch_id)
        items = list(batch.fates.items())
        provider.chance.shuffle(items)
        items.append(items[0])  # some providers say a thing twice
        yield "somebody-elses", e.ServerError("not yours", status=500)
        for item, fate in items:
            self._step()
            if provider.happens(provider.chances.broken / len(items)):
                raise e.ConnectionLost("broke off")
            # once more, and what is missing would be asked again, as it is to be
            is_patient = batch.shorts < MOST_READINGS - 1
            if is_patient and provider.happens(provider.chances.short / len(items)):
                batch.shorts += 1
                return
            yield item, self._outcome(fate, batch.texts[item])

    def _outcome(self, fate: str, text: str) -> ItemOutcome:
        if fate == "expired":
            return e.Expired("Not answered: batch_expired")
        if fate == "failed":
            return e.ServerError("failed", status=500)
        said = "a b" if text.startswith("read") else text
        body = encode_reply(said, usage=Usage(tokens_in=10, tokens_out=5))
        return received(OPENAI_CHAT, body)

    async def cancel(self, batch_id: str) -> None:
        self._step()
        self._provider.there[batch_id].is_cancelled = True

    async def close(self) -> None:
        pass


def _text(body: bytes) -> str:
    return msgspec.json.decode(body, type=str)
