"""Simulated courses of whole runs in virtual time, as logs to be read at any moment.

The real scheduler with its limiter, breaker and retries decides; endpoints with faults,
limits and speeds that change answer. Everything that differs comes from the seed. The
events are folded by the code that folds every log, so a reader of the course at some
moment sees what a reader of a real run would have seen then.
"""

from __future__ import annotations

import heapq
import math
import os
import random
import socket
import sqlite3
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from runner import errors as e
from runner.engine.model_queue import QueuedTask, TaskPageRequest
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint
from runner.limits.rate_limits import TokenBucket
from store.database import SQL
from store.encoding import Encoding, facts_of
from store.events import (
    NAMES,
    AttemptAnswered,
    AttemptFailed,
    AttemptStarted,
    Event,
    LimitObserved,
    RunFinished,
    RunStarted,
    TaskCompleted,
    TaskFailed,
    TasksPlanned,
)
from store.log.integrity import EventRow
from store.log.projections import fold_between, fresh_tables
from store.log.writer import KindIds, insert_events
from store.read.live import LiveStatus, live_status
from store.statements import script
from store.task import PlannedTask, manifest_bytes
from tests.bench.simulated_scenarios import (
    FIRST,
    SimulatedEndpoint,
    SimulatedModel,
    SimulatedScenario,
)

