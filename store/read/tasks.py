"""Reads tasks, their attempts and their events page by page.

Every function takes a connection from `open_reader`, reads projections or by key,
fetches all rows at once and leaves no cursor open, so reading never blocks the writer.
Pages go by key: the next one starts after the last row of this one.

A list keeps numbers, not rows: they are read once, page by page, and later changes of a
task change its line, never its position. An unfiltered list by number reads nothing,
since numbers are dense from 1.

Families are ordered as in `store.scoring`, page by page and one model at a time, so a
caller can request the models' pages in any order and hold one page of each.
"""

from __future__ import annotations

import difflib
import enum
import json
import re
import shlex
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

from store.database import SQL
from store.encoding import event_of, unpack
from store.errors import CorruptLog
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptStarted,
    Event,
    RecordedEvent,
    TaskCompleted,
    UnknownEvent,
)
from store.json_text import reply_text
from store.log.interface import StoredReply
from store.query import Query, Term, like_pattern, parse_query
from store.tables import (
    planning,
    recorded,
    reply_of,
    task_events,
    task_rows,
    visible_seq,
)
from store.task import PICO_PER_USD, TaskRow, TaskState
from store.titles import SEPARATORS

#: Number of tasks shown in orders without an index.
TOP = 1_000
#: Numbers of one step: some milliseconds where the filter has an index.
STEP = 10_000
#: Limit of the search for changed tasks; a view shows "1,000 or more" then.
NEW = 1_000
#: Above every number and seq of a log.
_LAST = (1 << 62, 1 << 62)
_FIRST = (0, 0)


class TaskOrder(enum.Enum):
    """Sort order of a list of tasks; the value is its label."""

    NUMBER = "by number"
    NEWEST = "newest first"
    SLOWEST = f"top {TOP:,} by latency"
    DEAREST = f"top {TOP:,} by cost"
    MOST_TRIED = f"top {TOP:,} by attempts"

    @property
    def is_top(self) -> bool:
        """Whether it has no index, so only its first tasks are shown."""
        return self in _TOPS


