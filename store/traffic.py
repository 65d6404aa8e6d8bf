"""What a run is doing: its minutes, its latencies, its calls under way.

Like `store.status` from projections alone; a monitor reads both at one moment,
inside one transaction, so that its figures belong together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from store.statements import SQL
from store.status import percentile_ms
from store.task import usd

MANY = 2_000
"""Waiting tasks that are looked through for the next retry: a millisecond or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What happened in a stretch of time."""

    started: int  #: attempts
    succeeded: int  #: tasks completed
    failed: int  #: tasks failed
    retried: int  #: attempts that led to another one
    tokens_in: int
    tokens_out: int
    cost_usd: float


def traffic(columns: Sequence[int]) -> dict[str, Any]:
    """The fields of a `Traffic`, from its columns in their order; money is the last."""
    *counted, cost_pico = columns
    return {**dict(zip(_COUNTED, counted, strict=True)), "cost_usd": usd(cost_pico)}


_COUNTED = ("started", "succeeded", "failed", "retried", "tokens_in", "tokens_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteRow(Traffic):
    """What happened in one minute of one stage and model."""

    t: int  #: minutes since 1970 UTC
    stage: str
    model: str

    @property
    def ended(self) -> int:
        """Tasks that came to an end."""
        return self.succeeded + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """How long a model's answers took, over the whole run, to 2 %."""

    model: str
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A call without an outcome so far."""

    task: int
    stage: str
    model: str
    key: str
    attempt: int
    since_us: int
    error: str | None  #: why there was an attempt before; None: there was none


@contextmanager
def one_moment(conn: sqlite3.Connection) -> Iterator[None]:
    """Everything read inside belongs to the same event; keep it short.

    The writer's WAL cannot be reset for as long.
    """
    conn.execute(SQL["begin_reading"])
    try:
        yield
    finally:
        conn.execute(SQL["commit"])


def data_version(conn: sqlite3.Connection) -> int:
    """A number that changes with every commit of others: what is unread is told by it.

    It says nothing of other connections' numbers, and costs microseconds.
    """
    (version,) = conn.execute(SQL["data_version"]).fetchone()
    return int(version)


def minutes(conn: sqlite3.Connection, since: int) -> list[MinuteRow]:
    """The minutes from *since* on, ascending; those without any event are left out."""
    return [
        MinuteRow(t=t, stage=stage, model=model, **traffic(columns))
        for t, stage, model, *columns in conn.execute(
            SQL["minutes"], (since,)
        ).fetchall()
    ]


def completed_by_minute(conn: sqlite3.Connection) -> dict[int, int]:
    """Tasks completed in each minute of the run; grows with its hours, not its tasks.

    To be read once: later minutes are among `minutes`.
    """
    return dict(conn.execute(SQL["completed_by_minute"]).fetchall())


def latencies(conn: sqlite3.Connection) -> tuple[Latencies, ...]:
    """Percentiles of each model's answers."""
    rows = conn.execute(SQL["model_latencies"]).fetchall()
    found = []
    for model, group in groupby(rows, itemgetter(0)):
        buckets = [(bucket, n) for _, bucket, n in group]
        p50, p95, p99 = (percentile_ms(buckets, share) for share in (0.5, 0.95, 0.99))
        found.append(Latencies(model=model, p50_ms=p50, p95_ms=p95, p99_ms=p99))
    return tuple(found)


def oldest_in_flight(conn: sqlite3.Connection, limit: int) -> tuple[InFlight, ...]:
    """The calls that have been out longest; reads all that are out, which are few."""
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
    """When the next retry of each stage and model is due, microseconds since 1970 UTC.

    Args:
        conn: a reader.
        waiting: how many tasks wait; with more than `MANY` of them nothing is read.
    """
    if not waiting or waiting > MANY:
        return {}
    rows = conn.execute(SQL["next_retries"]).fetchall()
    return {(stage, model): due_us for stage, model, due_us in rows}
