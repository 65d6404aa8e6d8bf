"""Fits text into cells: clips, wraps, and lays out lines and columns.

`store.printable` makes text safe for terminals; this module adds what a screen needs:
no newlines, widths in cells instead of characters, and a bound on combining marks, of
which one letter can have thousands.

Pure and lazy: a text of a megabyte costs only its visible part. Time is linear in the
text, whatever its content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from rich.cells import cell_len, get_character_cell_size
from textual.content import Content, Span

from store.printable import printable
from tui.render.glyphs import Glyphs

ELLIPSIS = "…"
DOT = " · "
#: Characters read per cell: letters with their marks, and some to spare.
_DENSITY = 4
_NEWLINE = "\N{SYMBOL FOR LINE FEED}"


def one_line(text: str, cells: int) -> str:
    """Return the start of *text* as one safe line of at most *cells* cells.

    Longer text is cut, with an ellipsis in the last cell. Only the start of *text* is
    read, whatever its length.
    """
    if cells <= 0:
        return ""
    bound = _DENSITY * (cells + 1)
    safe = _safe_line(text[:bound])
    if len(text) <= bound and cell_len(safe) <= cells:
        return safe
    return fitting(safe, cells - 1) + ELLIPSIS


def joined(parts: Sequence[str], cells: int) -> str:
    """Return *parts* as one safe line; of parts after the first, those that fit.

    A part that is cut could lose the figure that it is about.
    """
    line = parts[0]
    for part in parts[1:]:
        longer = f"{line}{DOT}{part}"
        if cell_len(longer) <= cells:
            line = longer
    return one_line(line, cells)


def fitting(safe: str, cells: int) -> str:
    """Return the prefix of *safe* that fits *cells*; wide characters stay whole."""
    used = 0
    for position, character in enumerate(safe):
        used += get_character_cell_size(character)
        if used > cells:
            return safe[:position]
    return safe


def middle_cut(text: str, cells: int) -> str:
    """Return *text* as one safe line of exactly *cells* cells, cut in its middle.

    Keys of items that belong together differ at their end, which gets two thirds of the
    cells. Only the two ends of *text* are read.
    """
    bound = _DENSITY * (cells + 1)
    if cells <= 0 or (len(text) <= bound and cell_len(_safe_line(text)) <= cells):
        return clip(text, cells)
    begin = fitting(_safe_line(text[:bound]), (cells - 1) // 3)
    # of the reversed end, the first cells are its last ones
    end = fitting(_safe_line(text[-bound:])[::-1], cells - 1 - cell_len(begin))[::-1]
    return clip(f"{begin}{ELLIPSIS}{end}", cells)


def _safe_line(text: str) -> str:
    return printable(text.replace("\r\n", "\n").replace("\n", _NEWLINE))


def clip(text: str, cells: int, *, is_right: bool = False) -> str:
    """Return *text* as one safe line of exactly *cells* cells."""
    return _clipped(text[: _DENSITY * (cells + 1) + 1], cells, is_right=is_right)


# a table draws the same short cells repeatedly
@lru_cache(maxsize=2048)
def _clipped(text: str, cells: int, *, is_right: bool) -> str:
    line = one_line(text, cells)
    blank = " " * (cells - cell_len(line))
    return blank + line if is_right else line + blank


def shared_lines(
    room: int,
    least: Sequence[int],
    most: Sequence[int | None],
    drops: Sequence[int],
) -> list[int]:
    """Share the lines of a column among its panels, from the top.

    Tables grow first, the lowest one each time, up to their content; then those that
    can use any number of lines share the rest, or else the first one gets it. If not
    all get their least, some get none.

    >>> shared_lines(30, [6, 4, 4], [None, 5, 9], [1, 0, 0])
    [16, 5, 9]
    >>> shared_lines(16, [6, 4, 4], [None, 5, 9], [1, 0, 0])
    [6, 5, 5]
    >>> shared_lines(9, [6, 4, 4], [None, 5, 9], [1, 0, 0])
    [0, 5, 4]
    >>> shared_lines(16, [4, 4], [5, 6], [0, 0])
    [10, 6]

    Args:
        room: lines of the column.
        least: minimum of each panel.
        most: lines of each panel's content; None: it takes any number.
        drops: panels with the highest are dropped first; those with 0 never.
    """
    lines = list(least)
    for at in sorted(range(len(lines)), key=lambda at: -drops[at]):
        if sum(lines) > room and drops[at]:
            lines[at] = 0
    spare = room - sum(lines)
    while spare > 0:
        growing = [
            at
            for at, limit in enumerate(most)
            if lines[at] and limit is not None and lines[at] < limit
        ] or [at for at, limit in enumerate(most) if lines[at] and limit is None]
        if growing:
            lines[min(growing, key=lambda at: lines[at])] += 1
        elif lines:
            lines[next(at for at, n in enumerate(lines) if n)] += 1
        spare -= 1
    return lines


PANEL_GAP = "  "
LEAD = 1
"""Cells before each line of a panel with a cursor, for its sign."""
MUTED = "$state-queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Size and characters available to a panel."""

    width: int  #: without the lead, if there is one
    height: int
    glyphs: Glyphs
    has_lead: bool = False  #: each line starts with `LEAD` cells for the cursor
    cursor: int | None = None  #: the current row; None: the focus is elsewhere


