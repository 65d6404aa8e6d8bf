"""What a panel may fill, and the two ways of filling it: tables and lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from tui.drawing.clip import clip, one_line
from tui.drawing.glyphs import Glyphs

GAP = "  "
MUTED = "$state-queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a panel may fill, and the signs it may use."""

    width: int
    height: int
    glyphs: Glyphs


@dataclass(frozen=True, slots=True)
class Column:
    """A head and its width; figures stand at the right."""

    head: str
    width: int
    is_right: bool = True


def _cell(text: str, column: Column) -> str:
    return clip(text, column.width, is_right=column.is_right)


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str | Content]], room: Room
) -> Content:
    """Columns with their heads; rows beyond the height are counted in the last line."""
    head = GAP.join(_cell(column.head, column) for column in columns)
    lines = [Content.styled(head, MUTED)]
    fits = max(1, room.height - 1)
    shown = rows if len(rows) <= fits else rows[: fits - 1]
    for row in shown:
        cells: list[Content] = []
        for text, column in zip(row, columns, strict=True):
            cells += [Content(GAP)] if cells else []
            cells.append(
                Content(_cell(text, column)) if isinstance(text, str) else text
            )
        lines.append(Content.assemble(*cells))
    if len(shown) < len(rows):
        more = f"and {len(rows) - len(shown)} more: make the window higher"
        lines.append(Content.styled(more, MUTED))
    return Content("\n").join(line.truncate(room.width) for line in lines)


def lines_of(lines: Sequence[str], room: Room) -> Content:
    """Lines of text from anywhere, cut to the room."""
    shown = [one_line(line, room.width) for line in lines[: max(1, room.height)]]
    return Content("\n".join(shown))
