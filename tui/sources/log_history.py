"""Reads the history of a run from its log, in a thread.

A week costs the same as an hour, except for one pass over the minutes, which are
aggregated in SQL. Limits have no projection; they are searched in the log, from its end
backwards, some thousand events at a time.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence

from store.clock import Clock
from store.database import read_transaction
from store.events import AttemptsAbandoned, RecordedEvent, RunResumed
from store.read.history import (
    BucketRow,
    ConcurrencyLimit,
    heartbeat_us,
    limits_observed,
    minute_buckets,
    running_now,
    sent_before,
)
from store.read.tasks import event_times, events
from store.runs import RunFolder
from store.tables import last_seq, tasks_numbered
from tui.sources.connection import LogConnection
from tui.sources.history import (
    KINDS,
    US_PER_MINUTE,
    ColumnRange,
    HistoryColumn,
    HistoryRequest,
    RunHistory,
    WorkedMinutes,
    extent,
    limits_at,
    lived,
    run_marks,
    under_way,
    whole_until,
    worked_minutes,
)

_STEP = 50_000
"""Events searched for limits at once: some 10 ms."""
_STEPS = 5
"""Maximum steps per read."""
_REACH = 2_000_000
"""Maximum events searched: some hours of a fast run."""
_NEVER = 1 << 40
"""A minute that never comes, and a number that no list reaches."""


class LogHistory:
    """Reads one run's log, and caches what cannot change."""

    def __init__(self, folder: RunFolder, clock: Clock) -> None:
        self._reading = LogConnection(folder)
        self._clock = clock
        self._recorded: list[RecordedEvent] = []
        self._lasts: dict[int, int] = {}  # time of the event before each start
        self._abandoned: dict[int, Counter[str]] = {}  # calls by model, by event
        self._before: dict[tuple[int, str | None], int] = {}
        self._limits = _Limits()

    async def read(self, ask: HistoryRequest) -> RunHistory:
        """Return a part of the run's history.

        Raises:
            StoreError: the log cannot be opened.
            sqlite3.DatabaseError: it cannot be read.
        """
        return await self._reading.ask(self._read, ask)

    def close(self) -> None:
        """Close the log."""
        self._reading.close()

    def _read(self, conn: sqlite3.Connection, ask: HistoryRequest) -> RunHistory:
        with read_transaction(conn):
            self._take_in(conn)
            seq = last_seq(conn)
            worked = worked_minutes(self._recorded, self._lasts, heartbeat_us(conn))
            until = whole_until(worked, self._clock.now_us() // US_PER_MINUTE)
            part = extent(ask, worked, until)
            rows = {
                row.number: row
                for row in minute_buckets(
                    conn, part.first, until, width=part.width, model=ask.model
                )
            }
            in_flight = self._in_flight(conn, ask.model, part, rows)
        is_whole = self._limits.poll(conn, seq, part.first * US_PER_MINUTE)
        ends = [(number + 1) * part.width * US_PER_MINUTE for number in part.numbers]
        limits = self._limits.at(ends, ask.model)
        return RunHistory(
            width=part.width,
            columns=tuple(
                HistoryColumn(
                    first=number * part.width,
                    lived=_lived(worked, part, number, rows),
                    row=rows.get(number),
                    in_flight=None if in_flight is None else in_flight[at],
                    limit=limits[at],
                )
                for at, number in enumerate(part.numbers)
            ),
            happenings=run_marks(self._recorded),
            is_whole=is_whole,
        )

    def _take_in(self, conn: sqlite3.Connection) -> None:
        """Read the run's events since the last read."""
        after = self._recorded[-1].seq if self._recorded else 0
        fresh = events(conn, after=after, limit=_NEVER, kinds=KINDS)
        kinds = {
            record.seq: type(record.event) for record in (*self._recorded[-1:], *fresh)
        }
        for record in fresh:
            if isinstance(record.event, RunResumed):
                # a resumed run first records the abandoned calls of the last process
                is_second = kinds.get(record.seq - 1) is AttemptsAbandoned
                last = record.seq - (2 if is_second else 1)
                self._lasts[record.seq] = event_times(conn, [last]).get(last, 0)
            elif isinstance(record.event, AttemptsAbandoned):
                tasks = [task for task, _ in record.event.attempts]
                models = {row.task: row.model for row in tasks_numbered(conn, tasks)}
                self._abandoned[record.seq] = Counter(models[task] for task in tasks)
        self._recorded += fresh

    def _in_flight(
        self,
        conn: sqlite3.Connection,
        model: str | None,
        part: ColumnRange,
        rows: Mapping[int, BucketRow],
    ) -> list[int] | None:
        before = self._before.get((part.first, model))
        if before is None:
            before = sent_before(conn, part.first, model)
            self._before = {(part.first, model): before}
        nets = [rows[n].net if n in rows else 0 for n in part.numbers]
        after = minute_buckets(conn, part.until, _NEVER, width=_NEVER, model=model)
        lost = [0] * (len(nets) + 1)
        for record in self._recorded:
            if isinstance(record.event, AttemptsAbandoned):
                calls = self._abandoned[record.seq]
                n = calls.total() if model is None else calls[model]
                minute = record.ts_us // US_PER_MINUTE
                if minute < part.first:
                    before -= n
                elif minute >= part.until:
                    lost[-1] += n
                else:
                    lost[minute // part.width - part.numbers.start] += n
        nets.append(sum(row.net for row in after))
        return under_way(before, nets, lost, running_now(conn, model))


def _lived(
    worked: Sequence[WorkedMinutes],
    part: ColumnRange,
    number: int,
    rows: Mapping[int, BucketRow],
) -> int:
    """Return minutes of a column with a process; at least one if there are events."""
    first = number * part.width
    lived_minutes = lived(worked, first, min(first + part.width, part.until))
    return max(lived_minutes, 1) if number in rows else lived_minutes


class _Limits:
    """Limits found in a log so far, from its end backwards."""

    def __init__(self) -> None:
        # the last one per minute and model: the resolution of charts
        self._seen: dict[tuple[int, str], ConcurrencyLimit] = {}
        self._low = self._high = 0  # events between these are known
        self._known_since_us = 0  # time of the earliest of them

    def poll(self, conn: sqlite3.Connection, seq: int, since_us: int) -> bool:
        """Read new events and some older ones; return whether that was enough."""
        if not self._high:
            self._low = self._high = seq
            self._known_since_us = self._time(conn, seq)
        self._seen |= self._between(conn, max(self._high, seq - _REACH), seq)
        self._high = seq
        for _ in range(_STEPS):
            if self._is_known(since_us):
                break
            low = max(0, self._low - _STEP)
            self._seen = self._between(conn, low, self._low) | self._seen
            self._low = low
            self._known_since_us = self._time(conn, low + 1) if low else 0
        return self._is_known(since_us)

    def at(self, ends_us: list[int], model: str | None) -> list[int | None]:
        """Return the limits of a model, or the sum of all, at some times."""
        limits = [
            limit for limit in self._seen.values() if model in {None, limit.model}
        ]
        limits.sort(key=lambda limit: limit.at_us)
        return limits_at(limits, ends_us, self._known_since_us)

    def _is_known(self, since_us: int) -> bool:
        """Return whether the limits of that time were found, or are out of reach."""
        is_far = self._high - self._low >= _REACH
        # all models' limits are recorded together
        is_observed = any(limit.at_us <= since_us for limit in self._seen.values())
        return is_observed or is_far or not self._low

    @staticmethod
    def _between(
        conn: sqlite3.Connection, after: int, through_seq: int
    ) -> dict[tuple[int, str], ConcurrencyLimit]:
        return {
            (limit.at_us // US_PER_MINUTE, limit.model): limit
            for limit in limits_observed(conn, after, through_seq)
        }

    @staticmethod
    def _time(conn: sqlite3.Connection, seq: int) -> int:
        return event_times(conn, [seq]).get(seq, 0)
