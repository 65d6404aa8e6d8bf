"""Small charts as lines of text: bars, one-line courses and curves in braille.

Pure, and linear in the cells drawn: whoever has more values than columns joins them
into buckets first (`bucketed`), so that a chart is always of all data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tui.drawing.glyphs import Glyphs

#: Bits of a braille cell's two columns of dots, filled from none to all four.
_LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
_BRAILLE = 0x2800
_ROWS = 4


def bucketed(
    values: Sequence[float | None],
    count: int,
    join: Callable[[Sequence[float]], float] = max,
) -> list[float | None]:
    """*values* joined into at most *count* buckets of nearly equal size.

    Unknown values are left out; a bucket of nothing else is unknown.
    """
    size = len(values)
    if size <= count:
        return list(values)
    edges = [size * number // count for number in range(count + 1)]
    buckets: list[float | None] = []
    for first, last in pairwise(edges):
        known = [value for value in values[first:last] if value is not None]
        buckets.append(join(known) if known else None)
    return buckets


def bar(fraction: float, width: int, glyphs: Glyphs, mark: float | None = None) -> str:
    """A bar of *width* cells, filled to *fraction*, with a *mark* at another one.

    What is not nothing shows, and only what is whole looks so.
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


def course(
    values: Sequence[float | None],
    width: int,
    glyphs: Glyphs,
    top: float | None = None,
) -> str:
    """One line of *width* cells, the last values at its right end; unknown: a blank.

    Args:
        values: ascending in time; more than *width* are joined.
        width: cells.
        glyphs: the signs to draw with.
        top: the value of a full cell; None: the largest of *values*.
    """
    shown = bucketed(values, width)
    highest = _top(shown, top)
    line = "".join(_level(value, highest, glyphs.levels) for value in shown)
    return line.rjust(width)


def _top(values: Sequence[float | None], top: float | None) -> float:
    known = [value for value in values if value is not None]
    return max(known, default=0.0) if top is None else top


def _level(value: float | None, top: float, levels: str) -> str:
    if value is None:
        return " "
    if value <= 0 or top <= 0:
        return levels[1]  # known to be nothing, which is not unknown
    return levels[max(1, min(len(levels) - 1, round(value / top * (len(levels) - 1))))]


def curve(
    values: Sequence[float | None],
    width: int,
    height: int,
    glyphs: Glyphs,
    top: float | None = None,
) -> list[str]:
    """*height* lines of *width* cells: a filled curve, two values to a cell.

    Without braille a cell is one value high in the levels that there are.
    """
    if not glyphs.has_braille:
        return _steps(values, width, height, glyphs, top)
    shown = bucketed(values, 2 * width)
    highest = _top(shown, top)
    heights = [_dots(value, highest, height * _ROWS) for value in shown]
    heights = [0] * (2 * width - len(heights)) + heights
    return [_braille_line(heights, row) for row in reversed(range(height))]


def _dots(value: float | None, top: float, dots: int) -> int:
    """How high a column is; what is known and nothing has one dot."""
    if value is None:
        return 0
    return max(1, min(dots, round(value / top * dots))) if top > 0 else 1


def _braille_line(heights: Sequence[int], row: int) -> str:
    ground = row * _ROWS
    filled = [max(0, min(_ROWS, n - ground)) for n in heights]
    pairs = zip(filled[::2], filled[1::2], strict=True)
    # the blank of braille is no blank to every terminal, nor to who copies it
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
    shown = bucketed(values, width)
    highest = _top(shown, top)
    steps = len(glyphs.levels) - 1
    heights = [_dots(value, highest, height * steps) for value in shown]
    heights = [0] * (width - len(heights)) + heights
    return [
        "".join(glyphs.levels[max(0, min(steps, n - row * steps))] for n in heights)
        for row in reversed(range(height))
    ]
