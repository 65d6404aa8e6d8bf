"""Reads a run as it is now: throughput, latencies, forecast, its shards.

The command `status`, plain lines and the monitor all take their figures from here, so a
number has the same value everywhere.

Like `store.read.status`, this reads projections only; a monitor reads both at one
moment, inside one transaction, so that its figures belong together.
"""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from store.database import SQL, UNION, is_union, read_transaction
from store.fold_state import US_PER_MINUTE, RunState
from store.log.interface import Heartbeat
from store.read.forecast import (
    Forecast,
    ForecastInterval,
    Progress,
    budget_seconds,
)
from store.read.observed_work import ModelLimit, ObservedWork
from store.read.status import Status, liveness, percentiles_ms, status
from store.read.time_left import time_left
from store.slices import ALL, Slices
from store.task import TaskState, usd

MANY = 2_000
"""Waiting tasks that are searched for the next retry: a millisecond or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Counts of a period."""

    started: int  #: attempts
    succeeded: int  #: tasks completed
    failed: int  #: tasks failed
    retried: int  #: attempts that led to another one
    tokens_in: int
    tokens_out: int
    cost_usd: float


def traffic(columns: Sequence[int]) -> dict[str, Any]:
    """Return the fields of a `Traffic` from its columns in order; the last is cost."""
    *counted, cost_pico = columns
    return {**dict(zip(_COUNTED, counted, strict=True)), "cost_usd": usd(cost_pico)}


