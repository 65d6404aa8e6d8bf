"""A table whose rows stand in groups, each below a line of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment

from tui.drawing.clip import clip
from tui.drawing.glyphs import Glyphs
from tui.drawing.only_ascii import drawn
from tui.drawing.tables.columns import GAP, Column, RowT
from tui.widgets.table import PagedTable


class GroupedTable(PagedTable[RowT]):
    """Draws the rows that head a group over all columns."""

    def __init__(
        self,
        columns: Sequence[Column[RowT]],
        glyphs: Glyphs,
        heading: Callable[[RowT], str],
        *,
        id: str | None = None,  # noqa: A002 - as every widget calls it
    ) -> None:
        """A table of groups.

        Args:
            columns: of rows that head nothing.
            glyphs: the signs to draw with.
            heading: what stands on the line of a row; empty: it has columns.
            id: for style sheets.
        """
        super().__init__(columns, glyphs, id=id)
        self._heading = heading

    def _cells(self, row: RowT) -> list[Segment]:
        heading = self._heading(row)
        if not heading:
            return super()._cells(row)
        width = sum(column.width + GAP for column in self._fitted) - GAP
        text = drawn(self._glyphs, clip(heading, max(0, width)))
        return [Segment(text, self._style("head"))]
