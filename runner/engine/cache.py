"""The response cache as a run uses it: looked into before a task waits for anything.

Whatever is wrong with it, the run goes on: it says one sentence and asks its endpoint.
Replies are written by a task of their own, in batches, so that no call waits for the
cache's disk; what is not written when the process dies was not cached.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from runner.clients.client import Received
from runner.clients.options import ClientOptions
from runner.engine.beside import beside
from runner.engine.cache_key import Origin, cache_key, origin_of
from runner.errors import MalformedReply
from runner.options import RunOptions
from runner.task import Task
from runner.wire import decode_reply
from store.cache import CacheConnection, CachedReply, CacheEntry, is_busy, unusable
from store.clock import Clock
from store.errors import CacheUnusable

WAITING_BYTES: Final = 64 * 2**20
"""Bodies that may wait to be written; more are not cached, rather than held."""

WRITTEN_AT_ONCE: Final = 256
"""Entries in one transaction, which holds other processes up for some milliseconds."""


class ResponseCache:
    """Finds replies of other runs, and keeps those of this one."""

    def __init__(
        self,
        path: Path,
        thread: CacheConnection,
        *,
        origins: Mapping[str, Origin],
        run: str,
        clock: Clock,
        tell: Callable[[str], None],
    ) -> None:
        """Use what *thread* has opened at *path*, for the models in *origins*."""
        self._path = path
        self._thread = thread
        self._origins = origins
        self._run = run
        self._clock = clock
        self._tell = tell
        self._is_off = False
        self._kept: list[CacheEntry] = []
        self._used: Counter[bytes] = Counter()
        self._waiting_bytes = 0
        self._changed = asyncio.Event()

    def serves(self, model: str) -> bool:
        """Whether *model*'s answers are looked for and kept."""
        return model in self._origins and not self._is_off

    async def find(self, asked: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """The reply to each task's request, given by its hash, where there is one."""
        keys = [self._key(task, sha256) for task, sha256 in asked]
        try:
            found = await self._thread.find(keys)
        except sqlite3.Error as error:
            self._failed(error)
            found = {}
        replies: list[Received | None] = []
        for key in keys:
            received = _received(found[key]) if key in found else None
            if received is not None:
                self._used[key] += 1
                self._changed.set()
            replies.append(received)
        return replies

    def keep(self, task: Task, request_sha256: str, received: Received) -> None:
        """Have the reply to *task*'s request written some time."""
        size = len(received.body)
        if not self.serves(task.model) or self._waiting_bytes + size > WAITING_BYTES:
            return
        origin = self._origins[task.model]
        self._kept.append(
            CacheEntry(
                key=self._key(task, request_sha256),
                model=origin.model,
                endpoint=origin.endpoint,
                run=self._run,
                created_us=self._clock.now_us(),
                reply=CachedReply(
                    form=received.form,
                    status=received.status,
                    headers=received.headers or {},
                    body=received.body,
                ),
            )
        )
        self._waiting_bytes += size
        self._changed.set()

    def _key(self, task: Task, request_sha256: str) -> bytes:
        return cache_key(
            self._origins[task.model],
            request_sha256=request_sha256,
            replicate=task.replicate,
        )

    async def write_on(self) -> None:
        """Write what is to be kept as it comes; ends only by being cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write what waits, unless another process takes its time with the file."""
        while (self._kept or self._used) and not self._is_off:
            batch = self._kept[:WRITTEN_AT_ONCE]
            used = +self._used
            try:
                await self._thread.write(batch, used, self._clock.now_us())
            except sqlite3.Error as error:
                self._failed(error)
                return
            # only now: a flush that is cancelled leaves it to the next
            del self._kept[: len(batch)]
            self._used -= used
            self._waiting_bytes -= sum(len(entry.reply.body) for entry in batch)

    def _failed(self, error: sqlite3.Error) -> None:
        """Go on without it, unless it is only busy."""
        if is_busy(error) or self._is_off:
            return
        self._is_off = True
        self._kept.clear()
        self._tell(_without(unusable(self._path, error)))


@asynccontextmanager
async def response_cache(
    options: RunOptions,
    clients: Mapping[str, ClientOptions],
    *,
    run: str,
    clock: Clock,
    tell: Callable[[str], None],
) -> AsyncIterator[ResponseCache | None]:
    """A run's cache while the body runs; None if none is wanted or it cannot be used.

    Args:
        options: say whether and where.
        clients: how each model is reached.
        run: id of the run, kept with its answers.
        clock: dates the entries.
        tell: shows a sentence to people.
    """
    cache: ResponseCache | None = None
    origins = {m: o for m, c in clients.items() if (o := origin_of(m, c)) is not None}
    async with AsyncExitStack() as stack:
        if options.cache and origins:
            path = cache_path(options.cache_dir)
            try:
                thread = await CacheConnection.open(path)
            except CacheUnusable as error:
                tell(_without(error))
            else:
                stack.push_async_callback(thread.close)
                cache = ResponseCache(
                    path,
                    thread,
                    origins=origins,
                    run=run,
                    clock=clock,
                    tell=tell,
                )
        if cache is None:
            yield None
            return
        async with beside(cache.write_on()):
            yield cache
        await cache.flush()


def cache_path(folder: Path | None) -> Path:
    """Where the cache lies: in *folder*, or in the user's folder of caches."""
    return (folder or user_cache_path("siftlog", appauthor=False)) / "cache.db"


def _without(error: CacheUnusable) -> str:
    return f"The response cache is left out: {error}."


def _received(found: CachedReply) -> Received | None:
    """The reply as if it had just come; None if its body cannot be read (any more)."""
    try:
        reply = decode_reply(found.form, found.body)
    except MalformedReply:
        return None
    return Received(
        body=found.body,
        form=found.form,
        reply=reply,
        status=found.status,
        headers=dict(found.headers) or None,
    )
