"""What a panel may fill, and the two ways of filling it: tables and lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from tui.drawing.clip import clip, one_line
from tui.drawing.glyphs import Glyphs

GAP = "  "
LEAD = 1
"""Cells before each line of a panel with a cursor, where its sign stands."""
MUTED = "$state-queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a panel may fill, and the signs it may use."""

    width: int  #: beside the lead, where there is one
    height: int
    glyphs: Glyphs
    has_lead: bool = False  #: each line begins with `LEAD` cells for the cursor
    cursor: int | None = None  #: the row that keys act on; None: they act elsewhere


@dataclass(frozen=True, slots=True)
class Column:
    """A head and its width; figures stand at the right."""

    head: str
    width: int
    is_right: bool = True


def _cell(text: str, column: Column) -> str:
    return clip(text, column.width, is_right=column.is_right)


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | Content]],
    room: Room,
    gap: str = GAP,
) -> Content:
    """Columns with their heads, and the rows around the cursor.

    What does not fit is counted in the last line.
    """
    head = gap.join(_cell(column.head, column) for column in columns)
    lines = [_led(Content.styled(head, MUTED), " ", room)]
    shown = visible(len(rows), room)
    for at in shown:
        cells: list[Content] = []
        for text, column in zip(rows[at], columns, strict=True):
            cells += [Content(gap)] if cells else []
            cells.append(
                Content(_cell(text, column)) if isinstance(text, str) else text
            )
        is_current = at == room.cursor
        line = Content.assemble(*cells)
        sign = room.glyphs.cursor if is_current else " "
        lines.append(_led(line.stylize("bold") if is_current else line, sign, room))
    if len(shown) < len(rows):
        more = f"and {len(rows) - len(shown)} more"
        if room.cursor is not None:
            more = f"{shown.start + 1} to {shown.stop} of {len(rows)}"
        lines.append(_led(Content.styled(more, MUTED), " ", room))
    return Content("\n").join(lines)


def visible(rows: int, room: Room) -> range:
    """The rows of a table that its height shows, the cursor's among them."""
    fits = max(1, room.height - 1)
    if rows <= fits:
        return range(rows)
    fits = max(1, fits - 1)  # a line says what is not there
    first = max(0, min(rows - fits, (room.cursor or 0) - fits // 2))
    return range(first, first + fits)


def _led(line: Content, sign: str, room: Room) -> Content:
    shown = line.truncate(room.width, ellipsis=True)
    return Content.assemble(sign, shown) if room.has_lead else shown


def lines_of(lines: Sequence[str | Content], room: Room, style: str = "") -> Content:
    """Lines of text from anywhere, cut to the room; a drawing's own lines as well."""
    shown = [
        Content.styled(one_line(line, room.width), style)
        if isinstance(line, str)
        else line
        for line in lines[: max(1, room.height)]
    ]
    return Content("\n").join(_led(line, " ", room) for line in shown)
