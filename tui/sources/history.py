"""Provides a run's history for charts, in columns of whole minutes.

Columns contain all events, without sampling. Minutes in which no process worked on the
run are gaps, not zeros. The current minute is omitted, because every figure would seem
to fall in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from store.document import plural
from store.events import (
    AttemptsAbandoned,
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Event,
    RecordedEvent,
    RunCancelled,
    RunDrained,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    ScoringRecorded,
    TasksReopened,
    UnknownEvent,
    kind_of,
)
from store.read.history import BucketRow, ConcurrencyLimit

US_PER_MINUTE = 60_000_000
WIDTHS = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440)
"""Possible minutes per column: edges are aligned with the clock, so they are stable."""

_BEGINNINGS = (RunStarted, RunResumed)
_ENDS = (RunDrained, RunCancelled, RunFinished)


def _taken_up(event: RunResumed) -> str:
    lost = f", {plural(event.unknown, 'call')} without outcome" if event.unknown else ""
    return f"resumed{lost}"


def _pause_text(event: RunPaused) -> str:
    scope = " ".join(filter(None, (event.stage, event.model))) or "the run"
    return f"{'paused' if event.paused else 'went on'}: {scope}, by {event.by}"


_MARK_TEXTS: Mapping[type[Event], Callable[[Any], str]] = {
    RunStarted: lambda event: f"started, {event.job}",
    RunResumed: _taken_up,
    RunPaused: _pause_text,
    RunDrained: lambda event: f"ended with {event.open:,} open: {event.why}",
    RunCancelled: lambda event: f"cancelled by {event.by}",
    RunFinished: lambda _: "finished",
    TasksReopened: lambda event: f"{len(event.tasks):,} reopened, by {event.by}",
    CommandApplied: lambda event: event.effect,
    CommandRejected: lambda event: (
        f"{event.kind} of {event.author} refused: {event.reason}"
    ),
    ScoringRecorded: lambda event: f"scored, number {event.number}",
}
"""Texts of run events that are marked in charts."""
_TWICE = frozenset({"pause", "resume", "retry", "cancel"})
"""Commands whose effect is another event of the run, which names the author."""
KINDS = tuple(
    kind_of(kind) for kind in (*_MARK_TEXTS, CommandAccepted, AttemptsAbandoned)
)
"""Kinds of those events, and of others needed for charts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """The part of a run to chart, and its resolution."""

    minutes: int | None  #: the last minutes; None: all
    columns: int  #: maximum number
    model: str | None  #: None: all models together


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMark:
    """An event of the run itself."""

    at_us: int
    text: str  #: may contain untrusted names


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkedMinutes:
    """A range of minutes in which a process worked on the run."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryColumn:
    """Figures of consecutive minutes."""

    first: int  #: minutes since 1970 UTC
    lived: int  #: minutes with a live process; 0: a gap
    row: BucketRow | None  #: None: no events
    in_flight: int | None  #: calls in flight at its end; None: unknown
    limit: int | None  #: concurrency limit at its end


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """A part of a run, in columns."""

    width: int  #: minutes per column
    columns: tuple[HistoryColumn, ...]  #: all columns of the part, gaps included
    happenings: tuple[RunMark, ...]  #: ascending, the start of the run first
    is_whole: bool = True  #: False: the next read will find more limits

    @property
    def is_before_first_minute(self) -> bool:
        """Whether no whole minute has passed since the run started."""
        if not self.columns or not self.happenings:
            return True
        end = self.columns[-1].first + self.width
        return self.happenings[0].at_us >= end * US_PER_MINUTE


class HistorySource(Protocol):
    """Source of histories: a log, or a test's list."""

    async def read(self, ask: HistoryRequest) -> RunHistory:
        """Return a part of the run's history."""
        ...

    def close(self) -> None:
        """Close the log."""
        ...


def run_marks(recorded: Iterable[RecordedEvent]) -> tuple[RunMark, ...]:
    """Return the marks of events, each fact once."""
    accepted: dict[str, CommandAccepted] = {}
    marks = []
    for record in recorded:
        event = record.event
        if isinstance(event, CommandAccepted):
            accepted[event.command] = event
        if isinstance(event, UnknownEvent) or type(event) not in _MARK_TEXTS:
            continue
        by = ""
        if isinstance(event, CommandApplied) and event.command in accepted:
            if accepted[event.command].kind in _TWICE:
                continue
            by = f", by {accepted[event.command].author}"
        text = _MARK_TEXTS[type(event)](event)
        marks.append(RunMark(at_us=record.ts_us, text=text + by))
    return tuple(marks)


