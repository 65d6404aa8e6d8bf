"""Renders a run over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from textual.content import Content

from store.read.history import BucketRow
from tui.render.charts import PlotAxis, plot
from tui.render.format import amount, money, utc
from tui.render.layout import MUTED, Room, one_line
from tui.sources.history import US_PER_MINUTE, HistoryColumn, RunHistory, RunMark

_S_PER_MINUTE = 60
_MINUTES_PER_HOUR = 60


@dataclass(frozen=True, kw_only=True)
class ChartedHistory:
    """A run's history, and the selected column; None: the last one."""

    history: RunHistory
    cursor: int | None
    is_priced: bool  #: whether all prices are known

    @property
    def column(self) -> HistoryColumn | None:
        """The selected column."""
        columns = self.history.columns
        if not columns:
            return None
        return columns[-1 if self.cursor is None else self.cursor]

    @cached_property
    def flags(self) -> Mapping[int, list[RunMark]]:
        """Events of the run by the position of their column."""
        marks: dict[int, list[RunMark]] = {}
        columns = self.history.columns
        for mark in self.history.happenings if columns else ():
            minute = mark.at_us // US_PER_MINUTE
            position = (minute - columns[0].first) // self.history.width
            if 0 <= position < len(columns):
                marks.setdefault(position, []).append(mark)
        return marks

    def nearest_flag(self, by: int) -> int | None:
        """Return the nearest flagged column, later (1) or earlier (-1); None: none."""
        here = len(self.history.columns) if self.cursor is None else self.cursor
        candidates = [at for at in self.flags if (at - here) * by > 0]
        return min(candidates, key=lambda at: abs(at - here), default=None)

    @cached_property
    def axis(self) -> PlotAxis:
        """The columns as an axis."""
        return PlotAxis(
            first=self.history.columns[0].first * _S_PER_MINUTE,
            width=self.history.width * _S_PER_MINUTE,
            count=len(self.history.columns),
            cursor=self.cursor,
            flagged=frozenset(self.flags),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One figure over time."""

    name: str
    title: str  #: title with unit
    value: Callable[[HistoryColumn], float | None]  #: None: a gap, or unknown
    figure: Callable[[float | None], str]
    ceiling: Callable[[HistoryColumn], float | None] | None = None
    unit: str = ""  #: after the selected figure
    lead: str = ""  #: before the selected figure

    def labelled_value(self, column: HistoryColumn) -> str:
        """Format its figure in a column, for the line of all figures."""
        value = self.figure(self.value(column))
        if self.ceiling is not None and (limit := self.ceiling(column)) is not None:
            value = f"{value}/{self.figure(limit)}"
        return f"{self.lead}{value}{self.unit}"


def _rate(of: Callable[[BucketRow], float]) -> Callable[[HistoryColumn], float | None]:
    """Return a function for the mean per minute in which a process was alive."""

    def rate(column: HistoryColumn) -> float | None:
        if not column.lived:
            return None
        return of(column.row) / column.lived if column.row is not None else 0.0

    return rate


def _in_flight(column: HistoryColumn) -> float | None:
    return column.in_flight if column.lived else None


def _limit(column: HistoryColumn) -> float | None:
    return column.limit if column.lived else None


COST = "cost"
_TOKENS = "tokens "
"""Begins the figure of input tokens, and of output tokens after it, if it fits."""
SERIES = (
    Series(
        name="rate",
        title="tasks completed per minute",
        value=_rate(lambda row: row.succeeded),
        figure=amount,
        lead="rate ",
        unit="/min",
    ),
    Series(
        name="retries",
        title="attempts retried per minute",
        value=_rate(lambda row: row.retried),
        figure=amount,
        lead="retried ",
        unit="/min",
    ),
    Series(
        name="tokens-in",
        title="input tokens per second",
        value=_rate(lambda row: row.tokens_in / _S_PER_MINUTE),
        figure=amount,
        lead=f"{_TOKENS}in ",
        unit="/s",
    ),
    Series(
        name="tokens-out",
        title="output tokens per second",
        value=_rate(lambda row: row.tokens_out / _S_PER_MINUTE),
        figure=amount,
        lead="out ",
        unit="/s",
    ),
    Series(
        name=COST,
        title="cost per hour",
        value=_rate(lambda row: row.cost_usd * _MINUTES_PER_HOUR),
        figure=money,
        unit="/h",
    ),
    Series(
        name="in-flight",
        title="in flight; line: limit",
        value=_in_flight,
        ceiling=_limit,
        figure=amount,
        lead="in flight ",
    ),
)
"""In reading order: output, input, and bottlenecks."""


def chart(series: Series, charted: ChartedHistory, room: Room) -> Content:
    """Draw a figure over time, or explain why there is none."""
    columns = charted.history.columns
    values = [series.value(column) for column in columns]
    reason = _emptiness(series, charted, values)
    if reason:
        return Content.styled(one_line(reason, room.width * max(1, room.height)), MUTED)
    limit = series.ceiling
    ceiling = [] if limit is None else [limit(column) for column in columns]
    return plot(values, charted.axis, room, series.figure, ceiling)


def _emptiness(
    series: Series, charted: ChartedHistory, values: Sequence[float | None]
) -> str:
    history = charted.history
    if history.is_before_first_minute:
        return "The charts start after the first full minute."
    if series.name == COST and not charted.is_priced:
        return "A price is unknown, so there is no cost per hour: see 'siftlog models'."
    if all(value is None for value in values):
        if any(column.lived for column in history.columns):
            return (
                "Calls in flight are unknown if the response cache "
                "answered or calls were aborted: see the Run screen for "
                "current ones."
            )
        return "No process worked on the run in this window: z shows a longer one."
    return ""


def figures(charted: ChartedHistory, width: int) -> str:
    """Describe all figures of the selected column on a line."""
    column = charted.column
    if column is None:
        return ""
    if not column.lived:
        return "no process worked on the run"
    values = [
        series.labelled_value(column)
        if series.name != COST or charted.is_priced
        else "cost ?"
        for series in SERIES
    ]
    line = " · ".join(values)
    if len(line) <= width:
        return line
    line = "  ".join(values)
    return line if len(line) <= width else line.replace(_TOKENS, "", 1)


def column_caption(charted: ChartedHistory) -> str:
    """Describe the time of that column, and the last event up to it."""
    column = charted.column
    if column is None:
        return ""
    begin, end = (
        utc(minute * US_PER_MINUTE)
        for minute in (column.first, column.first + charted.history.width)
    )
    same = "" if begin[:10] == end[:10] else end[:10] + " "
    when = f"{begin[:10]} {begin[11:16]}–{same}{end[11:16]} UTC"
    position = (
        len(charted.history.columns) - 1 if charted.cursor is None else charted.cursor
    )
    here = charted.flags.get(position, [])
    marks = [f"{utc(mark.at_us)[11:19]} {mark.text}" for mark in here]
    if not marks:
        before = [at for at in charted.flags if at < position]
        if before:
            mark = charted.flags[max(before)][-1]
            marks = [f"last before: {utc(mark.at_us)[11:19]} {mark.text}"]
    return " · ".join([when, *marks])
