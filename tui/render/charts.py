"""Draws charts as lines of text: bars, sparklines, curves with axes.

Pure. Times are whole seconds since 1970 and are shown in UTC; an unknown value leaves a
gap, unlike a value of zero.

Linear in the cells drawn: more values than columns are first combined into buckets
(`bucketed`), so a chart always shows all data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

from textual.content import Content

from tui.render.glyphs import Glyphs
from tui.render.layout import LEAD, MUTED, Room

#: Bits of a braille cell's two columns of dots, filled from none to all four.
_LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
_BRAILLE = 0x2800
_ROWS = 4


def bucketed(values: Sequence[float | None], count: int) -> list[float | None]:
    """Return the maximum of *values* in each of at most *count* equal buckets.

    Unknown values are ignored; a bucket with no others is unknown.
    """
    size = len(values)
    if size <= count:
        return list(values)
    edges = [size * number // count for number in range(count + 1)]
    buckets: list[float | None] = []
    for first, last in pairwise(edges):
        known = [value for value in values[first:last] if value is not None]
        buckets.append(max(known, default=None))
    return buckets


def bar(fraction: float, width: int, glyphs: Glyphs, mark: float | None = None) -> str:
    """Return a bar of *width* cells, filled to *fraction*, with an optional *mark*.

    A nonzero fraction is always visible, and only 1 looks full.
    """
    if width < 1:
        return ""
    steps = len(glyphs.eighths) + 1
    filled = round(min(1.0, max(0.0, fraction)) * width * steps)
    if fraction > 0:
        filled = max(1, filled)
    if fraction < 1:
        filled = min(width * steps - 1, filled)
    whole, part = divmod(max(0, filled), steps)
    cells = [glyphs.full] * whole
    if part and whole < width:
        cells.append(glyphs.eighths[part - 1])
    cells += [glyphs.blank] * (width - len(cells))
    if mark is not None:
        cells[min(width - 1, max(0, int(mark * width)))] = glyphs.mark
    return "".join(cells)


def sparkline(
    values: Sequence[float | None],
    width: int,
    glyphs: Glyphs,
    top: float | None = None,
) -> str:
    """Return one line of *width* cells, right-aligned; unknown values are blank.

    Args:
        values: ascending in time; more than *width* are combined.
        width: cells.
        glyphs: the characters to draw with.
        top: the value of a full cell; None: the maximum of *values*.
    """
    buckets = bucketed(values, width)
    highest = _top(buckets, top)
    line = "".join(_level(value, highest, glyphs.levels) for value in buckets)
    return line.rjust(width)


def _top(values: Sequence[float | None], top: float | None) -> float:
    known = [value for value in values if value is not None]
    return max(known, default=0.0) if top is None else top


def _level(value: float | None, top: float, levels: str) -> str:
    if value is None:
        return " "
    if value <= 0 or top <= 0:
        return levels[1]  # known to be zero, unlike unknown
    return levels[max(1, min(len(levels) - 1, round(value / top * (len(levels) - 1))))]


def curve(
    values: Sequence[float | None],
    width: int,
    height: int,
    glyphs: Glyphs,
    top: float | None = None,
) -> list[str]:
    """Return *height* lines of *width* cells: a filled curve, two values per cell.

    Without braille a cell shows one value in the available levels.
    """
    if not glyphs.has_braille:
        return _steps(values, width, height, glyphs, top)
    buckets = bucketed(values, 2 * width)
    highest = _top(buckets, top)
    heights = [_dots(value, highest, height * _ROWS) for value in buckets]
    heights = [0] * (2 * width - len(heights)) + heights
    return [_braille_line(heights, row) for row in reversed(range(height))]


def _dots(value: float | None, top: float, dots: int) -> int:
    """Return the height of a column; a known zero has one dot."""
    if value is None:
        return 0
    return max(1, min(dots, round(value / top * dots))) if top > 0 else 1


def _braille_line(heights: Sequence[int], row: int) -> str:
    ground = row * _ROWS
    filled = [max(0, min(_ROWS, n - ground)) for n in heights]
    pairs = zip(filled[::2], filled[1::2], strict=True)
    # not every terminal shows the braille blank as a blank, nor do copies
    return "".join(
        chr(_BRAILLE + _LEFT[left] + _RIGHT[right]) if left or right else " "
        for left, right in pairs
    )


def _steps(
    values: Sequence[float | None],
    width: int,
    height: int,
    glyphs: Glyphs,
    top: float | None,
) -> list[str]:
    buckets = bucketed(values, width)
    highest = _top(buckets, top)
    steps = len(glyphs.levels) - 1
    heights = [_dots(value, highest, height * steps) for value in buckets]
    heights = [0] * (width - len(heights)) + heights
    return [
        "".join(glyphs.levels[max(0, min(steps, n - row * steps))] for n in heights)
        for row in reversed(range(height))
    ]


LABEL = 8
"""Width of the labels at the left, with a blank after them."""
_LOW = 6
"""Height of a plot below which times are written into the axis line."""
_HALF_FROM = 5
"""Height of a curve from which its middle is labelled too."""
_STEPS = (1, 2, 3, 5)
_MINUTE = 60
_DAY = 1440 * _MINUTE
_TICKS = (
    *(5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(_DAY, 2 * _DAY, 7 * _DAY),
)
"""Possible seconds between two labelled times; round on the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotAxis:
    """The time axis of a plot, from left to right."""

    first: int  #: start of the first value, seconds since 1970 UTC
    width: int  #: seconds per value
    count: int  #: number of values
    cursor: int | None = None  #: the selected value
    flagged: frozenset[int] = frozenset()  #: values with events


