"""Runs one attempt, from a loaded task to a durable outcome.

The order is the promise: request built -> `AttemptStarted` durable -> sent -> parsed ->
outcome queued for the log before its slot is used again -> the task's end durable. So
after a crash at any point an attempt was never sent, or is answered and never sent
again, or its outcome is unknown; there are never more of these than slots.

A reply waits for its parser and for nothing else. Where the job may plan follow-ups of
it, the reply is durable before the job derives them, however long that takes, and the
task's end is durable together with its follow-up tasks. Where it plans none
(`Job.follows`), reply and end are one unit: a reader never sees one without the other.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from runner import errors as e
from runner.clients.client import Call, CallLeft, CallUnsent, Received
from runner.clients.wire import decode_reply
from runner.clients.wire_shared import skeleton
from runner.engine.attempt_events import (
    answered_event,
    completed_event,
    may_reask,
    reask_messages,
    refused_answers,
)
from runner.engine.config import (
    AnswerStore,
    CostBounds,
    EngineServices,
    ModelEndpoints,
    RetryOptions,
)
from runner.engine.failure_policy import Flaw, flaws_of, may_be_billed
from runner.engine.model_queue import QueuedTask
from runner.job import Answer, Task
from runner.job_faults import job_fault, read_reply
from runner.limits.rate_limits import header_limits
from runner.messages import AnyReply, ChatRequest, Message, ParseFailure, Reply, Request
from runner.money.prices import Price, cost_pico, worst_pico
from runner.money.tokens import TokenBounds, usual_prompt, worst_output
from runner.plan import task_of
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptStarted,
    Entry,
    Event,
    ParameterRefused,
    TaskCompleted,
    TaskFailed,
)
from store.task import TaskRow, usd

NOT_SENT = "not sent: the lease on this part of the run had ended"

BODY_LIMIT = 64 * 1024
"""Bytes kept of a failure's response; longer error pages add nothing."""


HELD_TOKENS = 1 << 20
"""Prompts kept from the estimate of a call to its sending, in usual tokens: some 3 MB.
More are built again when they are sent."""


@dataclass(slots=True, kw_only=True)
class _Item:
    """A loaded task with the data of its next attempt."""

    work: QueuedTask
    row: TaskRow
    task: Task
    attempt: int  #: attempts started so far
    request_sha256: str = ""  #: hash of the request that was sent last
    has_schema: bool = False  #: whether that request has a schema
    extra: tuple[Message, ...] = ()  #: the dialogue of a re-ask
    reasks: int = 0
    most_out: int = 0  #: reply tokens covered by the reservation; 0: no reservation
    request: Request | None = None  #: its next request, if that is kept
    held_tokens: int = 0  #: of that request
    is_ending: bool = False  #: its end is being written to the log, or is there
    refused: tuple[TaskCompleted, Answer] | None = None
    """End of the task if the re-ask brings no reply: that of the last reply."""

    def refuse(
        self, attempt: int, reply: Reply, failure: ParseFailure, dataset: object
    ) -> None:
        """Extend the dialogue with the reply of *attempt* and why it was refused."""
        self.reasks += 1
        self.extra += reask_messages(reply, failure, dataset)
        self.refused = (
            completed_event(self.work.number, attempt, failure),
            Answer(task=self.task, reply=reply, parsed=failure),
        )


