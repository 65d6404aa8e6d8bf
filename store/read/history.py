"""Reads a run's past: minutes in buckets, latest answers, matching events.

Minutes are aggregated in SQL, so the result has as many rows as a chart has columns,
for a run of any length.

Latencies are read from the end of the log in bounded steps, since projections of
latencies by minute would slow every commit. A reader keeps an `AnswerTail` and polls
it.

A step of an event search reads by key and ends after a bounded number of events, so it
takes some milliseconds; it returns the remaining range, so the caller can continue.
Rare kinds are found by an index, and the events of one task by their chain, regardless
of the log's length.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from store.database import SQL
from store.encoding import unpack
from store.events import AttemptAnswered, AttemptFailed, LimitObserved, RecordedEvent
from store.fold import MARKED
from store.fold_state import US_PER_S
from store.query import EventQuery
from store.read.live import Traffic, traffic
from store.read.tasks import event_times
from store.tables import damaged, event_in, recorded_rows, task_events, visible_seq
from store.task import usd


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow(Traffic):
    """Counts of a bucket of minutes, of one model or of all."""

    number: int  #: its start, in widths since 1970 UTC

    @property
    def net(self) -> int:
        """Change of the number of calls in flight from its start to its end.

        Every attempt that is started completes or fails its task, leads to another
        attempt, or is abandoned, which no bucket counts.
        """
        return self.started - self.succeeded - self.failed - self.retried


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimit:
    """Concurrency limit of a model from a moment on."""

    at_us: int
    model: str
    concurrency: int


def minute_buckets(
    conn: sqlite3.Connection, since: int, until: int, *, width: int, model: str | None
) -> list[BucketRow]:
    """Return buckets from *since* to before *until*, ascending; omit empty ones.

    Args:
        conn: the log.
        since: minutes since 1970 UTC.
        until: minutes since 1970 UTC.
        width: minutes per bucket.
        model: None: all models.
    """
    parameters = {"since": since, "until": until, "width": width, "model": model}
    return [
        BucketRow(number=number, **traffic(columns))
        for number, *columns in conn.execute(
            SQL["minute_buckets"], parameters
        ).fetchall()
    ]


def sent_before(conn: sqlite3.Connection, minute: int, model: str | None) -> int:
    """Return the number of attempts started before *minute* and not ended by then.

    Abandoned attempts are included. Reads all minutes before that one.
    """
    parameters = {"until": minute, "model": model}
    (sent,) = conn.execute(SQL["sent_before"], parameters).fetchone()
    return int(sent)


def running_now(conn: sqlite3.Connection, model: str | None) -> int:
    """Return the number of calls in flight."""
    (running,) = conn.execute(SQL["running_now"], {"model": model}).fetchone()
    return int(running)


def heartbeat_us(conn: sqlite3.Connection) -> int | None:
    """Return the time of the process's last heartbeat; None: there was none."""
    row = conn.execute(SQL["heartbeat"]).fetchone()
    return None if row is None else int(row[0])


def limits_observed(
    conn: sqlite3.Connection, after: int, through_seq: int
) -> Iterable[ConcurrencyLimit]:
    """Yield the limits recorded by events above *after* up to *through_seq*.

    Ascending. Reads every event in between, so read a long log in steps.
    """
    for row in recorded_rows(conn, SQL["limits_observed"], (after, through_seq)):
        if isinstance(row.event, LimitObserved):
            yield ConcurrencyLimit(
                at_us=row.ts_us,
                model=row.event.model,
                concurrency=row.event.concurrency,
            )


LATENCY_WINDOW = 1_000
"""Number of latest answers for current percentiles."""
READ_STEP = 1_000
"""Events read per poll; if more have arrived, those in between are skipped."""
FIRST_READ = 3_000
"""Events read by the first poll: about one event in three is an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentLatencies:
    """Exact latencies of a model's latest answers."""

    model: str
    n: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