def columns_in(width: int, glyphs: Glyphs) -> int:
    """Return the number of values that a plot of that many cells can show."""
    return max(1, width - LABEL) * _in_cell(glyphs)


def nice_top(highest: float) -> float:
    """Return a round upper end of a scale, which rarely changes as values do.

    >>> nice_top(4105), nice_top(0.21), nice_top(3), nice_top(0)
    (5000.0, 0.3, 3.0, 1.0)
    """
    if highest <= 0:
        return 1.0
    power = math.floor(math.log10(highest))
    # parsed from text, because negative powers of ten are not exact floats
    steps = [float(f"{step}e{power}") for step in _STEPS] + [float(f"1e{power + 1}")]
    return next(step for step in steps if step >= highest or step == steps[-1])


def plot(
    values: Sequence[float | None],
    axis: PlotAxis,
    room: Room,
    figure: Callable[[float], str],
    ceiling: Sequence[float | None] = (),
) -> Content:
    """Draw a curve that fills a room, its scale at the left and its times below.

    Args:
        values: one per column of the axis; None: a gap.
        axis: the times.
        room: at least two lines, and some cells more than the labels need.
        figure: formats a value.
        ceiling: upper limits of the values, drawn as a line; empty: none.
    """
    return _plot(tuple(values), axis, room, figure, tuple(ceiling))


