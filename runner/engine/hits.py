"""Tasks whose answer is there already: recorded like all others, and never sent.

Besides the response cache and the run's other logs, the run's own log may have it: a
task whose `follow_up` raised has failed, and kept its answer for a `retry`.

A hit waits for no slot, limit or budget: it is taken while its page is loaded. It goes
into the log as an attempt with its answer, its end and what follows from it, in one
unit with others, so a crash leaves a task that is answered or one that was never
touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.clients.client import Received
from runner.engine.answered import answered, completed
from runner.engine.growth import TaskEnd
from runner.engine.known import Known
from runner.engine.parts import Parts
from runner.engine.reask import may_reask
from runner.errors import JobFault
from runner.faults import read_reply
from runner.plan import stage_of, task_of
from runner.reply import ParseFailure
from runner.task import Answer, Task
from runner.wire import Skeleton, decode_reply, skeleton
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Entry,
    RecordedEvent,
    TaskFailed,
)
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
        self.kept = 0  #: tasks whose own answer was taken up after a `retry`
        self.cached = 0  #: tasks that the response cache answered

    async def take(self, rows: Sequence[TaskRow]) -> frozenset[int]:
        """Record the end of those of *rows* that need no call; their numbers."""
        taken = set(await self._take_kept(rows))
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
                try:
                    request = parts.request(task)
                except Exception:  # noqa: BLE001, S112 - it fails as its turn comes
                    continue
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
        await self._finish(ended)
        if source is parts.known:
            self.adopted += len(ended)
        else:
            self.cached += len(ended)
        return [end.row.task for end in ended]

    async def _take_kept(self, rows: Sequence[TaskRow]) -> list[int]:
        """Take up the answers of tasks that failed in the job's `follow_up`."""
        parts, ended = self._parts, []
        for row in rows:
            if not row.attempts or row.tries:
                continue  # not reopened
            received = await self._kept(row)
            if received is None:
                continue
            task = task_of(row)
            try:
                request = parts.job.request(parts.dataset, task)
            except Exception:  # noqa: BLE001, S112 - it fails as its turn comes
                continue
            made = skeleton(request, row.model)
            end = self._end(row, task, made, received, kept=True)
            if end is not None:
                ended.append(end)
        if ended:
            await self._finish(ended)
            self.kept += len(ended)
        return [end.row.task for end in ended]

    async def _kept(self, row: TaskRow) -> Received | None:
        """The answer that a task had as it failed in the job's `follow_up`."""
        answers: dict[int, RecordedEvent] = {}
        failed: TaskFailed | None = None
        for recorded in await self._parts.log.task_events(row.task):
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
        body = await self._parts.log.payload(stored.seq) or b""
        form = stored.event.form
        return Received(body=body, form=form, reply=decode_reply(form, body))

    async def _finish(self, ended: Sequence[TaskEnd]) -> None:
        """Record ends, and tell the scheduler what follows."""
        parts = self._parts
        grown = await parts.growth.finish_all(ended)
        for stage, model in grown.pairs:
            parts.scheduler.planned(stage, model)

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
        self,
        row: TaskRow,
        task: Task,
        made: Skeleton,
        received: Received,
        *,
        kept: bool = False,
    ) -> TaskEnd | None:
        """How the task ends with this reply; None if it would be asked again.

        What the run has once settled for, in another log, it does not ask again.
        """
        parts, reply = self._parts, received.reply
        is_adopted = received.adopted is not None
        stage = stage_of(parts.job, row.stage)
        parsed = read_reply(stage, parts.dataset, task, reply, parts.faults)
        if (
            isinstance(parsed, ParseFailure)
            and not is_adopted
            and may_reask(reply, parsed, asked=0, most=parts.reask)
        ):
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
            kept=kept,
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