def worked_minutes(
    recorded: Sequence[RecordedEvent], lasts: dict[int, int], heartbeat_us: int | None
) -> tuple[WorkedMinutes, ...]:
    """Return when processes worked on the run: ascending, disjoint ranges.

    Args:
        recorded: its events of `KINDS`, ascending.
        lasts: time of the previous event, by the seq of a start: the only trace of the
            end of a killed process.
        heartbeat_us: the last heartbeat.
    """
    spans: list[list[int]] = []
    is_open = False
    for record in recorded:
        if isinstance(record.event, _BEGINNINGS):
            if is_open:
                spans[-1][1] = max(spans[-1][0], lasts.get(record.seq, 0))
            spans.append([record.ts_us, record.ts_us])
            is_open = True
        elif isinstance(record.event, _ENDS) and is_open:
            spans[-1][1] = record.ts_us
            is_open = False
    if is_open and heartbeat_us is not None:
        spans[-1][1] = max(spans[-1][1], heartbeat_us)
    worked: list[WorkedMinutes] = []
    for begin, end in spans:
        first, last = begin // US_PER_MINUTE, end // US_PER_MINUTE
        if worked and first <= worked[-1].last:
            first = worked[-1].last + 1
        if first <= last:
            worked.append(WorkedMinutes(first=first, last=last))
    return tuple(worked)


def width_for(minutes: int, columns: int) -> int:
    """Return the finest width with which *minutes* fit into the columns."""
    day = WIDTHS[-1]
    least = -(-minutes // max(1, columns))
    return next((width for width in WIDTHS if least <= width), -(-least // day) * day)


def whole_until(worked: Sequence[WorkedMinutes], now: int) -> int:
    """Return the first minute not to chart: the current one, or after the end."""
    return min(now, worked[-1].last + 1) if worked else now


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """The columns of a part of a run."""

    numbers: range  #: start of each, in widths since 1970
    width: int  #: minutes
    until: int  #: the first minute that is not charted

    @property
    def first(self) -> int:
        """The start minute of the first column."""
        return self.numbers.start * self.width


def extent(
    ask: HistoryRequest, worked: Sequence[WorkedMinutes], until: int
) -> ColumnRange:
    """Return the columns for a request.

    Args:
        ask: the request.
        worked: when processes worked on the run.
        until: the first minute that is not charted.
    """
    begin = worked[0].first if worked else until
    # a window that is longer than the run would be mostly blank
    since = (
        begin
        if ask.minutes is None
        else min(until - 1, max(begin, until - ask.minutes))
    )
    # partial columns at both ends need one more
    width = width_for(until - since, ask.columns - 1)
    numbers = range(since // width, (until - 1) // width + 1)
    return ColumnRange(numbers=numbers, width=width, until=until)


def lived(worked: Sequence[WorkedMinutes], first: int, until: int) -> int:
    """Count the minutes from *first* to before *until* with a live process."""
    return sum(
        max(0, min(span.last + 1, until) - max(span.first, first)) for span in worked
    )


def under_way(
    before: int, nets: Sequence[int], abandoned: Sequence[int], now: int
) -> list[int] | None:
    """Return calls in flight at the end of each column; None if inconsistent.

    An answer of the response cache completes a task without a call.

    Args:
        before: calls in flight at the start of the first column.
        nets: net change in each column.
        abandoned: abandoned calls in each column; the last figure is for the time after
            all of them.
        now: calls in flight now, after one more net change than there are columns.
    """
    level, levels = before, []
    for net, lost in zip(nets, abandoned, strict=True):
        level += net - lost
        levels.append(level)
    if level != now or min(levels) < 0:
        return None
    return levels[:-1]


def limits_at(
    seen: Sequence[ConcurrencyLimit], ends_us: Sequence[int], known_since_us: int
) -> list[int | None]:
    """Return the sum of all models' limits at some times, ascending.

    Args:
        seen: limits with their start times, ascending.
        ends_us: the times.
        known_since_us: start of the range that *seen* covers; earlier ones are unknown.
    """
    totals: list[int | None] = []
    latest: dict[str, int] = {}
    position = 0
    for end in ends_us:
        while position < len(seen) and seen[position].at_us < end:
            latest[seen[position].model] = seen[position].concurrency
            position += 1
        is_known = latest and end > known_since_us
        totals.append(sum(latest.values()) if is_known else None)
    return totals