LATENCY_STEPS = 60
"""Maximum parts of the time of the latest answers."""
LATENCY_WIDTHS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800, 3600)
"""Possible seconds of a part."""
LEAST_PARTS = 5
ANSWERS_A_STEP = 8
"""Minimum mean number of answers in a part: below, a percentile is one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCourse:
    """Latencies of the latest answers of all models, in equal parts of their time."""

    first: int  #: start of the first part, seconds since 1970 UTC
    width: int  #: seconds of each part
    p50_ms: tuple[float | None, ...]  #: None: no answer came
    p95_ms: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedFailure:
    """A failure that recurred without a different one in between."""

    n: int  #: lower bound: earlier ones were not read
    task: int  #: of the last time
    error: str
    message: str  #: as sent by the endpoint: make it printable before display
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentAnswers:
    """Latest answers and the last failure in a log."""

    n: int  #: number of answers with latencies
    since_us: int | None  #: when the first of them came; None: there is none
    until_us: int | None
    models: tuple[RecentLatencies, ...]
    failure: RepeatedFailure | None  #: the last failed attempt
    course: LatencyCourse | None = None  #: None: too few answers

    @property
    def seconds(self) -> float:
        """The time between the first and the last of the answers."""
        if self.since_us is None or self.until_us is None:
            return 0.0
        return (self.until_us - self.since_us) / US_PER_S


class AnswerTail:
    """Remembers the latest answers of one log, and its read position."""

    def __init__(self) -> None:
        self._seq = 0
        self._answers: deque[tuple[int, str, float]] = deque(maxlen=LATENCY_WINDOW)
        self._failed: tuple[int, AttemptFailed] | None = None  # the last one, its time
        self._times = 0  # that it came without another one in between
        self._course: LatencyCourse | None = None

    def read(self, conn: sqlite3.Connection) -> RecentAnswers:
        """Read new events and return the current statistics."""
        last = visible_seq(conn)  # later answers may be of tasks that have no row yet
        after = max(self._seq, last - (READ_STEP if self._seq else FIRST_READ))
        rows = conn.execute(SQL["outcomes"], (after, last)).fetchall()
        for seq, ts_us, model, kind, version, facts in rows:
            match event_in(seq, kind, version, facts):
                case AttemptAnswered(cached=False, latency_ms=float(latency_ms)):
                    self._answers.append((ts_us, model, latency_ms))
                case AttemptFailed() as failed:
                    self._count(ts_us, failed)
                case _:
                    pass
        self._seq = last
        return self._recent_answers()

    def _count(self, ts_us: int, failed: AttemptFailed) -> None:
        before = self._failed
        is_same = before is not None and (before[1].error, before[1].message) == (
            failed.error,
            failed.message,
        )
        self._times = self._times + 1 if is_same else 1
        self._failed = ts_us, failed

    def _failure(self) -> RepeatedFailure | None:
        if self._failed is None:
            return None
        at_us, failed = self._failed
        return RepeatedFailure(
            n=self._times,
            task=failed.task,
            error=failed.error,
            message=failed.message,
            at_us=at_us,
        )

    def _recent_answers(self) -> RecentAnswers:
        self._course = _latency_course(self._answers, self._course)
        by_model: dict[str, list[float]] = defaultdict(list)
        for _, model, latency_ms in self._answers:
            by_model[model].append(latency_ms)
        return RecentAnswers(
            n=len(self._answers),
            since_us=self._answers[0][0] if self._answers else None,
            until_us=self._answers[-1][0] if self._answers else None,
            models=tuple(_recent(model, by_model[model]) for model in sorted(by_model)),
            failure=self._failure(),
            course=self._course,
        )


def _latency_course(
    answers: Sequence[tuple[int, str, float]], before: LatencyCourse | None
) -> LatencyCourse | None:
    """Divide the time of *answers*, ascending, into parts with enough of them.

    Parts are aligned with the clock and whole, so a course changes once a part.

    Args:
        answers: time, model and latency.
        before: the course of earlier answers, returned if no part is new.
    """
    count = min(LATENCY_STEPS, len(answers) // ANSWERS_A_STEP)
    if count < 2:  # noqa: PLR2004 - one part is no course
        return None
    begin, end = (answers[at][0] // US_PER_S for at in (0, -1))
    least = (end - begin) / count
    width = next((step for step in LATENCY_WIDTHS if step >= least), round(least) + 1)
    first, last = begin // width + 1, end // width
    if last - first < LEAST_PARTS:
        return None  # a second of a fast run has all the answers
    if before and (before.first, before.width, len(before.p50_ms)) == (
        first * width,
        width,
        last - first,
    ):
        return before
    parts: list[list[float]] = [[] for _ in range(first, last)]
    for at_us, _, latency_ms in answers:
        at = at_us // US_PER_S // width - first
        if 0 <= at < len(parts):
            parts[at].append(latency_ms)
    ordered = [sorted(part) for part in parts]
    return LatencyCourse(
        first=first * width,
        width=width,
        p50_ms=tuple(nearest_rank(part, 0.5) if part else None for part in ordered),
        p95_ms=tuple(nearest_rank(part, 0.95) if part else None for part in ordered),
    )


COMPLETIONS_READ = 6_000
"""Events whose completed tasks one read finds, by index: some milliseconds."""
COMPLETIONS_SPAN_S = 1_900
"""Seconds that are remembered: charts of longer windows have minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedSecond:
    """Tasks completed in one second."""

    second: int  #: since 1970 UTC
    n: int
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """Tasks completed by second, at the end of a log."""

    since_us: int  #: all completions after this time are included
    seconds: tuple[CompletedSecond, ...]  #: ascending; others had none