_COUNTED = ("started", "succeeded", "failed", "retried", "tokens_in", "tokens_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteRow(Traffic):
    """Counts of one minute, stage and model."""

    t: int  #: minutes since 1970 UTC
    stage: str
    model: str

    @property
    def ended(self) -> int:
        """Tasks that ended."""
        return self.succeeded + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Latencies of a model's answers over the whole run, to 2 %."""

    model: str
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A call without a recorded outcome."""

    task: int
    stage: str
    model: str
    key: str
    attempt: int
    since_us: int
    error: str | None  #: why there was an attempt before; None: there was none


def data_version(conn: sqlite3.Connection) -> int:
    """Return a number that changes with every commit of other connections.

    It is not comparable between connections, and costs microseconds.
    """
    (version,) = conn.execute(SQL["data_version"]).fetchone()
    return int(version)


def minutes(conn: sqlite3.Connection, since: int) -> list[MinuteRow]:
    """Return the minutes from *since* on, ascending; omit those without any event."""
    return [
        MinuteRow(t=t, stage=stage, model=model, **traffic(columns))
        for t, stage, model, *columns in conn.execute(
            SQL["minutes"], (since,)
        ).fetchall()
    ]


def completed_by_minute(conn: sqlite3.Connection) -> dict[int, int]:
    """Return tasks completed by minute; its size grows with hours, not with tasks.

    Read it once: `minutes` has later minutes.
    """
    return dict(conn.execute(SQL["completed_by_minute"]).fetchall())


def latencies(conn: sqlite3.Connection) -> tuple[Latencies, ...]:
    """Return latency percentiles of each model's answers."""
    rows = conn.execute(SQL["model_latencies"]).fetchall()
    by_model = []
    for model, group in groupby(rows, itemgetter(0)):
        buckets = [(bucket, n) for _, bucket, n in group]
        p50, p95, p99 = percentiles_ms(buckets, (0.5, 0.95, 0.99))
        by_model.append(Latencies(model=model, p50_ms=p50, p95_ms=p95, p99_ms=p99))
    return tuple(by_model)


def oldest_in_flight(conn: sqlite3.Connection, limit: int) -> tuple[InFlight, ...]:
    """Return the calls longest in flight; reads all calls in flight, which are few."""
    return tuple(
        InFlight(
            task=task,
            stage=stage,
            model=model,
            key=key,
            attempt=attempt,
            since_us=since_us,
            error=error,
        )
        for task, stage, model, key, attempt, since_us, error in conn.execute(
            SQL["oldest_in_flight"], (limit,)
        ).fetchall()
    )


def next_retries(
    conn: sqlite3.Connection, waiting: int
) -> Mapping[tuple[str, str], int]:
    """Return when each stage and model retries next, microseconds since 1970 UTC.

    Args:
        conn: a reader.
        waiting: number of waiting tasks; nothing is read above `MANY`.
    """
    if not waiting or waiting > MANY:
        return {}
    rows = conn.execute(SQL["next_retries"]).fetchall()
    return {(stage, model): due_us for stage, model, due_us in rows}


_STATE = msgspec.json.Decoder(RunState)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartProgress:
    """One log of the run."""

    log: str  #: id of its first writer, in hex
    slices: Slices  #: its planned slices
    phase: str  #: kind of the last event that started or ended work in it
    events: int  #: of it, in the union
    link: str  #: hex of its chain after these events

    @property
    def has_ended(self) -> bool:
        """Whether it has finished its plan."""
        return self.phase == "run_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionProgress:
    """The parts of a run."""

    parts: tuple[PartProgress, ...]  #: by the first of their slices
    missing: Slices  #: slices that no log plans yet
    unfinished: Slices  #: slices unfinished in every log
    repeated: int  #: answers that were paid for although another log had one
    digest: str  #: SHA-256 over the logs and where each ends, in hex

    @property
    def ended(self) -> int:
        """Logs that are finished."""
        return sum(part.has_ended for part in self.parts)


def union_progress(conn: sqlite3.Connection) -> UnionProgress | None:
    """Return the parts of a run; None: it is not split.

    Args:
        conn: a reader.
    """
    if not is_union(conn):
        return None
    logs = {
        part: (log, seq, link)
        for part, log, seq, link in conn.execute(UNION["logs"]).fetchall()
    }
    parts = [
        PartProgress(
            log=logs[part][0].hex(),
            slices=Slices.parse(slices),
            phase=_STATE.decode(state).phase,
            events=logs[part][1],
            link=logs[part][2].hex(),
        )
        for part, slices, state, _limits in conn.execute(UNION["parts"]).fetchall()
    ]
    assigned = {number for part in parts for number in part.slices}
    done = {n for part in parts if part.has_ended for n in part.slices}
    repeated = dict(conn.execute(SQL["counters"]).fetchall()).get("answers_repeated", 0)
    digest = sha256()
    for log, seq, link in sorted(logs.values()):
        digest.update(log + seq.to_bytes(8, "big") + link)
    return UnionProgress(
        parts=tuple(sorted(parts, key=lambda part: (part.slices.ranges, part.log))),
        missing=Slices.holding(number for number in ALL if number not in assigned),
        unfinished=Slices.holding(number for number in ALL if number not in done),
        repeated=repeated,
        digest=digest.hexdigest(),
    )


HOUR = 60
"""Minutes that charts and the forecast cover."""
RECENT = 5
"""Maximum whole minutes for a current rate: long enough to even out waits and retries,
short enough to show a change."""

RATE_S = 3.0
"""Minimum active time for a rate."""

AT_WORK = frozenset({"live", "quiet", "draining", "stalled"})
"""States in which calls are made, or should be."""
FORECASTABLE = frozenset({"live", "quiet", "paused"})
"""States with a forecast. A paused run's is that of its work, once it continues."""


@dataclass(frozen=True, kw_only=True)
class LiveStatus:
    """Current figures of a run.

    Without slots, because derived values are cached on it.
    """

    status: Status
    rows: Sequence[MinuteRow]  #: of the last hour, ascending
    now_us: int
    is_alive: bool | None  #: whether its process holds the log; None: unknown
    parts: UnionProgress | None = None  #: of a run that is split

    @cached_property
    def state(self) -> str:
        """The run's state in one word, of `store.read.status.STATES`."""
        return liveness(self.status.signs, self.now_us, is_alive=self.is_alive)

    @cached_property
    def observed(self) -> ObservedWork:
        """What the run has shown of its speed."""
        return ObservedWork(
            rows=self.rows,
            now_us=self.now_us,
            started_us=self.status.created_us,
            breaks=self.status.breaks,
            call_times=self.status.call_times,
            running={
                queue.key: queue.states.get(TaskState.RUNNING, 0)
                for queue in self.status.queues
            },
            limits={
                limit.model: ModelLimit(
                    concurrency=limit.concurrency, rpm=limit.rpm, ceiling=limit.ceiling
                )
                for limit in self.status.limits
            },
        )

    @cached_property
    def forecast(self) -> Forecast | None:
        """Remaining time and cost; None if no process works on the run.

        Without a time while batches are open: they arrive together, at an unknown time.
        """
        if self.state not in FORECASTABLE or not self.status.tasks.open:
            return None
        left = time_left(self.status.remaining, self.observed, self._is_paused)
        seconds = None if self.status.batches.count else left.seconds
        cost = self.status.remaining_cost
        return Forecast(
            seconds=seconds,
            paused_tasks=round(left.paused),
            stages=left.stages,
            models=left.models,
            cost_usd=None if cost is None else cost.usd,
            budget_seconds=None
            if cost is None or seconds is None or self._budget_room_usd is None
            else budget_seconds(
                self._budget_room_usd,
                seconds,
                cost.usd,
                [(cost.models.get(name, 0.0), s) for name, s in left.models.items()],
            ),
        )

    def _is_paused(self, stage: str, model: str) -> bool:
        """Return whether a queue waits while others go on."""
        return self.state != "paused" and any(
            pause.holds(stage, model) for pause in self.status.pauses
        )

    @property
    def _budget_room_usd(self) -> float | None:
        """Dollars that are left of the budget; None: none, or other runs share it."""
        status = self.status
        if status.budget_usd is None or status.cost_usd is None or status.group:
            return None
        return status.budget_usd - status.cost_usd - status.possible_usd

    @property
    def progress(self) -> Progress:
        """Tasks done and still expected, the same for every display.

        A cancelled run lacks the tasks that its end skipped.
        """
        progress = self.status.remaining.progress
        lacking = self.status.skips.get("cancelled", 0)
        if self.state != "cancelled" or not lacking:
            return progress
        remaining = progress.remaining.expected + lacking
        return Progress(
            done=progress.done,
            remaining=ForecastInterval(
                low=remaining, expected=remaining, high=remaining
            ),
        )

    @property
    def comes_to_usd(self) -> ForecastInterval | None:
        """Projected total cost in dollars; None: unknown."""
        spent = self.status.cost_usd
        beyond = self.forecast.cost_usd if self.forecast else None
        if spent is None or beyond is None:
            return None
        return ForecastInterval(
            low=spent + beyond.low,
            expected=spent + beyond.expected,
            high=None if beyond.high is None else spent + beyond.high,
        )

    @property
    def recent_minutes(self) -> int:
        """Number of whole minutes for current rates; 0 at first.

        A partial minute would make a run seem slower than it is.
        """
        first = self.status.signs.phase_us // US_PER_MINUTE + 1
        return max(0, min(RECENT, self.now_us // US_PER_MINUTE - first))

    @property
    def recent(self) -> list[MinuteRow]:
        """Counts of these minutes."""
        now = self.now_us // US_PER_MINUTE
        first = now - self.recent_minutes
        return [row for row in self.rows if first <= row.t < now]

    @cached_property
    def _window(self) -> tuple[list[MinuteRow], float]:
        """The minutes for current rates, and their active time in seconds.

        The recent whole ones; before there is one, those since the start.
        """
        until = self.now_us // US_PER_MINUTE
        first = until - (self.recent_minutes or RECENT)
        end_us = until * US_PER_MINUTE if self.recent_minutes else self.now_us
        begin_us = max(self.status.created_us, first * US_PER_MINUTE)
        rows = [
            row
            for row in self.rows
            if first <= row.t and row.t * US_PER_MINUTE < end_us
        ]
        return rows, self.observed.active_s(begin_us, end_us)

    @property
    def rate(self) -> float | None:
        """Recent tasks completed per minute; None if not working or too early."""
        rows, seconds = self._window
        if self.state not in AT_WORK or seconds < RATE_S:
            return None
        return 60 * sum(row.succeeded for row in rows) / seconds

    @property
    def cost_an_hour(self) -> float | None:
        """Recent dollars per hour; None without a rate or if a price is unknown."""
        if self.rate is None or self.status.cost_usd is None:
            return None
        rows, seconds = self._window
        return cost_of(rows) * 3600 / seconds


def cost_of(rows: Iterable[MinuteRow]) -> float:
    """Return the cost of the answers of some minutes in dollars."""
    return sum(row.cost_usd for row in rows)


def live_status(conn: sqlite3.Connection, now_us: int, *, is_held: bool) -> LiveStatus:
    """Read a run at the moment *now_us*.

    Args:
        conn: a reader.
        now_us: microseconds since 1970 UTC.
        is_held: whether a process of this machine held the log, checked before the
            read, so the last commit of a dying writer is not missed.

    Raises:
        NotALog: the run never started.
    """
    with read_transaction(conn):
        run_status = status(conn)
        return LiveStatus(
            status=run_status,
            rows=minutes(conn, now_us // US_PER_MINUTE - HOUR),
            now_us=now_us,
            is_alive=is_working(is_held, run_status.heartbeat),
            parts=union_progress(conn),
        )


def is_working(is_held: bool, heartbeat: Heartbeat | None) -> bool | None:
    """Return whether the run's process is alive; None if it is on another machine.

    A free lock does not rule out a process on another machine.
    """
    is_elsewhere = heartbeat is not None and heartbeat.host != socket.gethostname()
    return None if is_elsewhere and not is_held else is_held


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpending:
    """The money of one log, in pico-dollars."""

    log: bytes  #: id of its first writer
    slices: Slices
    spent_pico: int  #: known to be spent
    possible_pico: int  #: may be billed in addition


def spent_by_log(union: sqlite3.Connection) -> Iterator[LogSpending]:
    """Yield each log's spending, ordered by id; reads every event of the union."""
    for log, slices, spent, possible in union.execute(UNION["spent_by_log"]).fetchall():
        yield LogSpending(
            log=log,
            slices=Slices.parse(slices),
            spent_pico=spent,
            possible_pico=possible,
        )