class Attempts:
    """Sends the loaded tasks of one run and records the outcomes."""

    def __init__(
        self,
        services: EngineServices,
        endpoints: ModelEndpoints,
        costs: CostBounds,
        retries: RetryOptions,
        *,
        cache: AnswerStore | None,
        wake: Callable[[], None],
    ) -> None:
        """Store replies in *cache*; call *wake* after changes to the scheduler."""
        self._services = services
        self._endpoints = endpoints
        self._prices = costs.prices
        self._paid = {
            model
            for model, price in costs.prices.items()
            if price is not None and not price.is_free
        }
        self._retries = retries
        self._cache = cache
        self._log = services.log
        self._clock = services.clock
        self._scheduler = services.scheduler
        self._stages = {stage.name: stage for stage in services.job.stages}
        self._chance = random.Random(retries.seed)  # noqa: S311 - jitter, no secret
        self._wake = wake
        self._items: dict[int, _Item] = {}
        self._held_tokens = 0
        self._bounds = defaultdict(TokenBounds, costs.bounds)
        self.counts: Counter[str] = Counter()

    def holds(self, task: int) -> bool:
        """Return whether a task is loaded and not settled."""
        return task in self._items

    def is_ending(self, task: int) -> bool:
        """Return whether a task's end may be in the log without being settled."""
        return task in self._items and self._items[task].is_ending

    async def admit(self, row: TaskRow) -> QueuedTask:
        """Hold a task until it is settled."""
        if row.task in self._items:
            return self._items[row.task].work
        work = QueuedTask(
            number=row.task, stage=row.stage, model=row.model, prior_attempts=row.tries
        )
        item = _Item(work=work, row=row, task=task_of(row), attempt=row.attempts)
        if self._retries.reask and row.reply_seq is not None:
            await self._take_up_dialogue(item)
        self._weigh(item)
        self._items[row.task] = item
        return work

    async def _take_up_dialogue(self, item: _Item) -> None:
        """Continue a re-ask that an earlier process started."""
        for recorded in refused_answers(await self._log.task_events(item.work.number)):
            event = recorded.event
            if isinstance(event, AttemptAnswered):
                body = await self._log.payload(recorded.seq) or b""
                reply = decode_reply(event.form, body)
                if isinstance(reply, Reply):
                    failure = self._failure(item, reply, event.reask or "")
                    item.refuse(event.attempt, reply, failure, self._services.dataset)

    def _failure(self, item: _Item, reply: Reply, reason: str) -> ParseFailure:
        """Return why an earlier process refused a reply, in the same words."""
        parsed = self._parsed(item, reply)
        if isinstance(parsed, ParseFailure) and parsed.reason == reason:
            return parsed
        return ParseFailure(reason=reason)  # the parser has changed

    def _parsed(self, item: _Item, reply: AnyReply) -> object | ParseFailure:
        """Return the parser's result for a reply."""
        services, stage = self._services, self._stages[item.work.stage]
        return read_reply(stage, services.dataset, item.task, reply, services.faults)

    def _price(self, work: QueuedTask) -> Price | None:
        return self._prices.get(work.model)

    def _weigh(self, item: _Item) -> None:
        """Estimate the tokens and the cost of the next attempt, in the worst case."""
        work = item.work
        is_paid = work.model in self._paid
        if not is_paid and not self._scheduler.counts_tokens(work.model):
            return
        try:
            request = self._request(item)
        except e.JobFault:
            return  # it is never sent: it fails when its turn comes
        unlimited = self._unlimited(work.model)
        prompt_tokens = usual_prompt(request)
        self._hold(item, request, prompt_tokens)
        work.tokens = prompt_tokens + worst_output(request, unlimited)
        price = self._price(work)
        if price is not None:
            bounds = self._bounds[work.model]
            prompt, item.most_out = bounds.worst(request, unlimited)
            tier = request.parameters.service_tier
            work.worst_pico = worst_pico(price, prompt, item.most_out, tier)
            work.worst_reason = bounds.reservation_reason(request)

    def _hold(self, item: _Item, request: Request, tokens: int) -> None:
        """Keep a request until it is sent, if there is room."""
        if item.request is None and self._held_tokens + tokens <= HELD_TOKENS:
            item.request, item.held_tokens = request, tokens
            self._held_tokens += tokens

    def _drop(self, item: _Item) -> None:
        """Stop keeping an item's request."""
        self._held_tokens -= item.held_tokens
        item.request, item.held_tokens = None, 0

    def _unlimited(self, model: str) -> int | None:
        """Return the maximum tokens of a reply without a limit; None: one is sent."""
        ladder = self._endpoints.ladders.get(model)
        return None if ladder is None else ladder.most_output

    def _weigh_again(self, model: str) -> None:
        """Update the reservations of every loaded task of *model*."""
        for item in self._items.values():
            if item.work.model == model:
                self._weigh(item)

    def _learn(self, item: _Item, reply: AnyReply) -> None:
        """Learn from a reply how long later ones may be."""
        model, bounds = item.work.model, self._bounds[item.work.model]
        previous_most, usage = bounds.most_output, reply.usage
        is_refusal = isinstance(reply, Reply) and reply.is_refused
        if not bounds.learn(item.most_out, usage, is_refusal=is_refusal):
            return
        ladder = self._endpoints.ladders.get(model)
        if (
            ladder is not None
            and usage is not None
            and bounds.most_output != previous_most
        ):
            ladder.unbounded(usage.tokens_out, bounds.most_output)
        # too little is reserved for calls in flight too; their cost adds no information
        self._weigh_again(model)

    def _request(self, item: _Item) -> Request:
        """Return the next attempt's request; raise `JobFault` if the job raises."""
        if item.request is not None:
            return item.request
        services = self._services
        try:
            request = self._endpoints.request(services, item.task)
        except Exception as error:
            raise job_fault(error, services.job, "request", services.faults) from error
        if item.extra and isinstance(request, ChatRequest):
            request = replace(request, messages=request.messages + item.extra)
        return request

    async def perform(self, work: QueuedTask) -> None:
        """Run one attempt of an admitted task."""
        item = self._items[work.number]
        try:
            call = await self._begin(item)
        except e.JobFault as error:
            await self._faulted(item, error)
            return
        # again: the process may have been stopped while the start was written
        if not self._scheduler.may_send(self._clock.monotonic()):
            await self._failed(item, e.Cancelled(NOT_SENT, was_sent=False), 0.0)
            return
        coming = self._endpoints.clients[work.model].call(call)
        del call  # a reply may take a day and does not need the texts
        await self._receive(item, coming)

    async def _begin(self, item: _Item) -> Call:
        """Record the start of an attempt; return the call to send."""
        work, request = item.work, self._request(item)
        self._drop(item)
        payload, blobs, item.request_sha256 = skeleton(request, work.model)
        item.has_schema = isinstance(request, ChatRequest) and bool(request.schema)
        item.attempt += 1
        self.counts["started"] += 1
        started = AttemptStarted(
            task=work.number,
            attempt=item.attempt,
            request_sha256=item.request_sha256,
            worst_usd=usd(work.reserved_pico) if self._price(work) else None,
            batched=work.model in self._endpoints.batched,
        )
        await self._log.append(Entry(event=started, payload=payload, blobs=blobs))
        return Call(
            task=item.task,
            request=request,
            attempt=item.attempt,
            request_sha256=item.request_sha256,
        )

    async def go_on(self, started: AttemptStarted) -> None:
        """Run an attempt of an admitted task that an earlier process started."""
        item = self._items[started.task]
        item.request_sha256 = started.request_sha256
        await self._receive(item, self._call_again(item))

    def _call_again(self, item: _Item) -> Coroutine[Any, Any, Received]:
        """Continue an attempt that is in the log."""
        try:
            request = self._request(item)
            is_stale = skeleton(request, item.work.model).sha256 != item.request_sha256
        except e.JobFault:
            # results at the provider are still collected; nothing else is sent
            request, is_stale = ChatRequest(messages=(), max_tokens=1), True
        call = Call(
            task=item.task,
            request=request,
            attempt=item.attempt,
            request_sha256=item.request_sha256,
            is_stale=is_stale,
        )
        return self._endpoints.clients[item.work.model].call(call)

    async def _receive(
        self, item: _Item, coming: Coroutine[Any, Any, Received]
    ) -> None:
        """Wait for the outcome of an attempt, and record it."""
        began = self._clock.monotonic()
        while True:
            try:
                received = await coming
            except CallUnsent:
                coming = self._call_again(item)
                continue
            except CallLeft as left:
                # its outcome is not known yet: a later process will collect it
                now = self._clock.monotonic()
                notice = self._scheduler.left(item.work, left.error, now)
                self._wake()
                if notice is not None:
                    self._services.notify(notice)
                return
            except e.AttemptError as error:
                await self._failed(item, error, self._clock.monotonic() - began)
            else:
                await self._answered(item, received, self._clock.monotonic() - began)
            return

    async def _faulted(self, item: _Item, error: e.JobFault) -> None:
        """Fail a task whose request the job could not build; nothing was sent."""
        now = self._clock.monotonic()
        self._scheduler.failed(item.work, error, now, self._chance.random())
        self._wake()
        end = TaskFailed(
            task=item.work.number,
            attempt=item.attempt,
            error=type(error).__name__,
            fault=str(error),
        )
        answer = Answer(task=item.task, error=end.error)
        await self._finish(item, [end], answer, {Flaw.FAILED, Flaw.JOB_FAULT})

    async def _failed(
        self, item: _Item, error: e.AttemptError, duration_s: float
    ) -> None:
        work = item.work
        self.counts["failed"] += 1
        now = self._clock.monotonic()
        decision, notice = self._scheduler.failed(
            work,
            error,
            now,
            self._chance.random(),
            header_limits=header_limits(error.headers, now_us=self._clock.now_us()),
        )
        self._wake()
        if notice is not None:
            self._services.notify(notice)
        name = type(error).__name__
        failed = AttemptFailed(
            task=work.number,
            attempt=item.attempt,
            error=name,
            latency_ms=round(duration_s * 1e3, 3),
            message=str(error)[:500],
            status=error.status,
            retry_after_s=error.retry_after_s,
            retry_in_s=decision.retry_in_s,
            possible_usd=usd(work.reserved_pico) if may_be_billed(error) else 0.0,
        )
        body = error.body[:BODY_LIMIT] if error.body else None
        entry = Entry(event=failed, payload=body)
        facts = self._facts(work.model)
        if decision.retry_in_s is not None:
            await self._log.append(*facts, entry)
            self._scheduler.settled(work, retry_at=now + decision.retry_in_s)
        elif item.refused is None:
            # it has no follow-up, so it is queued before any await
            end = TaskFailed(task=work.number, attempt=item.attempt, error=name)
            flaws = {Flaw.FAILED}
            if isinstance(error, e.ContentFiltered):
                flaws.add(Flaw.FILTERED)
            answer = Answer(task=item.task, error=name)
            ended: list[Entry | Event] = [*facts, entry, end]
            await self._finish(item, ended, answer, flaws)
        else:
            # by itself, for the last reply's follow-ups may have to wait their turn
            await self._log.append(*facts, entry)
            completion, answer = item.refused
            # its reply was judged on arrival
            await self._finish(item, [completion], answer, None)

    def _facts(self, model: str) -> list[ParameterRefused]:
        """Return the endpoint's newly found limitations to record, and show them."""
        ladder = self._endpoints.ladders.get(model)
        facts = [] if ladder is None else ladder.take_facts()
        for fact in facts:
            self._services.notify(fact.sentence)
        if ladder is not None and facts and ladder.most_output is not None:
            # without a limit in the request a reply may exceed the reservation
            self._weigh_again(model)
        return facts

    async def _answered(
        self, item: _Item, received: Received, duration_s: float
    ) -> None:
        work, reply = item.work, received.reply
        self.counts["answered"] += 1
        usage = reply.usage
        used = usage.tokens_in + usage.tokens_out if usage is not None else None
        price = self._price(work)
        cost = None if work.reserved_pico else 0
        if price is not None and usage is not None:
            tier = None if reply.served is None else reply.served.tier
            cost = cost_pico(price, usage, tier)
        self._learn(item, reply)
        self._scheduler.received(
            work,
            self._clock.monotonic(),
            used=used,
            cost_pico=cost,
            header_limits=header_limits(received.headers, now_us=self._clock.now_us()),
        )
        self._wake()
        ladder = self._endpoints.ladders.get(work.model)
        if ladder is not None and item.has_schema and isinstance(reply, Reply):
            ladder.replied(reply)
        facts = self._facts(work.model)
        event = answered_event(
            received,
            task=work.number,
            attempt=item.attempt,
            # the duration of a batch is unrelated to the model
            latency_ms=None
            if work.model in self._endpoints.batched
            else round(duration_s * 1e3, 3),
            cost_usd=usd(cost) if price is not None and cost is not None else None,
            possible_usd=usd(work.reserved_pico) if cost is None else None,
        )
        parsed = self._parsed(item, reply)
        flaws = flaws_of(reply, parsed)
        failure = parsed if isinstance(parsed, ParseFailure) else None
        # no await since the slot was released: the answer is in the log before the next
        # attempt in the slot
        if (
            failure is not None
            and isinstance(reply, Reply)
            and may_reask(reply, failure, reasks=item.reasks, most=self._retries.reask)
        ):
            self._judge(work.model, flaws)
            refused_event = msgspec.structs.replace(
                event, reask=failure.reason, fault=failure.detail
            )
            await self._log.append(
                *facts, Entry(event=refused_event, payload=received.body)
            )
            self._drop(item)  # it has no dialogue yet
            item.refuse(item.attempt, reply, failure, self._services.dataset)
            self._weigh(item)
            self._scheduler.again(work)
            self._wake()
            return
        entries: list[Entry | Event] = [
            *facts,
            Entry(event=event, payload=received.body),
        ]
        if self._services.planner.follows(work.stage):
            # what the job does with it may take long, or end the process
            await self._log.append(*entries)
            entries = []
        entries.append(completed_event(work.number, item.attempt, parsed))
        answer = Answer(task=item.task, reply=reply, parsed=parsed)
        await self._finish(item, entries, answer, flaws)
        if self._cache is not None and not item.extra:
            # the last reply of a dialogue does not answer a first request
            self._cache.keep(item.task, item.request_sha256, received)

    def _judge(self, model: str, flaws: Collection[Flaw]) -> None:
        """Count an outcome; stop the model once its outcomes are useless."""
        reason = self._retries.futility.judge(model, frozenset(flaws))
        if reason is not None:
            self._scheduler.stop_model(model, reason)
            self._services.notify(f"{reason}. Nothing more of this model is sent.")
            self._wake()

    async def _finish(
        self,
        item: _Item,
        entries: Sequence[Entry | Event],
        answer: Answer,
        flaws: Collection[Flaw] | None,
    ) -> None:
        """Record a task's end together with its follow-up tasks.

        Args:
            item: the task.
            entries: its end and further events.
            answer: its answer.
            flaws: its faults; None: already counted.
        """
        item.is_ending = True
        grown = await self._services.planner.finish(item.row, answer, entries)
        if flaws is not None:
            fault = {Flaw.FAILED, Flaw.JOB_FAULT} if grown.failed else set()
            self._judge(item.work.model, {*flaws, *fault})
        for stage, model in grown.pairs:
            self._scheduler.planned(stage, model)
        self._drop(item)
        del self._items[item.work.number]
        self._scheduler.settled(item.work)
        self.counts["tasks_ended"] += 1
        self.counts["tasks_failed"] += answer.error is not None or bool(grown.failed)
