"""The charts of a run over time: what each shows of a column, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from textual.content import Content

from store.views import BucketRow
from tui.drawing.clip import one_line
from tui.drawing.format import amount, money
from tui.drawing.plot import Axis, plot
from tui.drawing.room import MUTED, Room
from tui.drawing.words import utc
from tui.sources.history import US_PER_MINUTE, Column, Happening, History

_S_PER_MINUTE = 60
_MINUTES_PER_HOUR = 60


@dataclass(frozen=True, kw_only=True)
class Course:
    """A run's history, and the column that is read off; None: the last one."""

    history: History
    cursor: int | None
    is_priced: bool  #: whether the price of every answer is known

    @property
    def column(self) -> Column | None:
        """The column that is read off."""
        columns = self.history.columns
        if not columns:
            return None
        return columns[-1 if self.cursor is None else self.cursor]

    @cached_property
    def flags(self) -> Mapping[int, list[Happening]]:
        """What happened to the run itself, by the position of its column."""
        found: dict[int, list[Happening]] = {}
        columns = self.history.columns
        for each in self.history.happenings if columns else ():
            minute = each.at_us // US_PER_MINUTE
            position = (minute - columns[0].first) // self.history.width
            if 0 <= position < len(columns):
                found.setdefault(position, []).append(each)
        return found

    def flag_beside(self, by: int) -> int | None:
        """The nearest column with one, later (1) or earlier (-1); None: no further."""
        here = len(self.history.columns) if self.cursor is None else self.cursor
        beside = [at for at in self.flags if (at - here) * by > 0]
        return min(beside, key=lambda at: abs(at - here), default=None)

    @cached_property
    def axis(self) -> Axis:
        """The columns as an axis."""
        return Axis(
            first=self.history.columns[0].first,
            width=self.history.width,
            count=len(self.history.columns),
            cursor=self.cursor,
            flagged=frozenset(self.flags),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One figure over time."""

    name: str
    title: str  #: with its unit
    value: Callable[[Column], float | None]  #: None: a gap, or not known
    figure: Callable[[float | None], str]
    ceiling: Callable[[Column], float | None] | None = None
    unit: str = ""  #: behind the figure, where it is read off
    lead: str = ""  #: before it

    def told(self, column: Column) -> str:
        """Its figure in a column, for a line of all figures."""
        value = self.figure(self.value(column))
        if self.ceiling is not None and (limit := self.ceiling(column)) is not None:
            value = f"{value} of {self.figure(limit)}"
        return f"{self.lead}{value}{self.unit}"


def _rate(of: Callable[[BucketRow], float]) -> Callable[[Column], float | None]:
    """What happened in a minute in which a process was at work, on average."""

    def rate(column: Column) -> float | None:
        if not column.lived:
            return None
        return of(column.row) / column.lived if column.row is not None else 0.0

    return rate


def _in_flight(column: Column) -> float | None:
    return column.in_flight if column.lived else None


def _limit(column: Column) -> float | None:
    return column.limit if column.lived else None


COST = "cost"
SERIES = (
    Series(
        name="goodput",
        title="tasks completed a minute",
        value=_rate(lambda row: row.succeeded),
        figure=amount,
        lead="done ",
        unit="/min",
    ),
    Series(
        name="retries",
        title="attempts retried a minute",
        value=_rate(lambda row: row.retried),
        figure=amount,
        lead="retried ",
        unit="/min",
    ),
    Series(
        name="tokens-in",
        title="input tokens a second",
        value=_rate(lambda row: row.tokens_in / _S_PER_MINUTE),
        figure=amount,
        lead="in ",
        unit="/s",
    ),
    Series(
        name="tokens-out",
        title="output tokens a second",
        value=_rate(lambda row: row.tokens_out / _S_PER_MINUTE),
        figure=amount,
        lead="out ",
        unit="/s",
    ),
    Series(
        name=COST,
        title="cost an hour, at this rate",
        value=_rate(lambda row: row.cost_usd * _MINUTES_PER_HOUR),
        figure=money,
        unit="/h",
    ),
    Series(
        name="in-flight",
        title="calls in flight; the line: how many may be",
        value=_in_flight,
        ceiling=_limit,
        figure=amount,
        lead="in flight ",
    ),
)
"""In the order that the eye goes through them: what comes out, in, and why not more."""


def chart(series: Series, course: Course, room: Room) -> Content:
    """A figure's course, or why there is none."""
    columns = course.history.columns
    values = [series.value(column) for column in columns]
    said = _emptiness(series, course, values)
    if said:
        return Content.styled(one_line(said, room.width * max(1, room.height)), MUTED)
    limit = series.ceiling
    ceiling = [] if limit is None else [limit(column) for column in columns]
    return plot(values, course.axis, room, series.figure, ceiling)


def _emptiness(series: Series, course: Course, values: Sequence[float | None]) -> str:
    history = course.history
    if history.is_before_first_minute:
        return "No whole minute is over yet: the charts begin with the first."
    if series.name == COST and not course.is_priced:
        return (
            "The price of an answer is unknown, so no cost an hour can be told: see "
            "'siftlog models'."
        )
    if all(value is None for value in values):
        if any(column.lived for column in history.columns):
            return (
                "Calls in flight cannot be told from the log where the response cache "
                "answered, or calls were ended: see the Run screen for those of now."
            )
        return "No process worked on the run in this window: z shows a longer one."
    return ""


def figures(course: Course, width: int) -> str:
    """All figures of the column that is read off, on a line."""
    column = course.column
    if column is None:
        return ""
    if not column.lived:
        return "no process worked on the run"
    told = [
        series.told(column) if series.name != COST or course.is_priced else "cost ?"
        for series in SERIES
    ]
    line = " · ".join(told)
    return line if len(line) <= width else "  ".join(told)


def moment(course: Course) -> str:
    """When that column was, and what happened to the run then, or last before."""
    column = course.column
    if column is None:
        return ""
    begin, end = (
        utc(minute * US_PER_MINUTE)
        for minute in (column.first, column.first + course.history.width)
    )
    same = "" if begin[:10] == end[:10] else end[:10] + " "
    when = f"{begin[:10]} {begin[11:16]}–{same}{end[11:16]} UTC"
    position = (
        len(course.history.columns) - 1 if course.cursor is None else course.cursor
    )
    here = course.flags.get(position, [])
    said = [f"{utc(each.at_us)[11:19]} {each.said}" for each in here]
    if not said:
        before = [at for at in course.flags if at < position]
        if before:
            each = course.flags[max(before)][-1]
            said = [f"last before: {utc(each.at_us)[11:19]} {each.said}"]
    return " · ".join([when, *said])