class CompletionTail:
    """Remembers the latest completions of one log, and its read position.

    A run that is younger than half an hour has too few minutes for a chart. Each read
    is bounded: of older completions only the minutes are known.
    """

    def __init__(self) -> None:
        self._seq = 0
        self._since_us = 0
        self._seconds: dict[int, CompletedSecond] = {}
        self._completions = Completions(since_us=0, seconds=())

    def read(self, conn: sqlite3.Connection) -> Completions:
        """Read new completions and return all that are remembered."""
        last = visible_seq(conn)
        if last == self._seq:
            return self._completions
        after = max(self._seq, last - COMPLETIONS_READ)
        if after != self._seq or not self._since_us:
            # what was read before has a gap behind it
            self._seconds = {}
            first = event_times(conn, [max(1, after)])
            self._since_us = first.get(max(1, after), 0)
        for second, n, cost_pico in conn.execute(
            SQL["completions"], (after, last)
        ).fetchall():
            before = self._seconds.get(second)
            self._seconds[second] = CompletedSecond(
                second=second,
                n=n + (before.n if before else 0),
                cost_usd=usd(cost_pico) + (before.cost_usd if before else 0.0),
            )
        self._seq = last
        self._forget(max(self._seconds, default=0) - COMPLETIONS_SPAN_S)
        self._completions = Completions(
            since_us=self._since_us, seconds=tuple(self._seconds.values())
        )
        return self._completions

    def _forget(self, first: int) -> None:
        """Forget seconds before *first*."""
        for second in list(self._seconds):
            if second >= first:
                break
            del self._seconds[second]
            self._since_us = max(self._since_us, first * US_PER_S)


