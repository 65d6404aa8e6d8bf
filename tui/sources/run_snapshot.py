"""Takes snapshots of one run: its log's facts and the present.

Values only; `tui.sources.run_snapshot` reads them, and tests make them up.

A snapshot costs microseconds if nothing was committed, and otherwise the same for ten
tasks and ten million: only projections are read, in one short transaction, and no
cursor stays open. A missing or replaced log is a valid result too.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from types import TracebackType
from typing import Protocol, Self, TypeAlias, TypeVar

from store.clock import Clock
from store.database import LogReader, read_transaction, unreadable
from store.errors import StoreError
from store.events import AttemptFailed
from store.fold_state import US_PER_S
from store.read.course import course
from store.read.forecast import Forecast, ForecastInterval, Progress, best_rate
from store.read.history import (
    AnswerTail,
    Completions,
    CompletionTail,
    RecentAnswers,
)
from store.read.live import (
    AT_WORK,
    HOUR,
    RECENT,
    InFlight,
    Latencies,
    LiveStatus,
    MinuteRow,
    completed_by_minute,
    data_version,
    is_working,
    latencies,
    minutes,
    next_retries,
    oldest_in_flight,
)
from store.read.status import Status, liveness, status
from store.read.tasks import events
from store.read.usage import ErrorCount, FailureRow, error_counts, failures
from store.runs import RunFolder
from tui.sources.connection import SameFile
from tui.sources.result import ResultReader, ScoringResult

US_PER_MINUTE = 60 * US_PER_S
RESTING_S = 5
"""Seconds between updates of ages where no process works on the run."""
SHORT = 40
"""Minutes of a run whose charts have steps of seconds."""
LATELY = 10
"""Minutes, including the current one, over which failures are counted."""

ENDED = frozenset({"finished", "cancelled", "drained", "budget_stop"})
"""States in which no process works on the run, as expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFailure:
    """The last failed attempt."""

    at_us: int
    task: int
    error: str
    message: str  #: the endpoint's message: must be escaped before display
    times: int  #: minimum consecutive failures with the same message


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run's data from its log, all at the same event."""

    status: Status
    #: minutes of the last hour, or of the last hour of work
    minutes: tuple[MinuteRow, ...]
    oldest: tuple[InFlight, ...]
    errors: tuple[ErrorCount, ...]  #: most frequent first
    last_failure: LastFailure | None
    worked_s: float = 0.0  #: time of work over all sessions
    #: tasks completed per minute in the run's best 10 minutes; None: too short
    best: float | None = None
    #: over the whole run; read where `answers` are not the ones to show
    latencies: tuple[Latencies, ...] = ()
    answers: RecentAnswers | None = None  #: the latest ones; None: not read
    #: time of the next retry, by stage and model
    retries: Mapping[tuple[str, str], int] = field(default_factory=dict)
    failures: tuple[FailureRow, ...] | None = None  #: of `LATELY`; None: unknown
    #: tasks completed by minute, of the whole run
    completed: Mapping[int, int] = field(default_factory=dict)
    completions: Completions | None = None  #: the latest; None: not read


