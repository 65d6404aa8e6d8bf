"""Performs what the scheduler decides: the one place with tasks, sockets and a clock.

One call goes: request built -> `AttemptStarted` durable -> sent -> outcome durable
together with what follows from it (the task's final state, follow-up tasks). A crash
at any point therefore leaves an attempt that never left, one that is answered and is
never asked again, or one whose outcome is unknown and is told.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from runner import errors as e
from runner.clients.client import Call, ModelClient, Received
from runner.growth import Growth
from runner.job import Dataset, Job
from runner.plan import task_of
from runner.reask import reask_messages
from runner.reply import ParseFailure, Reply
from runner.request import ChatRequest, Message
from runner.scheduler import Load, Scheduler, Work
from runner.task import Answer, Task
from runner.wire import skeleton
from store.clock import Clock
from store.errors import StoreError
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptStarted,
    Entry,
    Event,
    LimitObserved,
    TaskCompleted,
    TaskFailed,
)
from store.log import Log
from store.task import TaskRow

HEARTBEAT_S = 1.0
BODY_LIMIT = 64 * 1024
"""Bytes kept of what came with a failure; an error page says it all in fewer."""

Outcome: TypeAlias = Literal["finished", "drained", "endpoint", "held"]


@dataclass(slots=True, kw_only=True)
class _Item:
    """A loaded task with what its next attempt needs."""

    work: Work
    row: TaskRow
    task: Task
    attempt: int  #: started so far
    extra: tuple[Message, ...] = ()  #: the dialogue of a re-ask
    reasks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatistics:
    """What this process has done so far."""

    started: int  #: attempts
    answered: int
    failed: int  #: attempts
    tasks_ended: int
    tasks_failed: int
    in_flight: int
    waiting: int  #: tasks whose next attempt is due later


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The driver's own knobs, in seconds."""

    grace_s: float = 30.0  #: how long a drain waits for calls in flight
    reask: int = 0  #: how often an unreadable reply is asked for again