def _recent(model: str, latencies: Sequence[float]) -> RecentLatencies:
    ordered = sorted(latencies)
    p50, p95, p99 = (nearest_rank(ordered, share) for share in (0.5, 0.95, 0.99))
    return RecentLatencies(
        model=model, n=len(ordered), p50_ms=p50, p95_ms=p95, p99_ms=p99
    )


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least *share* of the values do not exceed.

    >>> nearest_rank([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    at = -(-round(share * 100) * len(ordered) // 100)
    return ordered[max(0, at - 1)]


#: Events that one step scans without an index: 5 to 30 ms (design/monitor.md).
SPAN = 20_000


@dataclass(frozen=True, slots=True)
class SeqRange:
    """A range of events by seq, inclusive; empty if `last` is below `first`."""

    first: int
    last: int

    def __len__(self) -> int:
        return max(0, self.last - self.first + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMatches:
    """Result of one step."""

    events: tuple[RecordedEvent, ...]  #: ascending
    rest: SeqRange  #: the range not searched yet; without length: none


def find_events(
    conn: sqlite3.Connection,
    query: EventQuery,
    seq_range: SeqRange,
    *,
    limit: int,
    is_backward: bool,
) -> EventMatches:
    """Return the next events of a range that match a filter.

    Args:
        conn: from `open_reader`; another thread may interrupt it.
        query: which events.
        seq_range: range to search; for the next step, the `rest` of this one.
        limit: maximum number of events.
        is_backward: start at the last event instead of the first.
    """
    pointed = _pointed(conn, query, seq_range, limit=limit, is_backward=is_backward)
    part = seq_range
    if pointed is None:
        part = _near(seq_range, SPAN, is_backward=is_backward)
        statement = SQL["events_back" if is_backward else "events_on"]
        events = recorded_rows(
            conn,
            statement.format(query.condition()),
            (part.first, part.last, *query.parameters(), limit),
        )
        seen = [event.seq for event in events]
    else:
        seen = pointed
        events = recorded_rows(
            conn,
            SQL["events_named"].format(query.condition()),
            (json.dumps(seen), *query.parameters()),
        )
    if len(seen) >= limit:
        part = _up_to(part, seen[-1], is_backward=is_backward)
    return EventMatches(
        events=tuple(sorted(events, key=lambda event: event.seq)),
        rest=SeqRange(seq_range.first, part.first - 1)
        if is_backward
        else SeqRange(part.last + 1, seq_range.last),
    )


def _pointed(
    conn: sqlite3.Connection,
    query: EventQuery,
    seq_range: SeqRange,
    *,
    limit: int,
    is_backward: bool,
) -> list[int] | None:
    """Return the nearest *limit* seqs by an index; None: there is no index."""
    if query.task is not None:
        chain = (event.seq for event in task_events(conn, query.task))
        seqs = [seq for seq in chain if seq_range.first <= seq <= seq_range.last]
    elif MARKED.issuperset(query.kinds):
        statement = SQL["marks_back" if is_backward else "marks_on"]
        seqs = [
            seq
            for kind in sorted(query.kinds)
            for (seq,) in conn.execute(
                statement, (kind, seq_range.first, seq_range.last, limit)
            ).fetchall()
        ]
    else:
        return None
    return sorted(seqs, reverse=is_backward)[:limit]


def _near(seq_range: SeqRange, length: int, *, is_backward: bool) -> SeqRange:
    """Return the part of a range that a step starts with."""
    if is_backward:
        return SeqRange(
            max(seq_range.first, seq_range.last - length + 1), seq_range.last
        )
    return SeqRange(seq_range.first, min(seq_range.last, seq_range.first + length - 1))


def _up_to(part: SeqRange, seq: int, *, is_backward: bool) -> SeqRange:
    """Return the part of a range that was searched when *seq* was found last."""
    return SeqRange(seq, part.last) if is_backward else SeqRange(part.first, seq)


BODIES_PAGE = 200


def bodies(conn: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield every body, unpacked, with its location in words; in constant memory.

    Raises:
        CorruptLog: one of them is damaged.
    """
    for kind, statement in (("event", "bodies_page"), ("message part", "blob_bodies")):
        after = 0
        while page := conn.execute(SQL[statement], (after, BODIES_PAGE)).fetchall():
            for number, encoding, size, data in page:
                after = number
                location = f"{kind} {number}"
                try:
                    yield location, unpack(encoding, data, size)
                except ValueError as error:
                    raise damaged(location, error) from error