@dataclass(frozen=True, kw_only=True)
class RunSnapshot:
    """A run at a time: the log's data, and what depends on the present.

    Without slots, because derived values are cached in it.
    """

    facts: RunFacts
    now_us: int
    is_alive: bool | None  #: a process holds the log; None: it ran on another machine
    result: ScoringResult | None = (
        None  #: of the newest scoring; None: not read, or none
    )
    #: the process that worked on the run lives on: it scores it after its end
    has_process: bool = False

    @property
    def status(self) -> Status:
        """Counts, money, limits."""
        return self.facts.status

    @cached_property
    def present(self) -> LiveStatus:
        """The data derived from both, the same for every reader."""
        return LiveStatus(
            status=self.status,
            rows=self.facts.minutes,
            now_us=self.now_us,
            is_alive=self.is_alive,
        )

    @property
    def state(self) -> str:
        """The run's state in one word, of `store.read.status.STATES`."""
        return self.present.state

    def is_same_as(self, other: RunSnapshot) -> bool:
        """Return whether nothing to show differs.

        Ages advance each second, or every five where no process works on the run.
        """
        step_us = US_PER_S if self.state in AT_WORK else RESTING_S * US_PER_S
        return (
            self.facts is other.facts
            and self.is_alive == other.is_alive
            and self.result is other.result
            and self.has_process == other.has_process
            and self.state == other.state
            and self.now_us // step_us == other.now_us // step_us
        )

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen unless the user resumes the run."""
        return self.state in ENDED or (self.state == "lost" and not self.is_alive)

    @property
    def heartbeat_s(self) -> float | None:
        """Age of the last heartbeat."""
        heartbeat = self.status.heartbeat
        return None if heartbeat is None else self.age_s(heartbeat.at_us)

    def age_s(self, at_us: int) -> float:
        """Return the age of a time; never negative, whatever the clocks."""
        return max(0.0, (self.now_us - at_us) / US_PER_S)

    @property
    def worked_until_us(self) -> int:
        """Time when a run without a process last worked, as far as known."""
        signs = self.status.signs
        if self.state in ENDED:
            return signs.phase_us
        return max(signs.success_us or 0, signs.heartbeat_us or 0, signs.phase_us)

    @property
    def progress(self) -> Progress:
        """Tasks done and still expected, the same for every display."""
        return self.present.progress

    @property
    def share(self) -> float | None:
        """Share of the work that is done, 0 to 1; None before anything is planned."""
        return self.progress.share if self.total_tasks else None

    @property
    def ended(self) -> int:
        """Number of ended tasks."""
        tasks = self.status.tasks
        return tasks.completed + tasks.failed

    @property
    def total_tasks(self) -> int:
        """Number of planned tasks without skipped ones."""
        return self.status.tasks.planned - self.status.tasks.skipped

    @property
    def forecast(self) -> Forecast | None:
        """Forecast of end and cost; None if nothing moves, or is left."""
        return self.present.forecast

    @property
    def comes_to_usd(self) -> ForecastInterval | None:
        """Projected total cost in dollars; None: unknown."""
        return self.present.comes_to_usd

    @property
    def recent_minutes(self) -> int:
        """Whole minutes over which current rates are taken; 0 at first."""
        return self.present.recent_minutes

    @property
    def recent(self) -> list[MinuteRow]:
        """The rows of these minutes."""
        return self.present.recent

    @property
    def rate(self) -> float | None:
        """Recent tasks completed per minute; None if no process works, or too early."""
        return self.present.rate

    @property
    def of_best(self) -> float | None:
        """That rate as a share of the best 10 minutes; None before it is steady.

        If the last minutes are the best so far, it is 1.
        """
        best = self.facts.best
        if self.rate is None or not best or self.recent_minutes < RECENT:
            return None
        return min(1.0, self.rate / best)

    @property
    def completed_by_minute(self) -> list[float | None]:
        """Tasks completed in each of the last 60 minutes of work; None: before it."""
        end_us = self.now_us
        if self.is_ended:
            end_us = self.worked_until_us + US_PER_MINUTE
        now, first = (us // US_PER_MINUTE for us in (end_us, self.created_us))
        counted = dict.fromkeys(range(now - HOUR, now), 0)
        for row in self.facts.minutes:
            if row.t in counted:
                counted[row.t] += row.succeeded
        return [n if t >= first else None for t, n in counted.items()]

    @property
    def lately(self) -> list[FailureRow] | None:
        """Failures in the last `LATELY` minutes; None: unknown."""
        first = self.now_us // US_PER_MINUTE - LATELY + 1
        failure_rows = self.facts.failures
        return (
            None
            if failure_rows is None
            else [row for row in failure_rows if row.t >= first]
        )

    @property
    def created_us(self) -> int:
        """Start of the run, in microseconds since 1970 UTC."""
        return self.status.created_us


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProblem:
    """Reason why there is nothing to show, as a sentence with the next step."""

    sentence: str


SnapshotOrProblem: TypeAlias = RunSnapshot | ReadProblem

_T = TypeVar("_T")


def once(derive: Callable[[RunSnapshot], _T]) -> Callable[[RunSnapshot], _T]:
    """Remember what was derived from the latest snapshot: several panels need it."""
    latest: list[tuple[RunSnapshot, _T]] = []

    @wraps(derive)
    def remembered(snapshot: RunSnapshot) -> _T:
        if not latest or latest[0][0] is not snapshot:
            latest[:] = [(snapshot, derive(snapshot))]
        return latest[0][1]

    return remembered


OLDEST = 20
"""Maximum listed calls in flight."""


class SnapshotSource(Protocol):
    """Source of snapshots: a log, or a test's list."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    def poll(self) -> SnapshotOrProblem:
        """Return the run's current snapshot."""
        ...

    def close(self) -> None:
        """Close the log."""
        ...


