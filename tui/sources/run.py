"""What the monitor shows of one run, read over and over: the only way to its log.

A look costs microseconds while nothing was committed, and otherwise the same for ten
tasks and ten million: projections alone are read, in one short transaction, and no
cursor stays open. That the log is gone, or is another file by now, is an answer too.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self

from store.clock import Clock
from store.connect import unreadable
from store.errors import StoreError
from store.events import AttemptFailed
from store.forecast import best_rate
from store.present import HOUR, is_working
from store.runs import RunFolder
from store.views import (
    Answers,
    ErrorCount,
    MinuteRow,
    Reader,
    Tail,
    completed_by_minute,
    data_version,
    error_counts,
    events,
    failures,
    latencies,
    minutes,
    next_retries,
    oldest_in_flight,
    one_moment,
    status,
)
from tui.sources.same_file import SameFile
from tui.sources.sight import (
    LATELY,
    US_PER_MINUTE,
    Facts,
    LastFailure,
    Sight,
    Snapshot,
    Trouble,
)

OLDEST = 20
"""Calls under way that are named."""


class Source(Protocol):
    """Where sights come from: a log, or a test's list."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    def look(self) -> Sight:
        """The run as it is now."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...


REFRESH_S = 1.0
"""Between two merges of a split run's logs: as often as its processes give signs."""


class RunSource:
    """Looks at one run's log; nothing it does can be written."""

    def __init__(
        self, folder: RunFolder, clock: Clock, *, is_brief: bool = False
    ) -> None:
        """A source that has not looked yet.

        Args:
            folder: the run's.
            clock: what tells the present.
            is_brief: for a line in a list, which shows less and is read more quickly.
        """
        self._folder = folder
        self._tail = None if is_brief else Tail()
        self._clock = clock
        self._reader: Reader | None = None
        self._file = SameFile(folder)
        self._refresh_at = float("-inf")
        self._version: int | None = None
        self._facts: Facts | None = None
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
        """Let go of the log; another look opens it again."""
        if self._reader is not None:
            self._reader.close()
        self._reader = self._version = self._facts = None

    def look(self) -> Sight:
        """The run as it is now."""
        try:
            self._refresh()
            self._file.check()
        except StoreError as error:
            self.close()
            return Trouble(sentence=str(error))
        # asked before reading: what a dying writer committed last is not missed
        is_held = self._folder.is_alive()
        try:
            facts = self._read()
        except StoreError as error:
            self.close()
            return Trouble(sentence=str(error))
        except sqlite3.DatabaseError as error:
            self.close()
            return Trouble(sentence=str(unreadable(self._folder.log, error)))
        return Snapshot(
            facts=facts,
            now_us=self._clock.now_us(),
            is_alive=is_working(is_held, facts.status.heartbeat),
        )

    def _refresh(self) -> None:
        """Have a split run's union follow its logs, now and then."""
        now = self._clock.monotonic()
        if now >= self._refresh_at:
            self._refresh_at = now + REFRESH_S
            self._folder.refresh()

    def _read(self) -> Facts:
        if self._reader is not None and self._reader.is_outdated():
            self.close()
        if self._reader is None:
            self._reader = self._folder.open_reader()
            if self._tail is not None:
                self._tail = Tail()
                self._best = best_rate(completed_by_minute(self._reader))
        version = data_version(self._reader)
        if self._facts is None or version != self._version:
            with one_moment(self._reader):
                self._facts = self._facts_of(self._reader)
            self._version = version
        return self._facts

    def _facts_of(self, reader: Reader) -> Facts:
        now = self._clock.now_us() // US_PER_MINUTE
        rows = tuple(minutes(reader, now - HOUR))
        # by the name of its folder, which all commands take: it may be a copy's
        stand = replace(status(reader), run_id=self._folder.run_id)
        errors = sorted(error_counts(reader), key=lambda error: -error.n)
        if self._tail is None:
            return Facts(
                status=stand,
                minutes=rows,
                oldest=oldest_in_flight(reader, 1),
                errors=tuple(errors),
                last_failure=_last_failure(reader, errors, None),
            )
        answers = self._tail.read(reader)
        self._best = max(
            filter(None, (self._best, best_rate(_completed(rows, now)))), default=None
        )
        return Facts(
            status=stand,
            minutes=rows,
            best=self._best,
            latencies=latencies(reader),
            answers=answers,
            oldest=oldest_in_flight(reader, OLDEST),
            retries=next_retries(reader, stand.tasks.waiting),
            errors=tuple(errors),
            failures=failures(reader, now - LATELY),
            last_failure=_last_failure(reader, errors, answers),
        )


def _completed(rows: tuple[MinuteRow, ...], until: int) -> dict[int, int]:
    """Tasks completed by minute, without the one that is not over."""
    counted: dict[int, int] = {}
    for row in rows:
        if row.t < until:
            counted[row.t] = counted.get(row.t, 0) + row.succeeded
    return counted


def _last_failure(
    reader: Reader, errors: list[ErrorCount], answers: Answers | None
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
