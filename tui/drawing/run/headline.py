"""The job's headline metrics: what they are, how sure, of what, and how old."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual.content import Content

from tui.drawing.clip import one_line
from tui.drawing.format import UNKNOWN, count, duration
from tui.drawing.room import GAP, MUTED, Column, Room, table
from tui.sources.headline import Headline, HeadlineMetric, Reckoning

_INTERVAL = 17
_N = 7
_VALUE = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The headline as far as it is known, at a moment."""

    reckoning: Reckoning
    now_s: float  #: by the clock of the reckoning


def headline(standing: Standing, room: Room) -> Content:
    """A line of what it is made of, and a table of metrics."""
    # a table leaves a cell free at its left, where others have a cursor
    room = replace(room, width=room.width - 1)
    said = _aside(provenance(standing), room)
    found = standing.reckoning.headline
    if found is None:
        return said
    if not found.metrics:
        return said + Content("\n The job names no metric to look at first.")
    columns = _columns(found, room.width)
    cells = _CELLS[: len(columns)]
    rows = [[cell(each) for cell in cells] for each in found.metrics]
    fits = max(1, room.height - 2)
    lines = [said, table(columns, rows[:fits], replace(room, height=fits + 1))]
    if len(rows) > fits:
        lines[1] = table(columns, rows[: fits - 1], replace(room, height=fits))
        more = f"and {len(rows) - fits + 1:,} more: siftlog score prints them all"
        lines.append(_aside(more, room))
    return Content("\n").join(lines)


def _aside(words: str, room: Room) -> Content:
    return Content.styled(f" {one_line(words, room.width)}", MUTED)


def _columns(found: Headline, width: int) -> list[Column]:
    """Names take what they need, and share what there is once that is too little."""
    interval = "interval" if found.level is None else f"{found.level:.0%} interval"
    figures = [
        Column("value", _VALUE),
        Column(interval, _INTERVAL),
        Column("n", _N),
    ]
    space = width - sum(column.width + len(GAP) for column in figures) - len(GAP)
    names, models, keys = (
        max(cell_len(cell(each)) for each in found.metrics)
        for cell in (_CELLS[0], _CELLS[1], _CELLS[-1])
    )
    model = max(len("model"), min(models, max(space - names, space // 2)))
    metric = max(len("metric"), min(names, space - model))
    columns = [
        Column("metric", metric, is_right=False),
        Column("model", model, is_right=False),
        *figures,
    ]
    # keys stand behind all else, where they fit
    is_named = any(each.name for each in found.metrics)
    if is_named and space - metric - model >= keys + len(GAP):
        columns.append(Column("key", keys, is_right=False))
    return columns


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


_CELLS: Sequence[Callable[[HeadlineMetric], str]] = (
    lambda metric: metric.name or metric.path,
    lambda metric: metric.model,
    lambda metric: _figure(metric.value),
    _interval,
    lambda metric: count(metric.n),
    lambda metric: metric.path,
)