REFRESH_S = 1.0
"""Interval of merging a split run's logs: that of heartbeats."""


class RunSource:
    """Reads one run's log, read-only."""

    def __init__(
        self, folder: RunFolder, clock: Clock, *, is_brief: bool = False
    ) -> None:
        """Create a source without a snapshot.

        Args:
            folder: the run's folder.
            clock: the present time.
            is_brief: for a line in a list, which shows less and is read faster.
        """
        self._folder = folder
        self._tail = None if is_brief else AnswerTail()
        self._completions = CompletionTail()
        self._completed: dict[int, int] = {}
        self._results = None if is_brief else ResultReader(folder)
        self._clock = clock
        self._reader: LogReader | None = None
        self._file = SameFile(folder)
        self._refresh_at = float("-inf")
        self._is_held = False
        self._refreshed: tuple[int | None, bool] | None = None  # both, at the last one
        self._version: int | None = None
        self._facts: RunFacts | None = None
        self._best: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._folder.run_id

    def close(self) -> None:
        """Close the log; the next poll opens it again."""
        if self._reader is not None:
            self._reader.close()
        self._reader = self._version = self._facts = None

    def poll(self) -> SnapshotOrProblem:
        """Return the run's current snapshot."""
        try:
            self._refresh()
            self._file.check()
        except StoreError as error:
            self.close()
            return ReadProblem(sentence=str(error))
        # checked before reading, so that the last commit of a dying writer is not
        # missed
        self._is_held = self._folder.is_alive()
        try:
            facts = self._read()
        except StoreError as error:
            self.close()
            return ReadProblem(sentence=str(error))
        except sqlite3.DatabaseError as error:
            self.close()
            return ReadProblem(sentence=str(unreadable(self._folder.log, error)))
        return RunSnapshot(
            facts=facts,
            now_us=self._clock.now_us(),
            is_alive=is_working(self._is_held, facts.status.heartbeat),
            result=None
            if self._results is None
            else self._results.poll(_newest(facts.status)),
            has_process=_is_running(facts.status),
        )

    def _refresh(self) -> None:
        """Merge a split run's logs, and finish a killed writer's, at intervals."""
        now = self._clock.monotonic()
        if now < self._refresh_at:
            return
        self._refresh_at = now + REFRESH_S
        seen = self._version, self._is_held
        is_known = self._facts is not None and seen == self._refreshed
        if not is_known or self._folder.has_other_logs():
            self._folder.refresh()
            self._refreshed = seen

    def _read(self) -> RunFacts:
        if self._reader is not None and self._reader.is_outdated():
            self.close()
        if self._reader is None:
            self._reader = self._folder.open_reader()
            if self._tail is not None:
                self._tail, self._completions = AnswerTail(), CompletionTail()
                self._completed = completed_by_minute(self._reader)
                self._best = best_rate(self._completed)
        version = data_version(self._reader)
        if self._facts is None or version != self._version:
            with read_transaction(self._reader):
                self._facts = self._facts_of(self._reader)
            self._version = version
        return self._facts

    def _facts_of(self, reader: LogReader) -> RunFacts:
        now = self._clock.now_us() // US_PER_MINUTE
        # by the name of its folder, which all commands accept: it may be a copy
        run_status = replace(status(reader), run_id=self._folder.run_id)
        rows = tuple(minutes(reader, min(now, _last_minute(run_status)) - HOUR))
        errors = sorted(error_counts(reader), key=lambda error: -error.n)
        if self._tail is None:
            return RunFacts(
                status=run_status,
                minutes=rows,
                oldest=oldest_in_flight(reader, 1),
                errors=tuple(errors),
                last_failure=_last_failure(reader, errors, None),
                worked_s=course(reader).worked_s,
            )
        answers = self._tail.read(reader)
        # words of an end depend neither on the time nor on a process
        has_ended = liveness(run_status.signs, 0, is_alive=None) in ENDED
        self._best = max(
            filter(None, (self._best, best_rate(_completed(rows, now)))), default=None
        )
        # a new value: an older snapshot keeps its own
        self._completed = self._completed | _completed(rows, now + 1)
        return RunFacts(
            status=run_status,
            minutes=rows,
            best=self._best,
            completed=self._completed,
            completions=self._completions.read(reader)
            if _is_short(run_status, self._clock.now_us())
            else None,
            latencies=latencies(reader) if has_ended or not answers.n else (),
            answers=answers,
            oldest=oldest_in_flight(reader, OLDEST),
            retries=next_retries(reader, run_status.tasks.waiting),
            errors=tuple(errors),
            failures=failures(reader, now - LATELY),
            last_failure=_last_failure(reader, errors, answers),
            worked_s=course(reader).worked_s,
        )


