"""Answers tasks from the response cache, from other logs and from the run's own log.

`AnswerLookup` records such answers like all others, without a call. `ResponseCache`
finds answers of other runs and stores those of this one; `cache_key` defines when an
answer of another run answers this request.

The run's own log can also hold an answer: a task whose `follow_up` raised has failed,
but its answer is kept for a `retry`.

A hit waits for no slot, limit or budget: it is used when its page is loaded. The log
gets an attempt with its answer, the task's end and its follow-ups in one unit, so after
a crash a task is either answered or untouched.

If the cache fails, the run shows one message and continues with its endpoint. A
background task writes replies in batches, so no call waits for the cache's disk;
replies not yet written when the process dies are not cached.

A key covers everything that can change the answer, even if it only might: a key that is
too fine costs a call, one that is too coarse gives a wrong answer
(`design/time-travel.md` names what is in it and what is not).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from platformdirs import user_cache_path

from runner.clients.client import Api, ClientOptions, Received, Route, route
from runner.clients.wire import decode_reply
from runner.clients.wire_shared import Skeleton, skeleton
from runner.engine.attempt_events import answered_event, completed_event, may_reask
from runner.engine.background import run_alongside
from runner.engine.config import (
    AnswerSource,
    AnswerSources,
    EngineServices,
    ModelEndpoints,
)
from runner.engine.planner import TaskEnd
from runner.errors import JobFault, MalformedReply
from runner.job import Answer, Task
from runner.job_faults import read_reply
from runner.messages import ParseFailure
from runner.options import RunOptions
from runner.plan import stage_of, task_of
from store.cache import CacheConnection, CachedReply, CacheEntry, is_busy, unusable
from store.clock import Clock
from store.errors import CacheUnusable
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Entry,
    RecordedEvent,
    TaskFailed,
)
from store.task import TaskRow

LOOKUP_BATCH = 64
"""Tasks looked up and recorded as one unit: enough to amortise the disk sync, few
enough to keep heartbeats on time and memory small."""


class AnswerLookup:
    """Answers tasks of one run's pages that already have an answer."""

    def __init__(
        self,
        services: EngineServices,
        endpoints: ModelEndpoints,
        sources: AnswerSources,
        *,
        reask: int,
    ) -> None:
        self._services = services
        self._endpoints = endpoints
        self._other_logs = sources.other_logs
        self._parent = sources.parent
        # the run's own answers take precedence
        self._sources = [
            source
            for source in (sources.other_logs, sources.parent, sources.cache)
            if source
        ]
        self._reask = reask
        self.adopted = 0  #: tasks that the run's other logs answered
        self.reused = 0  #: tasks whose own answer was reused after a `retry`
        self.cached = 0  #: tasks that the response cache answered
        self.forked = 0  #: tasks whose answers were adopted from the parent run

    async def take(self, rows: Sequence[TaskRow]) -> frozenset[int]:
        """Record the ends of *rows* that need no call; return their numbers."""
        taken = set(await self._take_reusable(rows))
        for source in self._sources:
            left = [row for row in rows if row.task not in taken]
            for i in range(0, len(left), LOOKUP_BATCH):
                taken.update(await self._take(source, left[i : i + LOOKUP_BATCH]))
        return frozenset(taken)

    async def _take(self, source: AnswerSource, rows: Sequence[TaskRow]) -> list[int]:
        requests: list[tuple[TaskRow, Task, Skeleton]] = []
        for row in rows:
            if source.serves(row.model) and not await self._was_answered(row):
                task = task_of(row)
                try:
                    request = self._endpoints.request(self._services, task)
                except Exception:  # noqa: BLE001, S112 - it fails as its turn comes
                    continue
                requests.append((row, task, skeleton(request, row.model)))
        if not requests:
            return []
        replies = await source.find(
            [(task, request_skeleton.sha256) for _, task, request_skeleton in requests]
        )
        ended = [
            end
            for (row, task, request_skeleton), received in zip(
                requests, replies, strict=True
            )
            if received is not None
            and (end := self._end(row, task, request_skeleton, received)) is not None
        ]
        if not ended:
            return []
        await self._finish(ended)
        if source is self._other_logs:
            self.adopted += len(ended)
        elif source is self._parent:
            self.forked += len(ended)
        else:
            self.cached += len(ended)
        return [end.row.task for end in ended]

    async def _take_reusable(self, rows: Sequence[TaskRow]) -> list[int]:
        """Reuse the answers of tasks that failed in the job's `follow_up`."""
        services, ended = self._services, []
        for row in rows:
            if not row.attempts or row.tries:
                continue  # not reopened
            received = await self._reusable_reply(row)
            if received is None:
                continue
            task = task_of(row)
            try:
                request = self._endpoints.request(services, task)
            except Exception:  # noqa: BLE001, S112 - it fails as its turn comes
                continue
            request_skeleton = skeleton(request, row.model)
            end = self._end(row, task, request_skeleton, received, reused=True)
            if end is not None:
                ended.append(end)
        if ended:
            await self._finish(ended)
            self.reused += len(ended)
        return [end.row.task for end in ended]

    async def _reusable_reply(self, row: TaskRow) -> Received | None:
        """Return the answer of a task that failed in the job's `follow_up`."""
        answers: dict[int, RecordedEvent] = {}
        failed: TaskFailed | None = None
        for recorded in await self._services.log.task_events(row.task):
            event = recorded.event
            if isinstance(event, AttemptAnswered) and event.reask is None:
                answers[event.attempt] = recorded
            elif isinstance(event, TaskFailed):
                failed = event
        if failed is None or failed.error != JobFault.__name__:
            return None
        stored = answers.get(failed.attempt)
        if stored is None or not isinstance(stored.event, AttemptAnswered):
            return None  # it failed in `request`
        body = await self._services.log.payload(stored.seq) or b""
        form = stored.event.form
        return Received(body=body, form=form, reply=decode_reply(form, body))

    async def _finish(self, ended: Sequence[TaskEnd]) -> None:
        """Record ends, and notify the scheduler of follow-ups."""
        services = self._services
        grown = await services.planner.finish_all(ended)
        for stage, model in grown.pairs:
            services.scheduler.planned(stage, model)

    async def _was_answered(self, row: TaskRow) -> bool:
        """Return whether this run has an answer although the task is open.

        Then a user retried the task, or its answer was refused: either way a new one
        is needed.
        """
        if not row.attempts:
            return False
        history = await self._services.log.task_events(row.task)
        return any(isinstance(r.event, AttemptAnswered) for r in history)

    def _end(
        self,
        row: TaskRow,
        task: Task,
        request_skeleton: Skeleton,
        received: Received,
        *,
        reused: bool = False,
    ) -> TaskEnd | None:
        """Return how the task ends with this reply; None if it would be sent again.

        A reply that the run accepted in another log is not requested again.
        """
        services, reply = self._services, received.reply
        is_adopted = received.adopted is not None
        stage = stage_of(services.job, row.stage)
        parsed = read_reply(stage, services.dataset, task, reply, services.faults)
        if (
            isinstance(parsed, ParseFailure)
            and not is_adopted
            and received.forked is None
            and may_reask(reply, parsed, reasks=0, most=self._reask)
        ):
            return None
        attempt = row.attempts + 1
        started = AttemptStarted(
            task=row.task,
            attempt=attempt,
            request_sha256=request_skeleton.sha256,
            worst_usd=0.0,
            adopted=is_adopted,
        )
        event = answered_event(
            received,
            task=row.task,
            attempt=attempt,
            latency_ms=None,
            cost_usd=0.0,
            cached=True,
            reused=reused,
        )
        return TaskEnd(
            row=row,
            answer=Answer(task=task, reply=reply, parsed=parsed),
            entries=(
                Entry(
                    event=started,
                    payload=request_skeleton.body,
                    blobs=request_skeleton.blobs,
                ),
                Entry(
                    event=event,
                    payload=received.body,
                    is_elsewhere=received.forked is not None,
                ),
                completed_event(row.task, attempt, parsed, adopted=is_adopted),
            ),
        )


