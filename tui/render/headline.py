"""Renders the job's headline metrics: a row for each, or the models side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual.content import Content

from store.document import plural
from tui.render.format import UNKNOWN, count, duration
from tui.render.layout import (
    MUTED,
    PANEL_GAP,
    PanelColumn,
    Room,
    middle_cut,
    one_line,
    table_lines,
)
from tui.render.models import short_names
from tui.sources.headline import HeadlineProgress
from tui.sources.result import Headline, HeadlineMetric

_METRIC, _SIDE_VALUE, _LABEL_CELLS = 12, 22, 20
"""Minimum width of a metric's name, maximum width of a value with its interval, and
cells of a name that more models side by side may leave."""
_LEAST_ITEMS = 30
"""Items below which a metric says too little about another sample."""
_INTERVAL = 17
_N = 7
_VALUE = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineState:
    """The headline metrics as far as known, at a time."""

    reckoning: HeadlineProgress
    now_s: float  #: by the clock of the computation


def headline(headline_state: HeadlineState, room: Room) -> Content:
    """Draw a line about the source, and a table of metrics."""
    # a table leaves a blank cell at its left, where others have a cursor
    room = replace(room, width=room.width - 1)
    source_line = _aside(provenance(headline_state), room)
    scores = headline_state.reckoning.headline
    if scores is None:
        return source_line
    if not scores.metrics:
        return source_line + Content("\n The job has no headline metric.")
    columns = _columns(scores, room.width)
    cells = _CELLS[: len(columns)]
    rows = [[cell(metric) for cell in cells] for metric in scores.metrics]
    fits = max(1, room.height - 2)
    lines = [
        source_line,
        table_lines(columns, rows[:fits], replace(room, height=fits + 1)),
    ]
    if len(rows) > fits:
        lines[1] = table_lines(columns, rows[: fits - 1], replace(room, height=fits))
        more = f"and {len(rows) - fits + 1:,} more: siftlog score prints them all"
        lines.append(_aside(more, room))
    return Content("\n").join(lines)


def headline_by_model(headline_state: HeadlineState, room: Room) -> Content:
    """Draw a line about the source, and the metrics with the models side by side."""
    inner = replace(room, width=room.width - 1, height=room.height - 1)
    source = provenance(headline_state, "m, then r").removeprefix("so far, ")
    source_line = _aside(source, inner)
    scores = headline_state.reckoning.headline
    if scores is None or not scores.metrics:
        return source_line
    lines = headline_table(scores, inner)
    return Content("\n").join([source_line, *(Content(" ") + line for line in lines)])


def _aside(words: str, room: Room) -> Content:
    return Content.styled(f" {one_line(words, room.width)}", MUTED)


def _columns(scores: Headline, width: int) -> list[PanelColumn]:
    """Return columns; names get what they need, or share the space if scarce."""
    interval = "interval" if scores.level is None else f"{scores.level:.0%} interval"
    figures = [
        PanelColumn("value", _VALUE),
        PanelColumn(interval, _INTERVAL),
        PanelColumn("n", _N),
    ]
    space = (
        width
        - sum(column.width + len(PANEL_GAP) for column in figures)
        - len(PANEL_GAP)
    )
    names, models, keys = (
        max(cell_len(cell(metric)) for metric in scores.metrics)
        for cell in (_CELLS[0], _CELLS[1], _CELLS[-1])
    )
    model = max(len("model"), min(models, max(space - names, space // 2)))
    metric = max(len("metric"), min(names, space - model))
    columns = [
        PanelColumn("metric", metric, is_right=False),
        PanelColumn("model", model, is_right=False),
        *figures,
    ]
    # keys come last, if they fit
    is_named = any(metric.name for metric in scores.metrics)
    if is_named and space - metric - model >= keys + len(PANEL_GAP):
        columns.append(PanelColumn("key", keys, is_right=False))
    return columns


def provenance(headline_state: HeadlineState, key: str = "r") -> str:
    """Describe tasks, last event and age; or what prevents the computation.

    Args:
        headline_state: the metrics.
        key: computes them now.
    """
    reckoning, parts = headline_state.reckoning, []
    scores = reckoning.headline
    if scores is not None and reckoning.received_s is not None:
        so_far = "so far, " if scores.is_partial else ""
        age = duration(headline_state.now_s - reckoning.received_s)
        source = (
            f"as of event {count(scores.seq)}, computed {age} ago"
            if scores.seq
            else "of the newest scoring"
        )
        parts.append(f"{so_far}of {count(scores.ended)} done tasks, {source}")
    if reckoning.is_busy and reckoning.began_s is not None:
        parts.append(
            f"computing for {duration(headline_state.now_s - reckoning.began_s)}"
        )
    elif reckoning.failure:
        # first, because it matters most if space is scarce
        parts.insert(0, f"not computed: {reckoning.failure}; {key} tries again")
    elif scores is None:
        parts.append(f"not computed yet: {key} does")
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


@dataclass(frozen=True, slots=True)
class _Side:
    """One model of a table with a column for each."""

    model: str
    name: str


def headline_table(scores: Headline, room: Room) -> list[Content]:
    """Draw the metrics with the models side by side, or as many as fit."""
    names = short_names(metric.model for metric in scores.metrics)
    by_path: dict[str, dict[str, HeadlineMetric]] = {}
    for metric in scores.metrics:
        by_path.setdefault(metric.path, {})[metric.model] = metric
    labels = {
        path: next(iter(row.values())).name or path for path, row in by_path.items()
    }
    level = _level(scores)
    titles = [cell_len(name) for name in names.values()]
    texts = [cell_len(_value(metric)) for metric in scores.metrics]
    value = min(_SIDE_VALUE, max(titles + texts))
    longest = max(len("metric" + level), *map(cell_len, labels.values()))
    label = max(_METRIC, min(longest, _LABEL_CELLS))
    fits = max(1, (room.width - label - 9) // (value + 2))
    few = _notes(scores)
    if fits < len(names) and len(scores.metrics) + len(few) < room.height:
        return [*_rows_by_model(scores, labels, names, room), *few]
    sides = [_Side(model, name) for model, name in names.items()][:fits]
    space = room.width - (value + 2) * len(sides) - 9
    columns = [
        PanelColumn(
            "metric" + level, max(_METRIC, min(longest, space)), is_right=False
        ),
        *(PanelColumn(middle_cut(side.name, value).strip(), value) for side in sides),
        PanelColumn("n", _N),
    ]
    rows: list[list[str | Content]] = []
    for path, row in by_path.items():
        cells = [
            _value(row[side.model]) if side.model in row else UNKNOWN for side in sides
        ]
        rows.append([labels[path], *cells, _counts(list(row.values()))])
    notes = [*few, *_left_out(len(names) - len(sides))]
    flat = replace(
        room, has_lead=False, cursor=None, height=max(2, room.height - len(notes))
    )
    return [*table_lines(columns, rows, flat).split("\n"), *notes]


def _rows_by_model(
    scores: Headline, labels: Mapping[str, str], names: Mapping[str, str], room: Room
) -> list[Content]:
    """Draw a row for each metric and model, where columns for all do not fit."""
    longest = max(len("metric"), *map(cell_len, labels.values()))
    model = max(len("model"), *map(cell_len, names.values()))
    space = room.width - _SIDE_VALUE - 7 - 6
    label = max(_METRIC, min(longest, space - min(model, space // 3)))
    columns = [
        PanelColumn("metric", label, is_right=False),
        PanelColumn("model", max(5, min(model, space - label)), is_right=False),
        PanelColumn("value" + _level(scores), _SIDE_VALUE),
        PanelColumn("n", _N),
    ]
    rows, before = [], ""
    for metric in scores.metrics:
        name = "" if metric.path == before else labels[metric.path]
        before = metric.path
        rows.append([name, names[metric.model], _value(metric), count(metric.n)])
    flat = replace(room, has_lead=False, cursor=None)
    return list(table_lines(columns, rows, flat).split("\n"))


def _level(scores: Headline) -> str:
    if scores.level is None:
        return ""
    return f" [{scores.level:.0%}]".replace("%", " %")


def _notes(scores: Headline) -> list[Content]:
    """Say that there are too few items, if so."""
    few = min((metric.n for metric in scores.metrics), default=0)
    if few >= _LEAST_ITEMS:
        return []
    return [
        Content.styled(f"too few for conclusions: the smallest n is {few:,}", MUTED)
    ]


def _left_out(models: int) -> list[Content]:
    if not models:
        return []
    more = f"and {plural(models, 'more model')}: see the report"
    return [Content.styled(more, MUTED)]


def _value(metric: HeadlineMetric) -> str:
    if metric.value is None:
        return UNKNOWN
    value = _number(metric.value)
    if metric.lo is None or metric.hi is None:
        return value
    return f"{value} [{metric.lo:.2f}, {metric.hi:.2f}]"


def _number(value: float) -> str:
    is_count = value == int(value) and abs(value) > 1
    return f"{value:,.0f}" if is_count else f"{value:.3f}"


def _counts(metrics: Sequence[HeadlineMetric]) -> str:
    low, high = min(m.n for m in metrics), max(m.n for m in metrics)
    return count(low) if low == high else f"{low:,}-{high:,}"
