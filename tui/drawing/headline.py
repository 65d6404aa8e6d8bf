"""The job's headline metrics: what they are, how sure, of what, and how old."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from textual.content import Content

from tui.drawing.clip import one_line
from tui.drawing.format import UNKNOWN, count, duration
from tui.drawing.room import MUTED, Column, Room, table
from tui.sources.headline import HeadlineMetric, Reckoning

_INTERVAL = 17
_N = 9
_VALUE = 9
_MODEL = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The headline as far as it is known, at a moment."""

    reckoning: Reckoning
    now_s: float  #: by the clock of the reckoning


def headline(standing: Standing, room: Room) -> Content:
    """A line of what it is made of, and a table of metrics."""
    said = Content.styled(one_line(provenance(standing), room.width), MUTED)
    found = standing.reckoning.headline
    if found is None:
        return said
    if not found.metrics:
        return said + Content("\nThe job names no metric to look at first.")
    space = room.width - _VALUE - _INTERVAL - _N - _MODEL - 8
    interval = "interval" if found.level is None else f"{found.level:.0%} interval"
    columns = [
        Column("metric", max(12, space), is_right=False),
        Column("model", _MODEL, is_right=False),
        Column("value", _VALUE),
        Column(interval, _INTERVAL),
        Column("n", _N),
    ]
    if space < _MODEL and len({each.model for each in found.metrics}) == 1:
        del columns[1]
        columns[0] = Column("metric", max(12, space + _MODEL + 2), is_right=False)
    rows = [
        [_CELLS[c.head.split()[-1]](each) for c in columns] for each in found.metrics
    ]
    fits = max(1, room.height - 2)
    lines = [said, table(columns, rows[:fits], replace(room, height=fits + 1))]
    if len(rows) > fits:
        lines[1] = table(columns, rows[: fits - 1], replace(room, height=fits))
        more = f"and {len(rows) - fits + 1:,} more: siftlog score prints them all"
        lines.append(Content.styled(one_line(more, room.width), MUTED))
    return Content("\n").join(lines)


def provenance(standing: Standing) -> str:
    """Of how many tasks, up to which event, how old; or what stands in its way."""
    reckoning, parts = standing.reckoning, []
    found = reckoning.headline
    if found is not None and reckoning.known_s is not None:
        so_far = "so far, " if found.is_partial else ""
        age = duration(standing.now_s - reckoning.known_s)
        parts.append(
            f"{so_far}of {count(found.ended)} ended tasks, as of event "
            f"{count(found.seq)}, computed {age} ago"
        )
    if reckoning.is_busy and reckoning.began_s is not None:
        parts.append(f"computing for {duration(standing.now_s - reckoning.began_s)}")
    elif reckoning.failure:
        # first: where there is little room, it is what a person has to know
        parts.insert(0, f"not computed: {reckoning.failure}; r tries again")
    elif found is None:
        parts.append("not computed yet: r does")
    return " · ".join(parts)


def _figure(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,}" if value == int(value) and abs(value) > 1 else f"{value:.4f}"


def _interval(metric: HeadlineMetric) -> str:
    if metric.lo is None and metric.hi is None:
        return UNKNOWN
    return f"{_figure(metric.lo)}–{_figure(metric.hi)}"


_CELLS: Mapping[str, Callable[[HeadlineMetric], str]] = {
    "metric": lambda metric: metric.path,
    "model": lambda metric: metric.model,
    "value": lambda metric: _figure(metric.value),
    "interval": _interval,
    "n": lambda metric: count(metric.n),
}