_TOPS = {
    TaskOrder.SLOWEST: "numbers_slowest",
    TaskOrder.DEAREST: "numbers_dearest",
    TaskOrder.MOST_TRIED: "numbers_most_tried",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskListStep:
    """Some numbers of a list, and where the next step continues."""

    numbers: Sequence[int]
    #: seq and number after which the next step continues; None: complete
    after: tuple[int, int] | None
    seq: int  #: the log's last event when this was read


def list_tasks(
    conn: sqlite3.Connection,
    query: Query,
    order: TaskOrder = TaskOrder.NUMBER,
    *,
    after: tuple[int, int] | None = None,
    limit: int = STEP,
) -> TaskListStep:
    """Return the next numbers of a list, at most *limit* unless they are free.

    Args:
        conn: from `open_reader`; another thread may `interrupt` it.
        query: which tasks.
        order: how they are sorted.
        after: from the previous step; None for the first.
        limit: maximum rows of this step, except for the top orders.
    """
    seq = visible_seq(conn)
    if order is TaskOrder.NUMBER and not query.terms:
        return TaskListStep(
            numbers=range(1, planning(conn).tasks + 1), after=None, seq=seq
        )
    if order.is_top:
        statement = SQL[_TOPS[order]].format(query.condition())
        rows = conn.execute(statement, (*query.parameters(), TOP)).fetchall()
        return TaskListStep(numbers=_numbers(rows), after=None, seq=seq)
    key: tuple[int, ...]
    if order is TaskOrder.NEWEST:
        statement, key = SQL["numbers_newest"], after or _LAST
    else:
        statement, key = SQL["numbers"], (after or _FIRST)[1:]
    rows = conn.execute(
        statement.format(query.condition()), (*key, *query.parameters(), limit)
    ).fetchall()
    return TaskListStep(
        numbers=_numbers(rows),
        after=(rows[-1][1], rows[-1][0]) if len(rows) == limit else None,
        seq=seq,
    )


def changed_tasks(
    conn: sqlite3.Connection, query: Query, since: int, limit: int = NEW
) -> list[int]:
    """Return tasks that match a filter and changed after event *since*."""
    statement = SQL["numbers_changed"].format(query.condition())
    parameters = (since, *query.parameters(), limit)
    return [number for (number,) in conn.execute(statement, parameters).fetchall()]


def _numbers(rows: Sequence[tuple[int, int]]) -> array[int]:
    """Pack numbers into eight bytes each, so a list of a million stays small."""
    return array("q", [number for number, _ in rows])


MATCH_ALL = Query()

QueueKey: TypeAlias = tuple[str, str]
"""A stage and a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One attempt of a task, from its start to its outcome."""

    attempt: int
    started_us: int | None  #: None: it came without a request
    ended_us: int | None  #: None: in flight, or never known
    started_seq: int | None  #: its payload is the request's skeleton
    ended_seq: int | None  #: its payload is the reply, or the error
    outcome: AttemptAnswered | AttemptFailed | None
    unparsed: str | None = None  #: why the task's final reply could not be parsed
    fault: str | None = None  #: the part of the reply that could not be read, if known


def tasks(
    conn: sqlite3.Connection,
    query: Query = MATCH_ALL,
    *,
    after: int = 0,
    limit: int = 200,
) -> list[TaskRow]:
    """Return tasks that match a filter, with numbers above *after*, ascending."""
    statement = SQL["tasks_page"].format(query.condition())
    return task_rows(conn, statement, (after, *query.parameters(), limit))


NAMES = 20_000
"""Maximum number of keys that are compared with an unknown name."""


def of_item(item: str) -> Query:
    """Return the filter of an item's tasks: those of its name and their descendants.

    An item is a task's key, the part of keys before a separator, or a group.
    """
    starts = json.dumps([item + separator for separator in SEPARATORS])
    parameters = (item, len(item) + 1, starts)
    return Query((Term(fragment="of_item", parameters=(*parameters, *parameters)),))


def tasks_by_root(
    conn: sqlite3.Connection, query: Query, *, limit: int
) -> list[TaskRow]:
    """Return tasks that match a filter, each first-stage task before its follow-ups."""
    statement = SQL["tasks_by_root"].format(query.condition())
    return task_rows(conn, statement, (*query.parameters(), limit))


def example_item(conn: sqlite3.Connection) -> str:
    """Return the key of the first task as a word for a shell; "ITEM" without tasks."""
    return next((shlex.quote(row.key) for row in tasks(conn, limit=1)), "ITEM")


def items_beginning(conn: sqlite3.Connection, text: str, limit: int) -> list[str]:
    """Return the keys of items that begin with *text*, sorted."""
    pattern = like_pattern(text).removeprefix("%")
    return [key for (key,) in conn.execute(SQL["items_like"], (pattern, limit))]


def near_items(conn: sqlite3.Connection, item: str, limit: int = 3) -> list[str]:
    """Return names of items like an unknown one, the nearest first."""
    near: list[str] = []
    # like the whole name, then with that name in it
    for pattern, cutoff in (("%", 0.5), (like_pattern(item), 0.0)):
        rows = conn.execute(SQL["items_like"], (pattern, NAMES)).fetchall()
        keys = [key for (key,) in rows]
        parts = [re.split(f"[{SEPARATORS}]", key)[0] for key in keys]
        names = dict.fromkeys([*parts, *keys])
        near += difflib.get_close_matches(item, names, n=limit, cutoff=cutoff)
    return list(dict.fromkeys(near))[:limit]


def count_by_queue(conn: sqlite3.Connection, query: Query) -> dict[QueueKey, int]:
    """Count the tasks that match a filter, by stage and model."""
    statement = SQL["tasks_by_lane"].format(query.condition())
    rows = conn.execute(statement, query.parameters()).fetchall()
    return {(stage, model): n for stage, model, n in rows}


def mean_costs(conn: sqlite3.Connection) -> dict[QueueKey, float]:
    """Return the mean cost of a reply in dollars, by stage and model.

    It includes failed attempts and re-asks, but not tasks that the response cache
    answered. Answers without a price count as free, so it is valid only if all have one
    (`Status.cost_usd`).
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
) -> list[RecordedEvent]:
    """Return events with seq above *after*, ascending; only of *kinds*, if given."""
    return recorded(conn, after, limit, kinds)


def event_times(conn: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, int]:
    """Return when events were recorded, in microseconds since 1970 UTC, by seq."""
    seqs_json = json.dumps(list(seqs))
    return dict(conn.execute(SQL["event_times"], (seqs_json,)).fetchall())


def attempts(conn: sqlite3.Connection, task: int) -> list[AttemptRow]:
    """Return the attempts of a task, ascending."""
    started: dict[int, RecordedEvent] = {}
    completed: dict[int, TaskCompleted] = {}
    ended: dict[int, tuple[RecordedEvent, AttemptAnswered | AttemptFailed]] = {}
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


FAILED_SAMPLE = 200
"""Failed tasks, at most, whose messages are compared."""


def failure_text(conn: sqlite3.Connection) -> str:
    """Return the most frequent error of failed tasks, in the endpoint's own words.

    Numbers in messages are ignored. The text is empty if no task failed.
    """
    failed = tasks(conn, parse_query("state:failed"), limit=FAILED_SAMPLE)
    messages = [_last_message(conn, row) for row in failed]
    alike = [re.sub(r"\d+", "#", message) for message in messages]
    if not alike:
        return ""
    common, n = Counter(alike).most_common(1)[0]
    first = "the first " if len(failed) == FAILED_SAMPLE else ""
    message = messages[alike.index(common)]
    return f"{n:,} of {first}{len(failed):,} failed tasks: {message}"


def _last_message(conn: sqlite3.Connection, row: TaskRow) -> str:
    for attempt in reversed(attempts(conn, row.task)):
        if isinstance(attempt.outcome, AttemptFailed):
            return attempt.outcome.message
    return row.error or ""


def recoveries(conn: sqlite3.Connection, rows: Iterable[TaskRow]) -> dict[int, str]:
    """Return the last problem of the completed tasks that needed another attempt."""
    retried = [
        row.task
        for row in rows
        if row.state is TaskState.COMPLETED and row.attempts > 1 and not row.reason
    ]
    problems: dict[int, str] = {}
    for task, ends in (_attempts(conn, retried) if retried else {}).items():
        for end in ends:
            match end.outcome:
                case AttemptFailed(error=error, status=status):
                    code = "" if status is None else f" {status}"
                    problems[task] = f"{error}{code}"
                case AttemptAnswered(reask=str() as reason):
                    problems[task] = reason
                case _:
                    pass
    return problems


def model_calls(conn: sqlite3.Connection) -> dict[str, int]:
    """Return the number of requests sent by model, without cached answers."""
    return dict(conn.execute(SQL["model_calls"]).fetchall())


def parts(conn: sqlite3.Connection, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return message parts by their hash; omit missing ones.

    Raises:
        CorruptLog: one of them cannot be restored.
    """
    data_by_hash = {}
    for sha256 in hashes:
        row = conn.execute(SQL["part"], (sha256,)).fetchone()
        if row is not None:
            encoding, size, data = row
            try:
                data_by_hash[sha256] = unpack(encoding, data, size)
            except ValueError as error:
                raise CorruptLog(
                    f"the message part {sha256.hex()} is damaged ({error}): see "
                    "'siftlog verify', then restore a copy of the run's folder"
                ) from error
    return data_by_hash


IMAGE: Final = b"data:image/"
"""Begins the message part of an image, which is stored as a data URI."""


def part_text(sha256: bytes, data: bytes) -> str:
    """Return a message part as text for people; of an image its size and hash."""
    if data.startswith(IMAGE):
        # base64 has four characters for three bytes
        return f"\n[image of {len(data) * 3 // 4_000:,} kB, {sha256.hex()[:12]}]"
    return data.decode(errors="replace")


def every_task(conn: sqlite3.Connection) -> Iterator[TaskRow]:
    """Yield all tasks by number; in constant memory."""
    after = 0
    while rows := task_rows(conn, SQL["tasks_after"], (after, STEP)):
        yield from rows
        after = rows[-1].task


def stored_replies(
    conn: sqlite3.Connection, seqs: Iterable[int]
) -> dict[int, StoredReply]:
    """Return replies by their events; missing ones are omitted."""
    rows = conn.execute(SQL["replies"], (json.dumps(list(seqs)),)).fetchall()
    return {row[0]: reply_of(*row) for row in rows}


HEAD_BYTES = 64 * 2**10
"""Longest reply whose beginning is read for a list."""


def reply_heads(
    conn: sqlite3.Connection, seqs: Iterable[int], chars: int
) -> dict[int, str]:
    """Return the beginning of the model's text in replies, by their events.

    Args:
        conn: a reader.
        seqs: events with replies; missing ones are omitted.
        chars: maximum characters; replies above `HEAD_BYTES` give an empty text.
    """
    heads = {}
    for row in conn.execute(SQL["replies"], (json.dumps(list(seqs)),)).fetchall():
        seq, *_, length, data = row
        is_long = data is None or length > HEAD_BYTES
        heads[seq] = "" if is_long else reply_text(reply_of(*row).body).text[:chars]
    return heads


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """One attempt with its outcome."""

    duration_us: int | None  #: from its start to its outcome; None: no request
    outcome: AttemptAnswered | AttemptFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptHistory:
    """A task with its attempts of known outcome, in order."""

    row: TaskRow
    attempts: tuple[AttemptEnd, ...]


def attempt_histories(
    conn: sqlite3.Connection, model: str, *, after: int = 0, limit: int = 256
) -> list[tuple[AttemptHistory, ...]]:
    """Return families of a model's first-stage tasks numbered above *after*, ascending.

    In each, the first-stage task comes first and its descendants of all models follow
    by number.
    """
    roots = task_rows(conn, SQL["roots_of_model"], (model, after, limit))
    numbers = [row.task for row in roots]
    rows = task_rows(conn, SQL["descendants_of"], (json.dumps(numbers),))
    descendants = {root: list(rows) for root, rows in groupby(rows, attrgetter("root"))}
    attempts = _attempts(conn, numbers + [row.task for row in rows])
    return [
        tuple(
            AttemptHistory(row=row, attempts=attempts.get(row.task, ()))
            for row in (root, *descendants.get(root.task, ()))
        )
        for root in roots
    ]


def _attempts(
    conn: sqlite3.Connection, tasks: list[int]
) -> dict[int, tuple[AttemptEnd, ...]]:
    ends: dict[int, list[AttemptEnd]] = {}
    began: dict[int, tuple[int, int]] = {}  # by task: attempt and its time
    for task, ts_us, kind, version, facts in conn.execute(
        SQL["attempts_of"], (json.dumps(tasks),)
    ).fetchall():
        event: Event | UnknownEvent = event_of(kind, version, facts)
        match event:
            case AttemptStarted(attempt=attempt):
                began[task] = (attempt, ts_us)
            case AttemptAnswered() | AttemptFailed():
                attempt, at_us = began.get(task, (0, 0))
                duration_us = ts_us - at_us if attempt == event.attempt else None
                ended = AttemptEnd(duration_us=duration_us, outcome=event)
                ends.setdefault(task, []).append(ended)
            case _:
                pass
    return {task: tuple(ended) for task, ended in ends.items()}