class Driver:
    """Runs a plan to its end, or to where it may go on another day."""

    def __init__(
        self,
        *,
        job: Job,
        dataset: Dataset,
        log: Log,
        clock: Clock,
        clients: Mapping[str, ModelClient],
        scheduler: Scheduler,
        growth: Growth,
        pace: Pace,
        seed: int,
        tell: Callable[[str], None],
        estimate: Callable[[ChatRequest], int] | None = None,
    ) -> None:
        """Wire the parts together.

        Args:
            job: the job whose tasks are run.
            dataset: its validated inputs.
            log: the run's log, open for writing.
            clock: the source of time.
            clients: by model.
            scheduler: decides what is sent when.
            growth: lets the plan grow: first stage, follow-ups, gathered groups.
            pace: grace and re-asks.
            seed: of the jitter; never touches a result.
            tell: shows a sentence to people.
            estimate: tokens of a request at worst; None where no limit needs it.
        """
        self._stages = {stage.name: stage for stage in job.stages}
        self._job = job
        self._dataset = dataset
        self._log = log
        self._clock = clock
        self._clients = clients
        self._scheduler = scheduler
        self._growth = growth
        self._pace = pace
        self._chance = random.Random(seed)  # noqa: S311 - jitter, not cryptography
        self._tell = tell
        self._estimate = estimate
        self._items: dict[int, _Item] = {}
        self._counts: Counter[str] = Counter()
        self._wake = asyncio.Event()
        self._drain_until: float | None = None
        self._stopping = False
        self._fatal: Exception | None = None

    # -- from outside ----------------------------------------------------------

    def drain(self) -> None:
        """Start nothing more; calls in flight get the grace time."""
        if self._drain_until is None:
            self._drain_until = self._clock.monotonic() + self._pace.grace_s
            self._scheduler.drain()
            self._wake.set()

    def stop(self) -> None:
        """End at once; what is in flight becomes unknown."""
        self.drain()
        self._stopping = True
        self._wake.set()

    @property
    def stopped(self) -> str | None:
        """Why an endpoint is out, where that is what is left."""
        return self._scheduler.stopped

    def reopened(self) -> None:
        """Final tasks went back into the queue."""
        self._scheduler.reopened()
        self._wake.set()

    # -- the loop --------------------------------------------------------------

    async def run(self) -> Outcome:
        """Go on until nothing is left to do; raise what made going on impossible."""
        async with asyncio.TaskGroup() as aside, asyncio.TaskGroup() as calls:
            beat = aside.create_task(self._guard(self._beat()))
            plan = calls.create_task(self._guard(self._plan()))
            try:
                await self._dispatch(calls, plan)
            finally:
                beat.cancel()
        if self._fatal is not None:
            raise self._fatal
        if self._drain_until is not None:
            return "drained"
        if self._scheduler.stopped is not None:
            return "endpoint"
        return "held" if self._scheduler.held else "finished"

    async def _dispatch(
        self, calls: asyncio.TaskGroup, plan: asyncio.Task[None]
    ) -> None:
        running: set[asyncio.Task[None]] = set()
        while True:
            self._wake.clear()
            step = self._scheduler.step(self._clock.monotonic())
            for load in step.load:
                calls.create_task(self._guard(self._load(load)))
            for work in step.start:
                call = calls.create_task(self._guard(self._attempt(work)))
                running.add(call)
                call.add_done_callback(running.discard)
            if self._must_stop():
                for task in (plan, *running):
                    task.cancel()
                return
            if self._scheduler.is_idle and (plan.done() or self._is_draining()):
                plan.cancel()
                return
            await self._nap(step.wake_at)

    def _is_draining(self) -> bool:
        return self._drain_until is not None or self._scheduler.stopped is not None

    def _must_stop(self) -> bool:
        return self._stopping or (
            self._drain_until is not None
            and self._clock.monotonic() >= self._drain_until
        )

    async def _nap(self, wake_at: float | None) -> None:
        """Sleep until something happens, or until *wake_at*."""
        if self._drain_until is not None:
            wake_at = min(wake_at or self._drain_until, self._drain_until)
        if wake_at is None:
            await self._wake.wait()
            return
        delay = wake_at - self._clock.monotonic()
        try:
            async with asyncio.timeout(max(0.0, delay)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Let calls in flight finish before an error ends the run."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - kept, and raised by `run`
            if self._fatal is None:
                self._fatal = error
            self.drain()
            if isinstance(error, StoreError):
                # nothing can be recorded any more, so nothing may be sent or awaited
                self.stop()
        finally:
            self._wake.set()

    async def _beat(self) -> None:
        """Say once a second that the process is alive, and what limits it."""
        shown: tuple[LimitObserved, ...] = ()
        while True:
            await self._log.heartbeat()
            observed = self._observe()
            if observed != shown:
                self._log.append_nowait(*observed)
                shown = observed
            await self._clock.sleep_until(self._clock.monotonic() + HEARTBEAT_S)

    def _observe(self) -> tuple[LimitObserved, ...]:
        """Pauses and ceilings; not calls in flight, which change all the time."""
        now = self._clock.monotonic()
        observed = []
        for lane in self._scheduler.statistics():
            until = lane.limiter.paused_until
            paused = until is not None and until > now
            observed.append(
                LimitObserved(
                    model=lane.model,
                    concurrency=lane.limiter.concurrency,
                    in_flight=0,
                    rpm=lane.limiter.rpm,
                    tpm=lane.limiter.tpm,
                    paused_until_us=self._clock.now_us() + round((until - now) * 1e6)
                    if paused and until is not None
                    else None,
                )
            )
        return tuple(observed)

    # -- planning and loading --------------------------------------------------

    async def _plan(self) -> None:
        async for stage, model in self._growth.grow():
            self._scheduler.planned(stage, model)
            self._wake.set()

    async def _load(self, load: Load) -> None:
        rows = await self._log.open_tasks(
            load.stage, load.model, after=load.after, limit=load.limit
        )
        now, now_us = self._clock.monotonic(), self._clock.now_us()
        works: list[tuple[Work, float]] = []
        for row in rows:
            if row.is_held:
                continue
            item = self._item(row)
            due = float("-inf")
            if row.not_before_us is not None:
                due = now + max(0.0, (row.not_before_us - now_us) / 1e6)
            works.append((item.work, due))
        self._scheduler.loaded(
            load,
            works,
            last=rows[-1].task if rows else None,
            held=len(rows) - len(works),
        )

    def _item(self, row: TaskRow) -> _Item:
        if row.task in self._items:
            return self._items[row.task]
        task = task_of(row)
        tokens = 0
        if self._estimate is not None:
            tokens = self._estimate(self._job.request(self._dataset, task))
        work = Work(
            number=row.task,
            stage=row.stage,
            model=row.model,
            tries=row.tries,
            tokens=tokens,
        )
        item = _Item(work=work, row=row, task=task, attempt=row.attempts)
        self._items[row.task] = item
        return item

    # -- one call --------------------------------------------------------------

    async def _attempt(self, work: Work) -> None:
        item = self._items[work.number]
        request = self._job.request(self._dataset, item.task)
        if item.extra:
            request = replace(request, messages=request.messages + item.extra)
        payload, blobs, digest = skeleton(request, work.model)
        item.attempt += 1
        self._counts["started"] += 1
        started = AttemptStarted(
            task=work.number, attempt=item.attempt, request_sha256=digest
        )
        await self._log.append(Entry(event=started, payload=payload, blobs=blobs))
        began = self._clock.monotonic()
        try:
            received = await self._clients[work.model].call(
                Call(task=item.task, request=request)
            )
        except e.AttemptError as error:
            await self._failed(item, error, self._clock.monotonic() - began)
        else:
            await self._answered(item, received, self._clock.monotonic() - began)

    async def _failed(self, item: _Item, error: e.AttemptError, took: float) -> None:
        work = item.work
        self._counts["failed"] += 1
        now = self._clock.monotonic()
        decision, said = self._scheduler.failed(work, error, now, self._chance.random())
        self._wake.set()
        if said is not None:
            self._tell(said)
        name = type(error).__name__
        failed = AttemptFailed(
            task=work.number,
            attempt=item.attempt,
            error=name,
            latency_ms=round(took * 1e3, 3),
            message=str(error)[:500],
            status=error.status,
            retry_after_s=error.retry_after_s,
            retry_in_s=decision.retry_in_s,
        )
        body = error.body[:BODY_LIMIT] if error.body else None
        entries: list[Entry | Event] = [Entry(event=failed, payload=body)]
        if decision.retry_in_s is None:
            entries.append(
                TaskFailed(task=work.number, attempt=item.attempt, error=name)
            )
            answer = Answer(task=item.task, error=name)
            await self._finish(item, entries, answer)
            return
        await self._log.append(*entries)
        self._scheduler.settled(work, retry_at=now + decision.retry_in_s)

    async def _answered(self, item: _Item, received: Received, took: float) -> None:
        work, reply = item.work, received.reply
        self._counts["answered"] += 1
        usage = reply.usage
        used = usage.tokens_in + usage.tokens_out if usage is not None else None
        self._scheduler.received(work, used=used)
        self._wake.set()
        answered = AttemptAnswered(
            task=work.number,
            attempt=item.attempt,
            form=received.form,
            status=received.status,
            latency_ms=round(took * 1e3, 3),
            finish_reason=reply.finish_reason,
            tokens_in=usage.tokens_in if usage else None,
            tokens_out=usage.tokens_out if usage else None,
            tokens_cached=usage.tokens_cached if usage else None,
            headers=dict(received.headers) if received.headers else None,
        )
        try:
            parsed = self._stages[work.stage].parse(self._dataset, item.task, reply)
        except Exception:
            # a fault of the parser's must not lose the answer
            await self._log.append(Entry(event=answered, payload=received.body))
            raise
        failure = parsed if isinstance(parsed, ParseFailure) else None
        if failure is not None and self._may_reask(item, reply):
            item.reasks += 1
            item.extra += reask_messages(reply, failure)
            asked = replace(answered, reask=failure.reason)
            await self._log.append(Entry(event=asked, payload=received.body))
            self._scheduler.again(work)
            return
        completed = TaskCompleted(
            task=work.number,
            attempt=item.attempt,
            unparsed=failure.reason if failure is not None else None,
        )
        entries: list[Entry | Event] = [
            Entry(event=answered, payload=received.body),
            completed,
        ]
        answer = Answer(task=item.task, reply=reply, parsed=parsed)
        await self._finish(item, entries, answer)

    def _may_reask(self, item: _Item, reply: Reply) -> bool:
        """A cut reply is not asked again: the same limit would cut it again."""
        return (
            item.reasks < self._pace.reask
            and not reply.is_truncated
            and self._drain_until is None
        )

    async def _finish(
        self, item: _Item, entries: Sequence[Entry | Event], answer: Answer
    ) -> None:
        """Record a task's end together with the tasks that follow from it."""
        async for stage, model in self._growth.finish(item.row, answer, entries):
            self._scheduler.planned(stage, model)
        del self._items[item.work.number]
        self._scheduler.settled(item.work)
        self._counts["tasks_ended"] += 1
        self._counts["tasks_failed"] += answer.error is not None

    def statistics(self) -> DriverStatistics:
        """The driver's figures."""
        lanes = self._scheduler.statistics()
        return DriverStatistics(
            started=self._counts["started"],
            answered=self._counts["answered"],
            failed=self._counts["failed"],
            tasks_ended=self._counts["tasks_ended"],
            tasks_failed=self._counts["tasks_failed"],
            in_flight=sum(lane.in_flight for lane in lanes),
            waiting=sum(lane.waiting for lane in lanes),
        )
