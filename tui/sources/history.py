"""How a run went over time, as a chart takes it: columns of some whole minutes each.

All that happened is in a column; none is sampled. A minute in which no process worked
on the run is no column of zeros but a gap. The minute that is not over is left out:
every figure would seem to fall in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
"""Minutes that a column may have: its edges lie on the clock's, and stay there."""

_BEGINNINGS = (RunStarted, RunResumed)
_ENDS = (RunDrained, RunCancelled, RunFinished)


def _taken_up(event: RunResumed) -> str:
    lost = f", {event.unknown:,} calls without outcome" if event.unknown else ""
    return f"taken up again{lost}"


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
    TasksReopened: lambda event: f"{len(event.tasks):,} asked again, by {event.by}",
    CommandApplied: lambda event: event.effect,
    CommandRejected: lambda event: (
        f"{event.kind} of {event.author} refused: {event.reason}"
    ),
    ScoringRecorded: lambda event: f"scored, number {event.number}",
}
"""Events of the run itself that its charts are marked with, in words."""
_TWICE = frozenset({"pause", "resume", "retry", "cancel"})
"""Commands whose effect is another event of the run, which says who."""
KINDS = tuple(
    kind_of(kind) for kind in (*_MARK_TEXTS, CommandAccepted, AttemptsAbandoned)
)
"""They, and what else its charts are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """Which part of a run is to be charted, and how finely."""

    minutes: int | None  #: the last so many; None: all
    columns: int  #: at most
    model: str | None  #: None: all models together


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMark:
    """Something that happened to the run itself."""

    at_us: int
    text: str  #: may hold names from outside


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkedMinutes:
    """Minutes in which a process worked on the run."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryColumn:
    """What happened in some minutes on end."""

    first: int  #: minutes since 1970 UTC
    lived: int  #: minutes of it with a process at work; 0: a gap
    row: BucketRow | None  #: None: nothing happened
    in_flight: int | None  #: calls under way at its end; None: not to be told
    limit: int | None  #: calls at a time that were allowed at its end


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """A part of a run, in columns."""

    width: int  #: minutes a column
    columns: tuple[HistoryColumn, ...]  #: all of the part, gaps included
    happenings: tuple[RunMark, ...]  #: ascending, the run's beginning first
    is_whole: bool = True  #: False: more limits will be known at the next reading

    @property
    def is_before_first_minute(self) -> bool:
        """Whether no whole minute has passed since the run began."""
        if not self.columns or not self.happenings:
            return True
        end = self.columns[-1].first + self.width
        return self.happenings[0].at_us >= end * US_PER_MINUTE


class HistorySource(Protocol):
    """Where histories come from: a log, or a test's list."""

    async def read(self, ask: HistoryRequest) -> RunHistory:
        """A part of the run as it is now."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...


def run_marks(recorded: Iterable[RecordedEvent]) -> tuple[RunMark, ...]:
    """The marks that events leave, each fact once."""
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
    """When processes worked on the run: ascending, no minute in two of them.

    Args:
        recorded: its events of `KINDS`, ascending.
        lasts: when the event before was recorded, by the seq of a beginning: a process
            that was killed says no more than that of its end.
        heartbeat_us: the last sign of life.
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
    """The finest width with which *minutes* fit into so many columns."""
    day = WIDTHS[-1]
    least = -(-minutes // max(1, columns))
    return next((width for width in WIDTHS if least <= width), -(-least // day) * day)


def whole_until(worked: Sequence[WorkedMinutes], now: int) -> int:
    """The first minute that is not charted: the present one, or one after the end."""
    return min(now, worked[-1].last + 1) if worked else now


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """Which columns a part of a run has."""

    numbers: range  #: they begin at so many widths after 1970
    width: int  #: minutes
    until: int  #: the first minute that is not charted

    @property
    def first(self) -> int:
        """The minute that the first of them begins with."""
        return self.numbers.start * self.width


def extent(
    ask: HistoryRequest, worked: Sequence[WorkedMinutes], until: int
) -> ColumnRange:
    """The columns that show what is asked for.

    Args:
        ask: what is to be charted.
        worked: when processes worked on the run.
        until: the first minute that is not charted.
    """
    begin = worked[0].first if worked else until
    since = begin if ask.minutes is None else until - ask.minutes
    # a column that both ends cut is one more
    width = width_for(until - since, ask.columns - 1)
    numbers = range(since // width, (until - 1) // width + 1)
    return ColumnRange(numbers=numbers, width=width, until=until)


def lived(worked: Sequence[WorkedMinutes], first: int, until: int) -> int:
    """In how many of the minutes from *first* to before *until* a process worked."""
    return sum(
        max(0, min(span.last + 1, until) - max(span.first, first)) for span in worked
    )


def under_way(
    before: int, nets: Sequence[int], abandoned: Sequence[int], now: int
) -> list[int] | None:
    """Calls under way at the end of each column; None where the books do not balance.

    An answer of the response cache completes a task that no call was made for.

    Args:
        before: calls under way when the first column began.
        nets: by how many calls more there were at the end of each.
        abandoned: calls that nobody waits for any more, of each column; the last
            figure is of what came after all of them.
        now: calls under way now, after one more net figure than there are columns.
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
    """The sum of all models' limits at each of some moments, ascending.

    Args:
        seen: limits with the moments from which on they held, ascending.
        ends_us: the moments.
        known_since_us: since when *seen* has all limits; earlier ones are unknown.
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
