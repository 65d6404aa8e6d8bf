"""Tasks whose answer is there already: recorded like all others, and never sent.

A hit waits for no slot, limit or budget: it is taken while its page is loaded. It goes
into the log as an attempt with its answer, its end and what follows from it, in one
unit with others, so a crash leaves a task that is answered or one that was never
touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.clients.client import Received
from runner.engine.answered import answered, completed
from runner.engine.attempts import Parts
from runner.engine.growth import TaskEnd
from runner.engine.known import Known
from runner.engine.reask import may_reask
from runner.plan import stage_of, task_of
from runner.reply import ParseFailure
from runner.task import Answer, Task
from runner.wire import Skeleton, skeleton
from store.events import AttemptAnswered, AttemptStarted, Entry
from store.task import TaskRow

TOGETHER = 64
"""Tasks looked up and recorded as one unit: enough that the disk's sync is nothing,
few enough that a heartbeat is not late and their bodies are a small thing to hold."""


class Hits:
    """Takes what is answered already out of the pages of one run."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # what the run has itself goes before what others had
        self._sources = [each for each in (parts.known, parts.cache) if each]
        self.adopted = 0  #: tasks that the run's other logs answered
        self.cached = 0  #: tasks that the response cache answered

    async def take(self, rows: Sequence[TaskRow]) -> frozenset[int]:
        """Record the end of those of *rows* that need no call; their numbers."""
        taken: set[int] = set()
        for source in self._sources:
            left = [row for row in rows if row.task not in taken]
            for i in range(0, len(left), TOGETHER):
                taken.update(await self._take(source, left[i : i + TOGETHER]))
        return frozenset(taken)

    async def _take(self, source: Known, rows: Sequence[TaskRow]) -> list[int]:
        parts = self._parts
        asked: list[tuple[TaskRow, Task, Skeleton]] = []
        for row in rows:
            if source.serves(row.model) and not await self._was_answered(row):
                task = task_of(row)
                request = parts.request(task)
                asked.append((row, task, skeleton(request, row.model)))
        if not asked:
            return []
        found = await source.find([(task, made.sha256) for _, task, made in asked])
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
        if source is parts.known:
            self.adopted += len(ended)
        else:
            self.cached += len(ended)
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
    ) -> TaskEnd | None:
        """How the task ends with this reply; None if it would be asked again.

        What the run has once settled for, in another log, it does not ask again.
        """
        parts, reply = self._parts, received.reply
        is_adopted = received.adopted is not None
        parsed = stage_of(parts.job, row.stage).parse(parts.dataset, task, reply)
        is_refused = isinstance(parsed, ParseFailure) and not is_adopted
        if is_refused and may_reask(reply, asked=0, most=parts.reask):
            return None
        attempt = row.attempts + 1
        started = AttemptStarted(
            task=row.task,
            attempt=attempt,
            request_sha256=made.sha256,
            worst_usd=0.0,
            adopted=is_adopted,
        )
        event = answered(
            received,
            task=row.task,
            attempt=attempt,
            latency_ms=None,
            cost_usd=0.0,
            cached=True,
        )
        return TaskEnd(
            row=row,
            answer=Answer(task=task, reply=reply, parsed=parsed),
            entries=(
                Entry(event=started, payload=made.body, blobs=made.blobs),
                Entry(event=event, payload=received.body),
                completed(row.task, attempt, parsed, adopted=is_adopted),
            ),
        )