# between two steps of a course every refresh draws the same
@lru_cache(maxsize=64)
def _plot(
    values: tuple[float | None, ...],
    axis: PlotAxis,
    room: Room,
    figure: Callable[[float], str],
    ceiling: tuple[float | None, ...],
) -> Content:
    cells = max(1, room.width - LABEL)
    is_low = room.height < _LOW
    height = max(1, room.height - (1 if is_low else 2))
    top = nice_top(max((v for v in (*values, *ceiling) if v is not None), default=0))
    columns = _CurveColumns(count=axis.count, capacity=cells * _in_cell(room.glyphs))
    lines = curve(columns.spread(values), cells, height, room.glyphs, top)
    if ceiling:
        lines = _with_ceiling(lines, columns.spread(ceiling), top, room.glyphs)
    cursor = None
    if axis.cursor is not None:
        cursor = columns.middle(axis.cursor) // _in_cell(room.glyphs)
    labels = {height - 1: "0", 0: figure(top)}
    if height >= _HALF_FROM and height % 2:
        labels[height // 2] = figure(top / 2)
    lead = " " * (LEAD if room.has_lead else 0)
    rows = [
        _row(lead, labels.get(number, ""), line, cursor, room.glyphs)
        for number, line in enumerate(lines)
    ]
    flags = {columns.middle(number) // _in_cell(room.glyphs) for number in axis.flagged}
    taken = flags if is_low else set()
    rule, words = _times(axis, columns, cells, room.glyphs, taken)
    below = [
        _axis_rule(_inscribed(rule, words) if is_low else rule, flags, cursor, room)
    ]
    if not is_low:
        below.append(Content.styled(lead + " " * LABEL + words, MUTED))
    return Content("\n").join([*rows, *below])


def _in_cell(glyphs: Glyphs) -> int:
    return 2 if glyphs.has_braille else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _CurveColumns:
    """Maps values to columns of a curve, using the whole width."""

    count: int
    capacity: int

    def left(self, number: int) -> int:
        """Return the first column of a value."""
        return -(-number * self.capacity // self.count)

    def middle(self, number: int) -> int:
        """Return the column that represents a value."""
        first = self.left(number)
        last = max(first, self.left(number + 1) - 1)
        # with more values than columns the last one starts beyond them
        return min(self.capacity - 1, (first + last) // 2)

    def spread(self, values: Sequence[float | None]) -> list[float | None]:
        """Return a value per column; `curve` combines values if columns are few."""
        if self.count > self.capacity:
            return list(values)
        columns = range(self.capacity)
        return [values[at * self.count // self.capacity] for at in columns]


def _with_ceiling(
    lines: list[str], ceiling: Sequence[float | None], top: float, glyphs: Glyphs
) -> list[str]:
    """Draw the ceiling as a line, behind the curve."""
    width, height, per_cell = len(lines[0]), len(lines), _in_cell(glyphs)
    cells = [list(line) for line in lines]
    ends = bucketed(ceiling, per_cell * width)[::-1][::per_cell]
    for back, value in enumerate(ends, start=1):
        if value is not None:
            row = (
                height
                - 1
                - min(height - 1, max(0, math.ceil(value / top * height) - 1))
            )
            if cells[row][-back] == " ":
                cells[row][-back] = glyphs.rule
    return ["".join(line) for line in cells]


def _row(
    lead: str, label: str, line: str, cursor: int | None, glyphs: Glyphs
) -> Content:
    left = Content.styled(f"{lead}{label[: LABEL - 1]:>{LABEL - 1}} ", MUTED)
    if cursor is None:
        return left + _styled_line(line, glyphs)
    is_free = line[cursor] in {" ", glyphs.rule}
    style = "$state-running bold" if is_free else "$state-running bold reverse"
    return Content.assemble(
        left,
        _styled_line(line[:cursor], glyphs),
        (glyphs.mark if is_free else line[cursor], style),
        _styled_line(line[cursor + 1 :], glyphs),
    )


def _styled_line(line: str, glyphs: Glyphs) -> Content:
    """Style a line of a curve; the ceiling has another colour."""
    content = Content.styled(line, "$state-done")
    begin = line.find(glyphs.rule)
    while begin >= 0:
        rest = line[begin:]
        end = begin + len(rest) - len(rest.lstrip(glyphs.rule))
        content = content.stylize("$state-waiting", begin, end)
        begin = line.find(glyphs.rule, end)
    return content


def _times(
    axis: PlotAxis,
    columns: _CurveColumns,
    cells: int,
    glyphs: Glyphs,
    taken: AbstractSet[int],
) -> tuple[str, str]:
    """Return the line under a curve, and its times where cells are free."""
    rule, words = [glyphs.rule] * cells, [" "] * cells
    free = 0
    ticks = _ticks(axis, cells)
    for second in ticks:
        at = columns.left((second - axis.first) // axis.width) // _in_cell(glyphs)
        word = _clock(second, axis, ticks.step)
        end = at + len(word) + 1
        if free <= at and end <= cells and taken.isdisjoint(range(at, end)):
            rule[at] = glyphs.tick
            words[at : end - 1] = word
            free = end
    return "".join(rule), "".join(words)


def _inscribed(rule: str, words: str) -> str:
    """Return the line with the times in it, each after its tick."""
    late = f" {words}"[: len(rule)]
    return "".join(
        sign if word == " " else word for sign, word in zip(rule, late, strict=True)
    )


def _axis_rule(
    line: str, flags: AbstractSet[int], cursor: int | None, room: Room
) -> Content:
    signs = [
        room.glyphs.flag if position in flags else sign
        for position, sign in enumerate(line)
    ]
    content = Content.styled("".join(signs), MUTED)
    for position in sorted(flags):
        content = content.stylize("$state-waiting bold", position, position + 1)
    if cursor is not None:
        content = content.stylize("reverse bold", cursor, cursor + 1)
    return Content(" " * (LABEL + (LEAD if room.has_lead else 0))) + content


def _ticks(axis: PlotAxis, cells: int) -> range:
    """Return the seconds to label, as many as fit."""
    span = axis.count * axis.width
    # between full minutes there are seconds to write
    step = next(
        (
            t
            for t in _TICKS
            if t >= axis.width
            and span <= t * max(1, cells // (len(_clock(axis.first, axis, t)) + 3))
        ),
        span,
    )
    return range(-(-axis.first // step) * step, axis.first + span, step)


def _clock(second: int, axis: PlotAxis, step: int) -> str:
    """Format a time of day; with its date on an axis longer than a day."""
    timestamp = datetime.fromtimestamp(second, UTC)
    if axis.count * axis.width > _DAY:
        return timestamp.strftime("%m-%d %H:%M")
    return timestamp.strftime("%H:%M:%S" if step % _MINUTE else "%H:%M")
