"""Tasks that the response cache answers: recorded like all others, and never sent.

A hit waits for no slot, limit or budget: it is taken while its page is loaded. It goes
into the log as an attempt with its answer, its end and what follows from it, in one
unit with others, so a crash leaves a task that is answered or one that was never
touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.attempts import Parts
from runner.cache import ResponseCache
from runner.clients.client import Received
from runner.growth import Ended
from runner.plan import stage_of, task_of
from runner.reply import ParseFailure, Reply
from runner.task import Answer, Task
from runner.wire import Skeleton, skeleton
from store.events import AttemptAnswered, AttemptStarted, Entry, TaskCompleted
from store.task import TaskRow

TOGETHER = 64
"""Tasks looked up and recorded as one unit: enough that the disk's sync is nothing,
few enough that a heartbeat is not late and their bodies are a small thing to hold."""


class Hits:
    """Takes what the cache answers out of the pages of one run."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.count = 0  #: tasks answered from the cache

    async def take(self, rows: Sequence[TaskRow]) -> frozenset[int]:
        """Record the end of those of *rows* that the cache answers; their numbers."""
        cache = self._parts.cache
        taken: set[int] = set()
        if cache is not None:
            for i in range(0, len(rows), TOGETHER):
                taken.update(await self._take(cache, rows[i : i + TOGETHER]))
        return frozenset(taken)

    async def _take(self, cache: ResponseCache, rows: Sequence[TaskRow]) -> list[int]:
        parts = self._parts
        asked: list[tuple[TaskRow, Task, Skeleton]] = []
        for row in rows:
            if cache.serves(row.model) and not await self._was_answered(row):
                task = task_of(row)
                request = parts.job.request(parts.dataset, task)
                asked.append((row, task, skeleton(request, row.model)))
        if not asked:
            return []
        found = await cache.find([(task, made.sha256) for _, task, made in asked])
        ended = [
            end
            for (row, task, made), received in zip(asked, found, strict=True)
            if received is not None
            and (end := self._end(row, task, made, received)) is not None
        ]
        if not ended:
            return []
        for stage, model in await parts.growth.finish_all(ended):
            parts.scheduler.planned(stage, model)
        self.count += len(ended)
        return [end.row.task for end in ended]

    async def _was_answered(self, row: TaskRow) -> bool:
        """Whether this run has an answer already, and yet the task is open.

        Then a person said `retry`, or the answer was refused and is asked for again:
        either way another one is wanted.
        """
        if not row.attempts:
            return False
        history = await self._parts.log.task_events(row.task)
        return any(isinstance(r.event, AttemptAnswered) for r in history)

    def _end(
        self, row: TaskRow, task: Task, made: Skeleton, received: Received
    ) -> Ended | None:
        """How the task ends with this reply; None if it would be asked again."""
        parts, reply = self._parts, received.reply
        parsed = stage_of(parts.job, row.stage).parse(parts.dataset, task, reply)
        failure = parsed if isinstance(parsed, ParseFailure) else None
        if (
            failure is not None
            and parts.reask
            and isinstance(reply, Reply)
            and not reply.is_truncated
        ):
            return None
        attempt = row.attempts + 1
        usage = reply.usage
        started = AttemptStarted(
            task=row.task,
            attempt=attempt,
            request_sha256=made.sha256,
            worst_usd=0.0,
        )
        answered = AttemptAnswered(
            task=row.task,
            attempt=attempt,
            form=received.form,
            status=received.status,
            latency_ms=None,
            finish_reason=reply.finish_reason,
            tokens_in=usage.tokens_in if usage else None,
            tokens_out=usage.tokens_out if usage else None,
            tokens_cached=usage.tokens_cached if usage else None,
            tokens_cache_write=usage.tokens_cache_write if usage else None,
            cost_usd=0.0,
            cached=True,
            headers=received.headers,
        )
        completed = TaskCompleted(
            task=row.task,
            attempt=attempt,
            unparsed=failure.reason if failure is not None else None,
        )
        return Ended(
            row=row,
            answer=Answer(task=task, reply=reply, parsed=parsed),
            entries=(
                Entry(event=started, payload=made.body, blobs=made.blobs),
                Entry(event=answered, payload=received.body),
                completed,
            ),
        )