START_US = 1_767_225_637_000_000
"""2026-01-01 00:00:37 UTC: not the start of a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedEvent:
    """An event with its time in seconds, and the tasks that it plans."""

    at_s: float
    event: Event
    tasks: tuple[PlannedTask, ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class _Live:
    """A task and its attempts so far."""

    number: int
    plan: PlannedTask
    attempts: int = 0


@dataclass(slots=True, kw_only=True)
class _Family:
    """An item of one model: what of it is still open."""

    open: int = 1
    is_summed: bool = False


class SimulatedCourse:
    """The events of a simulated run from its start to its end."""

    def __init__(self, of: SimulatedScenario) -> None:
        """Run it."""
        self.scenario = of
        self.events: list[SimulatedEvent] = []
        self._chance = random.Random(f"events {of.seed}")
        self._models = {model.name: model for model in of.models}
        self._buckets = {
            name: TokenBucket(endpoint.rps, max(1.0, endpoint.rps))
            for name, endpoint in of.endpoints.items()
            if endpoint.rps is not None
        }
        shared = {name: Endpoint(name) for name in of.endpoints}
        self._scheduler = Scheduler(
            [
                (m.name, (FIRST, "ask", "sum"), m.limits, shared[m.endpoint])
                for m in of.models
            ],
            deadline_s=3600,
        )
        self._queued: dict[tuple[str, str], deque[_Live]] = defaultdict(deque)
        self._live: dict[int, _Live] = {}
        self._families: dict[int, _Family] = defaultdict(_Family)
        self._numbers = count(1)
        self._ends: list[tuple[float, int, QueuedTask, e.AttemptError | None]] = []
        self._now = 0.0
        self._observed: dict[str, LimitObserved] = {}
        self._next_look = 0.0
        self._run()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.events[-1].at_s

    def _say(self, event: Event, tasks: Sequence[PlannedTask] = ()) -> None:
        self.events.append(
            SimulatedEvent(at_s=self._now, event=event, tasks=tuple(tasks))
        )

    def _run(self) -> None:
        of = self.scenario
        self._say(
            RunStarted(
                run_id="simulated",
                job="simulated",
                job_version="1",
                code_sha256="0" * 64,
                settings="{}",
                models={"subject": [model.name for model in of.models]},
                replicates=of.replicates,
                inputs=[],
                siftlog_version="0",
                expected=of.expected,
            )
        )
        self._plan_first()
        while True:
            step = self._scheduler.step(self._now)
            for load in step.load:
                self._load(load)
            for work in step.start:
                self._start(work)
            if step.load:
                continue
            if not self._advance(step.wake_at):
                break
        ended = [event.event for event in self.events]
        self._say(
            RunFinished(
                completed=sum(isinstance(event, TaskCompleted) for event in ended),
                failed=sum(isinstance(event, TaskFailed) for event in ended),
                skipped=0,
            )
        )

    def _advance(self, wake_at: float | None) -> bool:
        if self._ends and (wake_at is None or self._ends[0][0] <= wake_at):
            at, number, work, error = heapq.heappop(self._ends)
            self._pass_to(at)
            self._end(self._live[number], work, error)
            return True
        if wake_at is None:
            return False
        self._pass_to(max(self._now, wake_at))
        return True

    def _pass_to(self, when: float) -> None:
        """Move on; the limits in force are observed about once a second."""
        self._now = when
        if when < self._next_look:
            return
        self._next_look = when + 1
        for queue in self._scheduler.statistics():
            limiter = queue.limiter
            until = limiter.paused_until
            paused = until is not None and until > when
            observed = LimitObserved(
                model=queue.model,
                concurrency=limiter.concurrency,
                in_flight=0,
                rpm=limiter.rpm,
                tpm=limiter.tpm,
                paused_until_us=START_US + round(until * 10) * 100_000
                if paused and until is not None
                else None,
                ceiling=limiter.ceiling,
            )
            if self._observed.get(queue.model) != observed:
                self._observed[queue.model] = observed
                self._say(observed)

    # -- the plan --------------------------------------------------------------

    def _plan_first(self) -> None:
        of = self.scenario
        for item in range(of.items):
            skip = "no text" if self._chance.random() < of.skipped else None
            block = [
                self._planned(
                    FIRST, f"i{item}", model.name, None, skip=skip, replicate=replicate
                )
                for model in of.models
                for replicate in range(1, of.replicates + 1)
            ]
            self._extend(block, item + 1)

    def _planned(
        self,
        stage: str,
        key: str,
        model: str,
        root: int | None,
        *,
        skip: str | None = None,
        replicate: int = 1,
    ) -> _Live:
        number = next(self._numbers)
        plan = PlannedTask(
            stage=stage,
            key=key,
            model=model,
            replicate=replicate,
            root=number if root is None else root,
            skip=skip,
        )
        return _Live(number=number, plan=plan)

    def _extend(self, block: list[_Live], consumed: int = 0) -> None:
        if not block:
            return
        self._say(
            TasksPlanned(
                first=block[0].number,
                count=len(block),
                consumed=consumed,
                exhausted=consumed == self.scenario.items,
            ),
            [live.plan for live in block],
        )
        for live in block:
            if live.plan.skip is None:
                self._live[live.number] = live
                key = (live.plan.stage, live.plan.model)
                self._queued[key].append(live)
                self._scheduler.planned(*key)

    def _follow(self, ended: _Live, *, is_answered: bool) -> None:
        """Plan what follows a task that has ended."""
        of, plan = self.scenario, ended.plan
        family = self._families[plan.root]
        family.open -= 1
        block: list[_Live] = []

        def add(stage: str, number: int) -> None:
            for n in range(number):
                key = f"{plan.key}/{stage}{n}"
                block.append(self._planned(stage, key, plan.model, plan.root))

        if plan.stage == FIRST and is_answered:
            model = self._models[plan.model]
            if self._chance.random() >= model.unparsed:
                add("ask", self._follow_ups(plan.key, model))
                if of.third == "beside":
                    add("sum", 1)
        elif plan.stage == "ask" and is_answered and of.third == "each":
            add("sum", int(self._chance.random() < of.third_share))
        family.open += len(block)
        if of.third == "sum" and not family.open and not family.is_summed:
            family.is_summed = True
            add("sum", int(plan.stage == "ask"))
        self._extend(block)

    def _follow_ups(self, key: str, model: SimulatedModel) -> int:
        """Return how many tasks follow an item; it is as rich for every model."""
        of = self.scenario
        if of.by_item:
            return round(of.by_item[int(key[1:])] * model.follow_factor)
        rich = random.Random(f"{of.seed} {key}")
        mean = rich.gammavariate(of.spread**-2, of.spread**2)
        return self._poisson(mean * of.follow_ups * model.follow_factor)

    def _poisson(self, mean: float) -> int:
        if mean <= 0:
            return 0
        n, product = 0, self._chance.random()
        bound = math.exp(-min(mean, 500.0))
        while product > bound:
            n += 1
            product *= self._chance.random()
        return n

    # -- calls -----------------------------------------------------------------

    def _load(self, load: TaskPageRequest) -> None:
        queued = self._queued[load.stage, load.model]
        page = [queued.popleft() for _ in range(min(load.limit, len(queued)))]
        self._scheduler.loaded(
            load,
            [
                (
                    QueuedTask(
                        number=live.number,
                        stage=load.stage,
                        model=load.model,
                        prior_attempts=0,
                    ),
                    float("-inf"),
                )
                for live in page
            ],
            last=page[-1].number if page else None,
        )

    def _start(self, work: QueuedTask) -> None:
        live = self._live[work.number]
        live.attempts += 1
        self._say(
            AttemptStarted(task=work.number, attempt=live.attempts, request_sha256="")
        )
        model = self._models[work.model]
        endpoint = self.scenario.endpoints[model.endpoint]
        latency_s = (
            model.latency_s[work.stage]
            * math.exp(self._chance.gauss(0, model.spread))
            / endpoint.speed(self._now)
        )
        error = self._fault(model.endpoint, endpoint)
        if error is not None:
            latency_s = min(latency_s, 0.3)
        end = (self._now + latency_s, work.number, work, error)
        heapq.heappush(self._ends, end)

    def _fault(self, name: str, endpoint: SimulatedEndpoint) -> e.AttemptError | None:
        outage = endpoint.outage
        if outage is not None and outage.begin_s <= self._now < outage.end_s:
            return outage.error("not now", status=503)
        draw = self._chance.random()
        if draw < endpoint.rate_429:
            return e.RateLimited("too many requests", status=429)
        if draw < endpoint.rate_429 + endpoint.rate_5xx:
            return e.ServerError("internal error", status=500)
        bucket = self._buckets.get(name)
        if bucket is None:
            return None
        if bucket.ready_at(self._now, 1.0) <= self._now:
            bucket.take(self._now, 1.0)
            return None
        return e.RateLimited("over the rate", status=429)

    def _end(self, live: _Live, work: QueuedTask, error: e.AttemptError | None) -> None:
        took_ms = 1000 * (self._now - work.sent_at)
        if error is None:
            self._scheduler.received(work, self._now, used=None)
            self._say(
                AttemptAnswered(
                    task=work.number,
                    attempt=live.attempts,
                    form="chat",
                    status=200,
                    latency_ms=took_ms,
                    finish_reason="stop",
                    tokens_in=100,
                    tokens_out=20,
                    cost_usd=0.001,
                )
            )
            self._say(TaskCompleted(task=work.number, attempt=live.attempts))
            self._settle(live, work, is_answered=True)
            return
        decision, _ = self._scheduler.failed(
            work, error, self._now, self._chance.random()
        )
        self._say(
            AttemptFailed(
                task=work.number,
                attempt=live.attempts,
                error=type(error).__name__,
                latency_ms=took_ms,
                message=str(error),
                status=error.status,
                retry_in_s=decision.retry_in_s,
            )
        )
        if decision.retry_in_s is not None:
            retry_at = self._now + decision.retry_in_s
            self._scheduler.settled(work, retry_at=retry_at)
            return
        self._say(
            TaskFailed(
                task=work.number, attempt=live.attempts, error=type(error).__name__
            )
        )
        self._settle(live, work, is_answered=False)

    def _settle(self, live: _Live, work: QueuedTask, *, is_answered: bool) -> None:
        del self._live[work.number]
        self._scheduler.settled(work)
        self._follow(live, is_answered=is_answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseLook:
    """What a reader saw at a moment of a course, and what was true then."""

    at_s: float
    live: LiveStatus
    done: float  #: true share of all tasks
    left_s: float  #: true time left


@dataclass(slots=True)
class CourseLog:
    """A course as a log in memory that is folded up to a moment."""

    course: SimulatedCourse
    _seq: int = 0
    _conn: sqlite3.Connection = field(init=False)

    def __post_init__(self) -> None:
        """Write the events; nothing is folded yet."""
        conn = self._conn = sqlite3.connect(":memory:", isolation_level=None)
        for statement in script("schema"):
            conn.execute(statement)
        fresh_tables(conn, conn)
        for statement in script("indexes"):
            conn.execute(statement)
        conn.execute(SQL["insert_run"], ("simulated", "simulated", 1, b"", START_US))
        conn.execute(SQL["insert_writer"], (1, b"w", START_US))
        conn.execute(SQL["begin"])
        insert_events(conn, list(_rows(self.course.events)), KindIds(conn))
        conn.execute(SQL["commit"])

    def look(self, seq: int, at_s: float) -> LiveStatus:
        """Read the run as of event *seq*, at a time."""
        conn, now_us = self._conn, START_US + round(at_s * 1e6)
        conn.execute(SQL["begin"])
        for _ in fold_between(conn, conn, self._seq, seq):
            pass
        conn.execute(
            SQL["set_heartbeat"], (now_us, 1, os.getpid(), socket.gethostname())
        )
        conn.execute(SQL["commit"])
        self._seq = seq
        return live_status(conn, now_us, is_held=True)

    def close(self) -> None:
        """Forget the log."""
        self._conn.close()


def _rows(events: Sequence[SimulatedEvent]) -> list[EventRow]:
    rows, ts_us = [], START_US
    for seq, item in enumerate(events, 1):
        ts_us = max(ts_us + 1, START_US + round(item.at_s * 1e6))
        event = item.event
        body = manifest_bytes(item.tasks) if item.tasks else None
        rows.append(
            EventRow(
                seq=seq,
                ts_us=ts_us,
                epoch=1,
                kind=NAMES[type(event)],
                ver=event.VERSION,
                task=getattr(event, "task", None),
                attempt=getattr(event, "attempt", None),
                prev=None,
                enc=Encoding.NONE if body is None else Encoding.AS_RECEIVED,
                blen=len(body or b""),
                facts=facts_of(event),
                body=body,
            )
        )
    return rows


def looks_at(
    course: SimulatedCourse, times: Sequence[float]
) -> Iterator[tuple[float, LiveStatus]]:
    """Read a course at each of *times*, ascending seconds; yield the time with it."""
    ends = [item.at_s for item in course.events]
    log = CourseLog(course)
    for at_s in times:
        yield at_s, log.look(bisect_right(ends, at_s), at_s)
    log.close()


def looks(course: SimulatedCourse, shares: Sequence[float]) -> list[CourseLook]:
    """Read a course whenever it has passed one of the true *shares*, ascending."""
    ends = [
        (seq, item.at_s)
        for seq, item in enumerate(course.events, 1)
        if isinstance(item.event, TaskCompleted | TaskFailed)
    ]
    log = CourseLog(course)
    found = []
    for share in shares:
        n = max(1, math.ceil(share * len(ends)))
        seq, at_s = ends[n - 1]
        found.append(
            CourseLook(
                at_s=at_s,
                live=log.look(seq, at_s),
                done=n / len(ends),
                left_s=course.seconds - at_s,
            )
        )
    log.close()
    return found