def _is_running(run_status: Status) -> bool:
    """Return whether the process of the last heartbeat lives on this machine."""
    heartbeat = run_status.heartbeat
    if heartbeat is None or heartbeat.host != socket.gethostname():
        return False
    try:
        os.kill(heartbeat.pid, 0)  # signal 0 only checks
    except OSError:
        return False
    return True


def _newest(run_status: Status) -> int | None:
    """Return the number of the newest scoring; None: there is none."""
    return max(run_status.scorings, default=None)


def _last_minute(run_status: Status) -> int:
    """Return the minute of the last sign of work in a log."""
    signs = run_status.signs
    last_us = max(signs.success_us or 0, signs.heartbeat_us or 0, signs.phase_us)
    return last_us // US_PER_MINUTE


def _is_short(run_status: Status, now_us: int) -> bool:
    """Return whether minutes are too coarse for a chart of all of a run's work."""
    end = min(now_us // US_PER_MINUTE, _last_minute(run_status))
    return end - run_status.created_us // US_PER_MINUTE < SHORT


def _completed(rows: tuple[MinuteRow, ...], until: int) -> dict[int, int]:
    """Return tasks completed by minute, before minute *until*."""
    counted: dict[int, int] = {}
    for row in rows:
        if row.t < until:
            counted[row.t] = counted.get(row.t, 0) + row.succeeded
    return counted


def _last_failure(
    reader: LogReader, errors: list[ErrorCount], answers: RecentAnswers | None
) -> LastFailure | None:
    seq = max((error.last_seq for error in errors), default=0)
    repeated = answers and answers.failure
    for recorded in events(reader, after=seq - 1, limit=1) if seq else ():
        if isinstance(recorded.event, AttemptFailed):
            return LastFailure(
                at_us=recorded.ts_us,
                task=recorded.event.task,
                error=recorded.event.error,
                message=recorded.event.message,
                times=repeated.n if repeated else 1,
            )
    return None