@dataclass(frozen=True, slots=True)
class PanelColumn:
    """A heading and its width; figures are right-aligned."""

    head: str
    width: int
    is_right: bool = True


def _cell(text: str, column: PanelColumn) -> str:
    return clip(text, column.width, is_right=column.is_right)


def table_lines(
    columns: Sequence[PanelColumn],
    rows: Sequence[Sequence[str | Content]],
    room: Room,
    gap: str = PANEL_GAP,
) -> Content:
    """Draw headings, and the rows around the cursor.

    The last line counts the rows that do not fit.
    """
    head = gap.join(_cell(column.head, column) for column in columns)
    lines = [_led(Content.styled(head, MUTED), " ", room)]
    visible_rows = visible(len(rows), room)
    for at in visible_rows:
        cells = [
            _cell(text, column) if isinstance(text, str) else text
            for text, column in zip(rows[at], columns, strict=True)
        ]
        is_current = at == room.cursor
        line = _joined(cells, gap)
        sign = room.glyphs.cursor if is_current else " "
        lines.append(_led(line.stylize("bold") if is_current else line, sign, room))
    if len(visible_rows) < len(rows):
        more = f"and {len(rows) - len(visible_rows)} more"
        if room.cursor is not None:
            more = f"{visible_rows.start + 1} to {visible_rows.stop} of {len(rows)}"
        lines.append(_led(Content.styled(more, MUTED), " ", room))
    return Content("\n").join(lines)


def _joined(cells: Iterable[str | Content], gap: str) -> Content:
    """Join cells, in a fifth of the time of `Content.join`: most have no style."""
    texts: list[str] = []
    spans: list[Span] = []
    at = 0
    for cell in cells:
        text = cell if isinstance(cell, str) else cell.plain
        if isinstance(cell, Content):
            spans += [Span(s.start + at, s.end + at, s.style) for s in cell.spans]
        texts.append(text)
        at += len(text) + len(gap)
    return Content(gap.join(texts), spans)