KEY_VERSION: Final = 1
"""Version of the key's format; raising it invalidates all entries."""

ADDRESS: Final = re.compile(
    r"_(API_BASE|BASE_URL|API_VERSION|REGION|REGION_NAME|LOCATION|PROJECT)$"
)
"""Names of environment variables with addresses and versions of litellm's providers.
Only litellm knows which provider reads which, so all set variables count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOrigin:
    """The origin of one model's answers."""

    model: str
    endpoint: str  #: as shown to users: an address, or a provider's name
    structured: bool  #: whether a request's schema is sent to the endpoint
    api: Api = "chat"  #: form in which chats are sent
    addresses: tuple[tuple[str, str], ...] = ()  #: variables and their values, sorted


def origin_of(model: str, options: ClientOptions) -> AnswerOrigin | None:
    """Return the origin of *model*'s answers; None: no endpoint, so never cached."""
    match route(model, has_base_url=options.base_url is not None):
        case Route.BASELINE | Route.RECORDED:
            return None
        case Route.DIRECT:
            # with its HTTP library, so only where it is needed
            from runner.clients.http_client import (  # noqa: PLC0415 - see above
                OPENAI_URL,
                endpoint_url,
            )

            return AnswerOrigin(
                model=model,
                endpoint=endpoint_url(options.base_url or OPENAI_URL),
                structured=options.structured,
                api=options.api,
            )
        case Route.LITELLM:
            return AnswerOrigin(
                model=model,
                endpoint=model.partition("/")[0],
                structured=options.structured,
                addresses=_addresses(options.environment),
            )


def _addresses(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name, value in sorted(environment.items())
        if ADDRESS.search(name)
    )


