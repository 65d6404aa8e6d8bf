"""What may be read of a run, by anybody, at any time: the store's read side.

Every function takes a connection from `open_reader`, answers from projections or by
key, fetches all at once and leaves no cursor open, so that looking never holds the
writer up. Pages go by key: the next one starts after the last row of this one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from store.answers import Answers, Recent, Repeated, Tail
from store.codec import unpack
from store.connect import Reader, open_reader
from store.errors import CorruptLog
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptStarted,
    Recorded,
    TaskCompleted,
)
from store.failures import ErrorCount, FailureRow, error_counts, failures
from store.history import (
    BucketRow,
    LimitSeen,
    heartbeat_us,
    limits_observed,
    minute_buckets,
    running_now,
    sent_before,
)
from store.listing import NEW, Order, Step, changed_tasks, list_tasks
from store.outlook import Outlook, Prospect
from store.pauses import Pause
from store.present import Present, present
from store.query import Query
from store.reading import (
    created_us,
    head,
    last_seq,
    last_started,
    payload,
    phase,
    planned_seq,
    recorded,
    reply,
    task_events,
    task_rows,
    tasks_numbered,
)
from store.replay import families, task_families
from store.replies import ReplyShares, UsageCount, usage_counts
from store.searching import Found, Stretch, find_events
from store.spending import Spending, spending
from store.statements import SQL
from store.status import (
    AttemptCounts,
    Heartbeat,
    LaneCounts,
    LimitsSeen,
    Status,
    TaskCounts,
    newest_scoring,
    refused_parameters,
    run_started,
    scorings,
    status,
)
from store.task import PICO_PER_USD, TaskRow
from store.traffic import (
    InFlight,
    Latencies,
    MinuteRow,
    completed_by_minute,
    data_version,
    latencies,
    minutes,
    next_retries,
    oldest_in_flight,
    one_moment,
)
from store.verdicts import (
    Score,
    StoredVerdict,
    all_verdicts,
    read_scores,
    read_verdicts,
)

__all__ = [
    "NEW",
    "Answers",
    "AttemptCounts",
    "AttemptRow",
    "BucketRow",
    "ErrorCount",
    "FailureRow",
    "Found",
    "Heartbeat",
    "InFlight",
    "Lane",
    "LaneCounts",
    "Latencies",
    "LimitSeen",
    "LimitsSeen",
    "MinuteRow",
    "Order",
    "Outlook",
    "Pause",
    "Present",
    "Prospect",
    "Reader",
    "Recent",
    "Repeated",
    "ReplyShares",
    "Score",
    "Spending",
    "Status",
    "Step",
    "StoredVerdict",
    "Stretch",
    "Tail",
    "TaskCounts",
    "UsageCount",
    "all_verdicts",
    "attempts",
    "changed_tasks",
    "completed_by_minute",
    "count_by_lane",
    "count_tasks",
    "created_us",
    "data_version",
    "error_counts",
    "event_times",
    "events",
    "failures",
    "families",
    "find_events",
    "head",
    "heartbeat_us",
    "last_seq",
    "last_started",
    "latencies",
    "limits_observed",
    "list_tasks",
    "mean_costs",
    "minute_buckets",
    "minutes",
    "model_calls",
    "newest_scoring",
    "next_retries",
    "oldest_in_flight",
    "one_moment",
    "open_reader",
    "parts",
    "payload",
    "phase",
    "planned_seq",
    "present",
    "read_scores",
    "read_verdicts",
    "refused_parameters",
    "reply",
    "run_started",
    "running_now",
    "scorings",
    "sent_before",
    "spending",
    "status",
    "task_events",
    "task_families",
    "tasks",
    "tasks_numbered",
    "usage_counts",
]

EVERYTHING = Query()

Lane: TypeAlias = tuple[str, str]
"""A stage and a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One attempt of a task, from its start to its outcome."""

    attempt: int
    started_us: int | None  #: None: it came without a request of ours
    ended_us: int | None  #: None: under way, or never known
    started_seq: int | None  #: its payload is the request's skeleton
    ended_seq: int | None  #: its payload is the reply, or what came instead
    outcome: AttemptAnswered | AttemptFailed | None
    unparsed: str | None = None  #: why its reply, with which the task ended, is unread
    fault: str | None = None  #: what of the reply could not be read, if that was told


def tasks(
    conn: sqlite3.Connection,
    query: Query = EVERYTHING,
    *,
    after: int = 0,
    limit: int = 200,
) -> list[TaskRow]:
    """Tasks that a filter lets through, by number, from *after* on."""
    statement = SQL["tasks_page"].format(query.condition())
    return task_rows(conn, statement, (after, *query.parameters(), limit))


def count_tasks(conn: sqlite3.Connection, query: Query) -> int:
    """How many tasks a filter lets through; reads every one of them."""
    statement = SQL["tasks_count"].format(query.condition())
    (count,) = conn.execute(statement, query.parameters()).fetchone()
    return int(count)


def count_by_lane(conn: sqlite3.Connection, query: Query) -> dict[Lane, int]:
    """How many tasks a filter lets through, by stage and model."""
    statement = SQL["tasks_by_lane"].format(query.condition())
    rows = conn.execute(statement, query.parameters()).fetchall()
    return {(stage, model): n for stage, model, n in rows}


def mean_costs(conn: sqlite3.Connection) -> dict[Lane, float]:
    """Dollars that a reply has cost so far, by stage and model.

    Failed attempts and re-asks are in it, tasks that the response cache answered are
    not; answers without a price count as free, so it says something only where all of
    them have one (`Status.cost_usd`).
    """
    return {
        (stage, model): cost_pico / n / PICO_PER_USD
        for stage, model, cost_pico, n in conn.execute(SQL["lane_costs"]).fetchall()
    }


def events(
    conn: sqlite3.Connection,
    *,
    after: int = 0,
    limit: int = 1000,
    kinds: Sequence[str] | None = None,
) -> list[Recorded]:
    """Events with seq above *after*, ascending; of some kinds only, if named."""
    return recorded(conn, after, limit, kinds)


def event_times(conn: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, int]:
    """When events were recorded, in microseconds since 1970 UTC, by seq."""
    named = json.dumps(list(seqs))
    return dict(conn.execute(SQL["event_times"], (named,)).fetchall())


def attempts(conn: sqlite3.Connection, task: int) -> list[AttemptRow]:
    """The attempts of a task, ascending."""
    started: dict[int, Recorded] = {}
    completed: dict[int, TaskCompleted] = {}
    ended: dict[int, tuple[Recorded, AttemptAnswered | AttemptFailed]] = {}
    for row in task_events(conn, task):
        match row.event:
            case AttemptStarted(attempt=attempt):
                started[attempt] = row
            case AttemptAnswered() | AttemptFailed():
                ended[row.event.attempt] = (row, row.event)
            case TaskCompleted() as event:
                completed[event.attempt] = event
            case _:
                pass
    rows = []
    for attempt in sorted(started.keys() | ended.keys()):
        begin = started.get(attempt)
        end, outcome = ended.get(attempt, (None, None))
        last = completed.get(attempt)
        refusal = outcome.fault if isinstance(outcome, AttemptAnswered) else None
        rows.append(
            AttemptRow(
                attempt=attempt,
                started_us=None if begin is None else begin.ts_us,
                ended_us=None if end is None else end.ts_us,
                started_seq=None if begin is None else begin.seq,
                ended_seq=None if end is None else end.seq,
                outcome=outcome,
                unparsed=None if last is None else last.unparsed,
                fault=refusal if last is None else last.fault,
            )
        )
    return rows


def model_calls(conn: sqlite3.Connection) -> dict[str, int]:
    """Requests sent, by model; the response cache's answers are none."""
    return dict(conn.execute(SQL["model_calls"]).fetchall())


def parts(conn: sqlite3.Connection, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
    """Message parts by their hash; those that are not there are left out.

    Raises:
        CorruptLog: one of them cannot be restored.
    """
    found = {}
    for sha256 in hashes:
        row = conn.execute(SQL["part"], (sha256,)).fetchone()
        if row is not None:
            encoding, size, data = row
            try:
                found[sha256] = unpack(encoding, data, size)
            except ValueError as error:
                raise CorruptLog(
                    f"the message part {sha256.hex()} is damaged ({error}): see "
                    "'siftlog verify', then restore a copy of the run's folder"
                ) from error
    return found