def visible(rows: int, room: Room) -> range:
    """Return the rows of a table that fit its height, including the cursor's."""
    fits = max(1, room.height - 1)
    if rows <= fits:
        return range(rows)
    fits = max(1, fits - 1)  # one line counts the other rows
    first = max(0, min(rows - fits, (room.cursor or 0) - fits // 2))
    return range(first, first + fits)


def _led(line: Content, sign: str, room: Room) -> Content:
    truncated = line.truncate(room.width, ellipsis=True)
    return Content.assemble(sign, truncated) if room.has_lead else truncated


def wrapped_lines(texts: Sequence[str], room: Room, most: int) -> Content:
    """Draw texts of one line each, wrapped into at most *most* lines.

    The last line of a text that does not fit is cut.
    """
    lines: list[str] = []
    for at, text in enumerate(texts):
        # later texts get a line each
        spare = max(1, most - len(lines) - (len(texts) - at - 1))
        line = text[:MAX_TEXT_CHARS].replace("\r\n", "\n").replace("\n", _NEWLINE)
        pieces = list(islice(wrapped(line, room.width), spare + 1))
        whole = [piece.text.rstrip() for piece in pieces[: spare - 1]]
        rest = "".join(piece.text for piece in pieces[spare - 1 :])
        lines += [*whole, *([one_line(rest, room.width)] if rest else [])]
    return lines_of(lines[:most], replace(room, height=most))


def lines_of(lines: Sequence[str | Content], room: Room, style: str = "") -> Content:
    """Draw lines of untrusted text, or rendered content, cut to the room."""
    contents = [
        Content.styled(one_line(line, room.width), style)
        if isinstance(line, str)
        else line
        for line in lines[: max(1, room.height)]
    ]
    return Content("\n").join(_led(line, " ", room) for line in contents)


MAX_TEXT_CHARS = 1_000_000
"""Maximum characters of a text on a screen."""
_CHUNK = 2_000
"""Characters escaped at once."""
_LONGEST = 8
"""Maximum characters that replace one, such as `<E0100>`."""


class WrappedLine(NamedTuple):
    """Text of one line of the screen."""

    text: str
    first: str  #: first character of the whole line
    lead: int = 0  #: blank cells before the text, which are not part of it


def wrapped(
    text: str, cells: int, *, is_hanging: bool = False
) -> Iterator[WrappedLine]:
    """Yield *text* in safe lines of at most *cells* cells, but at least two.

    Up to `MAX_TEXT_CHARS` characters are shown; a last line counts the rest.

    Args:
        text: any text.
        cells: of the longest line, with its lead.
        is_hanging: whether an indented line goes on below its first word.
    """
    cells = max(2, cells)
    begin, end = 0, min(len(text), MAX_TEXT_CHARS)
    while begin <= end:
        newline = text.find("\n", begin, end)
        after = end if newline < 0 else newline
        line = text[begin:after].removesuffix("\r")
        first = line[:1]
        # two cells have room for any character
        lead = _indent(line, min(cells // 2, cells - 2)) if is_hanging else 0
        pieces = _broken(line, cells, lead)
        yield WrappedLine(next(pieces), first)
        for piece in pieces:
            yield WrappedLine(piece, first, lead)
        begin = after + 1
    if len(text) > MAX_TEXT_CHARS:
        cut = len(text) - MAX_TEXT_CHARS
        yield from wrapped(f"… {cut:,} more characters: w writes all of them", cells)


def _indent(line: str, most: int) -> int:
    begin = line[:most]
    return len(begin) - len(begin.lstrip(" "))


def _broken(line: str, cells: int, lead: int) -> Iterator[str]:
    """Yield *line* in pieces, split after a blank in the second half if possible.

    All but the first are shorter by *lead* cells.
    """
    rest, room = "", cells
    for begin in range(0, len(line), _CHUNK):
        chunk = line[begin : begin + _CHUNK]
        rest += printable(chunk, line=_CHUNK * _LONGEST)
        at = 0
        while (end := _end(rest, at, room)) < len(rest):
            at_blank = rest.rfind(" ", at + (end - at) // 2, end) + 1
            end = at_blank or end
            yield rest[at:end]
            at, room = end, cells - lead
        rest = rest[at:]
    yield rest


def _end(safe: str, at: int, cells: int) -> int:
    """Return the end of a line that starts at *at*, by its width only."""
    window = safe[at : at + _DENSITY * cells]
    return at + (cells if window.isascii() else len(fitting(window, cells)))


RowT = TypeVar("RowT")

COLUMN_GAP = 2
"""Cells between two columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn(Generic[RowT]):
    """One column; its texts may be unsafe, the table escapes them."""

    title: str
    width: int  #: cells; minimum for a column that grows
    text: Callable[[RowT], str]
    tone: Callable[[RowT], str] | None = None  #: a table colour, such as `failed`
    is_right: bool = False  #: right-aligned, for figures
    grows: bool = False  #: takes the remaining width
    most: int | None = None  #: maximum width of a column that grows; None: any
    is_middle_cut: bool = False  #: if too long, its end stays visible
    hides: bool = False  #: is not shown while all its texts are empty
    drops: int = 0  #: if space is scarce the highest are dropped first; 0 stays


def fitted(
    columns: Sequence[TableColumn[RowT]],
    width: int,
    needs: Sequence[int] | None = None,
) -> list[TableColumn[RowT]]:
    """Return the columns that fit into *width* cells, with their final widths.

    Columns with the highest `drops` are dropped first; the remaining width goes to the
    columns that grow, in equal parts up to their maximum.

    Args:
        columns: the columns.
        width: cells for all of them.
        needs: cells of the widest text of each column, which it need not exceed if it
            grows; None: not known.
    """
    most = [
        column.most
        if needs is None or not column.grows or column.most is None
        else min(column.most, max(len(column.title), need))
        for column, need in zip(columns, needs or [0] * len(columns), strict=True)
    ]
    visible = [
        (column, most)
        for at, (column, most) in enumerate(zip(columns, most, strict=True))
        if not (column.hides and needs is not None and not needs[at])
    ]
    while _needed([column for column, _ in visible]) > width:
        least = max(visible, key=lambda pair: pair[0].drops, default=None)
        if least is None or not least[0].drops:
            break
        visible.remove(least)
    widths = [
        column.width if most is None else min(column.width, most)
        for column, most in visible
    ]
    spare = max(0, width - sum(widths) - COLUMN_GAP * max(0, len(visible) - 1))
    while spare:
        growing = [
            at
            for at, (column, most) in enumerate(visible)
            if column.grows and (most is None or widths[at] < most)
        ]
        if not growing:
            break
        share = max(1, spare // len(growing))
        for at in growing[:spare]:
            limit = visible[at][1]
            more = share if limit is None else min(share, limit - widths[at])
            widths[at] += more
            spare -= more
    return [
        replace(column, width=column_width)
        for (column, _), column_width in zip(visible, widths, strict=True)
    ]


def _needed(columns: Sequence[TableColumn[RowT]]) -> int:
    return sum(column.width for column in columns) + COLUMN_GAP * max(
        0, len(columns) - 1
    )