def cache_key(origin: AnswerOrigin, *, request_sha256: str, replicate: int) -> bytes:
    """Return the key of an answer.

    Args:
        origin: the origin of the answer.
        request_sha256: of the request's skeleton, which holds its kind, the model,
            every parameter, and its texts and schema by hash.
        replicate: replicates must have different answers.
    """
    key_parts = (
        KEY_VERSION,
        origin.model,
        origin.endpoint,
        origin.structured,
        origin.addresses,
        request_sha256,
        replicate,
        # last, and only if it differs, so the keys of chats do not change
        *(() if origin.api == "chat" else (origin.api,)),
    )
    return hashlib.sha256(msgspec.json.encode(key_parts)).digest()


WAITING_BYTES: Final = 64 * 2**20
"""Limit of bodies that wait to be written; more are not cached."""

WRITTEN_AT_ONCE: Final = 256
"""Entries in one transaction, which blocks other processes for some milliseconds."""


class ResponseCache:
    """Finds replies of other runs, and stores those of this one."""

    def __init__(
        self,
        path: Path,
        thread: CacheConnection,
        *,
        origins: Mapping[str, AnswerOrigin],
        run: str,
        clock: Clock,
        notify: Callable[[str], None],
    ) -> None:
        """Use the cache opened by *thread* at *path*, for the models in *origins*."""
        self._path = path
        self._thread = thread
        self._origins = origins
        self._run = run
        self._clock = clock
        self._notify = notify
        self._is_off = False
        self._unwritten: list[CacheEntry] = []
        self._used: Counter[bytes] = Counter()
        self._waiting_bytes = 0
        self._changed = asyncio.Event()

    def serves(self, model: str) -> bool:
        """Return whether *model*'s answers are looked up and stored."""
        return model in self._origins and not self._is_off

    async def find(self, requests: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """Return the reply to each task's request, given by its hash, or None."""
        keys = [self._key(task, sha256) for task, sha256 in requests]
        try:
            cached_replies = await self._thread.find(keys)
        except sqlite3.Error as error:
            self._failed(error)
            cached_replies = {}
        replies: list[Received | None] = []
        for key in keys:
            received = _received(cached_replies[key]) if key in cached_replies else None
            if received is not None:
                self._used[key] += 1
                self._changed.set()
            replies.append(received)
        return replies

    def keep(self, task: Task, request_sha256: str, received: Received) -> None:
        """Queue the reply to *task*'s request; a full queue drops it."""
        size = len(received.body)
        if not self.serves(task.model) or self._waiting_bytes + size > WAITING_BYTES:
            return
        origin = self._origins[task.model]
        self._unwritten.append(
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
        """Write queued replies until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write queued replies, unless another process holds the file for long."""
        while (self._unwritten or self._used) and not self._is_off:
            batch = self._unwritten[:WRITTEN_AT_ONCE]
            used = +self._used
            try:
                await self._thread.write(batch, used, self._clock.now_us())
            except sqlite3.Error as error:
                self._failed(error)
                return
            # only now: a cancelled flush leaves it to the next
            del self._unwritten[: len(batch)]
            self._used -= used
            self._waiting_bytes -= sum(len(entry.reply.body) for entry in batch)

    def _failed(self, error: sqlite3.Error) -> None:
        """Continue without the cache, unless it is only busy."""
        if is_busy(error) or self._is_off:
            return
        self._is_off = True
        self._unwritten.clear()
        self._notify(_without(unusable(self._path, error)))


@asynccontextmanager
async def response_cache(
    options: RunOptions,
    clients: Mapping[str, ClientOptions],
    *,
    run: str,
    clock: Clock,
    notify: Callable[[str], None],
) -> AsyncIterator[ResponseCache | None]:
    """Open a run's cache for the block; None if it is off or unusable.

    Args:
        options: whether to use a cache, and its folder.
        clients: the clients of the models.
        run: id of the run, stored with its answers.
        clock: dates the entries.
        notify: shows a message to the user.
    """
    cache: ResponseCache | None = None
    origins = {m: o for m, c in clients.items() if (o := origin_of(m, c)) is not None}
    async with AsyncExitStack() as stack:
        if options.cache and origins:
            path = cache_path(options.cache_dir)
            try:
                thread = await CacheConnection.open(path)
            except CacheUnusable as error:
                notify(_without(error))
            else:
                stack.push_async_callback(thread.close)
                cache = ResponseCache(
                    path,
                    thread,
                    origins=origins,
                    run=run,
                    clock=clock,
                    notify=notify,
                )
        if cache is None:
            yield None
            return
        async with run_alongside(cache.write_on()):
            yield cache
        await cache.flush()


def cache_path(folder: Path | None) -> Path:
    """Return the path of the cache: in *folder*, or in the user's cache folder."""
    return (folder or user_cache_path("siftlog", appauthor=False)) / "cache.db"


def _without(error: CacheUnusable) -> str:
    return f"The response cache is left out: {error}."


def _received(cached: CachedReply) -> Received | None:
    """Decode a stored reply; None if its body cannot be read."""
    try:
        reply = decode_reply(cached.form, cached.body)
    except MalformedReply:
        return None
    return Received(
        body=cached.body,
        form=cached.form,
        reply=reply,
        status=cached.status,
        headers=dict(cached.headers) or None,
    )
