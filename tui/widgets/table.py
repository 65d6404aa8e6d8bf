"""A table of any number of rows, of which it holds a few screens.

It draws lines from what `Pages` holds and posts `PageRequested` for what is missing;
its owner reads the page in a thread and calls `put`. It never waits: unread rows are
drawn as dim dots. Rows are untrusted, so every text goes through `clip` and is never
parsed as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, Generic

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.render.glyphs import Glyphs, displayable_text
from tui.render.layout import (
    COLUMN_GAP,
    RowT,
    TableColumn,
    clip,
    fitted,
    middle_cut,
    wrapped,
)
from tui.widgets.scrolling import MOVES, CursorMove, PageRequest, Pages, Viewport, dress

_HEAD = 1
"""Lines of the header."""
_MARGIN = 3
"""Cells on the left, with the sign of the current row."""

#: Possible colours of a column's texts; each has a class in the style sheet.
TONES = ("done", "running", "waiting", "failed", "queued", "dim")


class TableMessage(Message):
    """A message of a table."""

    def __init__(self, table: PagedTable[Any]) -> None:
        super().__init__()
        self.table = table

    @property
    def control(self) -> PagedTable[Any]:
        """The table, for handlers with selectors."""
        return self.table


class PagedTable(ScrollView, Generic[RowT], can_focus=True):
    """Rows in columns; `relist` sets the numbers, `put` the rows."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--head",
        "table--row",
        "table--cursor",
        *(f"table--{tone}" for tone in TONES),
    }
    DEFAULT_CSS = """
    PagedTable {
        background: $background;
        color: $foreground;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        &> .table--row { color: $foreground; background: $background; }
        &> .table--head { color: $foreground; text-style: bold; }
        &> .table--cursor { text-style: bold; }
        &:focus > .table--cursor { text-style: bold reverse; }
        &> .table--done { color: $state-done; }
        &> .table--running { color: $state-running; }
        &> .table--waiting { color: $state-waiting; }
        &> .table--failed { color: $state-failed; text-style: bold; }
        &> .table--queued { color: $state-queued; }
        &> .table--dim { color: $state-queued; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        Binding("enter,right", "choose", "Open", key_display="enter", id="table.open"),
    ]

    class PageRequested(TableMessage):
        """A page to read; answered with `put` or `give_up`."""

        def __init__(self, table: PagedTable[Any], ask: PageRequest) -> None:
            super().__init__(table)
            self.ask = ask

    class Moved(TableMessage):
        """The cursor is on another row, or on another version of it."""

    class Chosen(TableMessage):
        """The row under the cursor is to be opened."""

        def __init__(self, table: PagedTable[Any], number: int) -> None:
            super().__init__(table)
            self.number = number

    class HeadClicked(TableMessage):
        """The title of a column was clicked."""

        def __init__(self, table: PagedTable[Any], title: str) -> None:
            super().__init__(table)
            self.title = title

    def __init__(
        self,
        columns: Sequence[TableColumn[RowT]],
        glyphs: Glyphs,
        *,
        id: str | None = None,  # noqa: A002 - as every widget calls it
    ) -> None:
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._needs: list[int] | None = None  #: cells of each column's widest text
        self._fitted: list[TableColumn[RowT]] = []
        self._fitted_width = 0  #: width of the widget that they are for
        self._glyphs = glyphs
        self._pages: Pages[RowT] = Pages()
        self._cursor = 0
        self._is_upward = False
        self._emptiness = ""
        self._drawn: dict[int, Strip] = {}  #: by line of the widget

    @property
    def numbers(self) -> Sequence[int]:
        """The listed numbers."""
        return self._pages.numbers

    @property
    def cursor(self) -> int:
        """Position of the current row."""
        return self._cursor

    @property
    def chosen(self) -> int | None:
        """The number under the cursor; None in an empty list."""
        return self.numbers[self._cursor] if self._cursor < len(self.numbers) else None

    @property
    def row(self) -> RowT | None:
        """The row under the cursor; None if not read yet."""
        return self._pages.row(self._cursor)

    def recolumn(self, columns: Sequence[TableColumn[RowT]]) -> None:
        """Show the same rows in other columns."""
        self._columns = tuple(columns)
        self._needs = None
        self._fit()
        self.expire()
        self.refresh()

    def count_on(self, *, is_counting: bool) -> None:
        """Set whether the list is still growing: its scroll bar is then hatched."""
        self._pages.is_growing = is_counting
        dress(self, self._glyphs, is_hatched=is_counting)
        if not is_counting:
            self._ask()

    def go_to(self, position: int) -> None:
        """Move the cursor to a row."""
        self._go(self._viewport.at(position, len(self.numbers), self._room))

    def relist(self, numbers: Sequence[int]) -> None:
        """Show another list from its start."""
        self._pages.relist(numbers)
        self._resized()
        self._go(Viewport())

    def exchange(self, numbers: Sequence[int]) -> None:
        """Show the updated list; the row under the cursor does not move."""
        viewport = self._viewport.relisted(self.numbers, numbers, self._room)
        self._pages.relist(numbers)
        self._resized()
        self._go(viewport)

    def show(self, rows: Mapping[int, RowT]) -> None:
        """Show rows that are all in memory, as `exchange` does."""
        viewport = self._viewport.relisted(self.numbers, tuple(rows), self._room)
        known = set(self.numbers)
        self._measure([row for number, row in rows.items() if number not in known])
        self._pages.relist(tuple(rows))
        while ask := self._pages.next_request(0, len(rows)):
            self._pages.put(ask, rows)
        self._resized()
        self._go(viewport)

    def extend(self, numbers: Sequence[int]) -> None:
        """Append rows to the list; visible rows do not move."""
        self._pages.extend(numbers)
        self._resized()
        self._ask()

    def expire(self) -> None:
        """Read visible rows again, as they may have changed."""
        self._pages.expire()
        self._ask()

    def put(self, ask: PageRequest, rows: Mapping[int, RowT]) -> None:
        """Answer a `PageRequested`."""
        self._measure(rows.values())
        if self._pages.put(ask, rows):
            self._arrived(self._pages.positions(ask))
        self._ask()

    def _arrived(self, positions: range) -> None:
        """Draw rows that are visible: pages are read ahead, too."""
        top = self.scroll_offset.y
        if positions.start < top + self._room and top < positions.stop:
            self.refresh()
        if self._cursor in positions:
            self.post_message(self.Moved(self))

    def give_up(self, ask: PageRequest) -> None:
        """Abandon a `PageRequested`; the next move repeats it."""
        self._pages.give_up(ask)

    def explain(self, emptiness: str) -> None:
        """Set the text for an empty list: the reason, and the next step."""
        if emptiness != self._emptiness:
            self._emptiness = emptiness
            self.refresh()

    @property
    def _room(self) -> int:
        """Number of visible rows."""
        return max(1, self.size.height - _HEAD)

    @property
    def _viewport(self) -> Viewport:
        return Viewport(self._cursor, self.scroll_offset.y)

    def _resized(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.numbers) + _HEAD)
        self.refresh()

    def _go(self, viewport: Viewport) -> None:
        self._is_upward = viewport.top < self.scroll_offset.y
        before, self._cursor = self._cursor, viewport.cursor
        if viewport.top == self.scroll_offset.y:
            self._draw(before)
            self._draw(viewport.cursor)
        else:
            self.scroll_to(y=viewport.top, animate=False, force=True, immediate=True)
            self.refresh()
        self._ask()
        self.post_message(self.Moved(self))

    def _draw(self, position: int) -> None:
        line = position - self.scroll_offset.y + _HEAD
        self.refresh(Region(0, line, self.size.width, 1))

    def _ask(self) -> None:
        top = self.scroll_offset.y
        ask = self._pages.next_request(top, top + self._room, is_upward=self._is_upward)
        if ask is not None:
            self.post_message(self.PageRequested(self, ask))

    def action_move(self, move: str) -> None:
        """Move the cursor."""
        self._go(self._viewport.moved(CursorMove[move], len(self.numbers), self._room))

    def action_choose(self) -> None:
        """Open the row under the cursor."""
        if self.chosen is not None:
            self.post_message(self.Chosen(self, self.chosen))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Read rows that became visible, whatever scrolled."""
        super().watch_scroll_y(old_value, new_value)
        self._is_upward = new_value < old_value
        self._ask()

    def on_mount(self) -> None:
        """Draw the scroll bar in supported characters."""
        dress(self, self._glyphs)

    def on_resize(self) -> None:
        """Keep the cursor visible, and show as many columns as fit."""
        self._fit()
        self._resized()
        self._go(self._viewport.at(self._cursor, len(self.numbers), self._room))

    def on_click(self, event: events.Click) -> None:
        """Choose a row, open it on a second click, or sort by a title."""
        if event.y < _HEAD:
            title = self._title_at(event.x)
            if title is not None:
                self.post_message(self.HeadClicked(self, title))
            return
        position = event.y - _HEAD + self.scroll_offset.y
        if position >= len(self.numbers):
            return
        self.go_to(position)
        if event.chain > 1:
            self.action_choose()

    def _fit(self) -> None:
        self._fitted_width = self.size.width
        width = self._fitted_width - _MARGIN - 1
        self._fitted = fitted(self._columns, width, self._needs)

    def _measure(self, rows: Collection[RowT]) -> None:
        """Give columns that grow the width of their widest text so far.

        A column never gets narrower, so that nothing moves back and forth.
        """
        if not any(column.most for column in self._columns):
            return
        before = self._needs or [0] * len(self._columns)
        needs = [
            max((need, *(_cells(column.text(row), column.most) for row in rows)))
            if column.grows and column.most and need < column.most
            else need
            for column, need in zip(self._columns, before, strict=True)
        ]
        if needs != self._needs:
            self._needs = needs
            self._fit()
            self.refresh()

    def _title_at(self, x: int) -> str | None:
        left = _MARGIN
        for column in self._fitted:
            if left <= x < left + column.width:
                return column.title
            left += column.width + COLUMN_GAP
        return None

    def redraw_changes(self) -> None:
        """Draw lines whose text has changed since, such as an age."""
        for y, drawn in self._drawn.items():
            if y < self.size.height and self._line(y) != drawn:
                self.refresh(Region(0, y, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        """Render one line: the header, a row, dots, or nothing."""
        if self._fitted_width != self.size.width:
            self._fit()  # drawn before the event of its new size
        self._drawn[y] = self._line(y)
        return self._drawn[y]

    def _line(self, y: int) -> Strip:
        width = self.size.width
        if y < _HEAD:
            return self._head(width)
        position = y - _HEAD + self.scroll_offset.y
        if position >= len(self.numbers):
            text = displayable_text(
                self._glyphs, self._explained(position, width - _MARGIN)
            )
            line = Strip([Segment(" " * _MARGIN + text, self._style("dim"))])
            return line.adjust_cell_length(width, self._style("row"))
        row = self._pages.row(position)
        is_cursor = position == self._cursor
        cells = [(self._sign(is_cursor=is_cursor), "row")]
        cells += [self._dots()] if row is None else self._cells(row)
        if is_cursor:
            # one style for the whole line: a tone may be illegible on its background
            cells = [(text, "cursor") for text, _ in cells]
        # cells of a style in one segment: each segment takes time to draw
        segments = [
            Segment("".join(text for text, _ in together), self._style(tone))
            for tone, together in groupby(cells, itemgetter(1))
        ]
        return Strip(segments).adjust_cell_length(
            width, self._style("cursor" if is_cursor else "row")
        )

    def _explained(self, at: int, cells: int) -> str:
        """Return a line of the text for an empty list; empty if there are rows."""
        if self.numbers:
            return ""
        pieces = [piece.text for piece in wrapped(self._emptiness, cells)]
        return pieces[at] if at < len(pieces) else ""

    def _style(self, name: str) -> Style:
        # component styles are cached by Textual, unlike `rich_style`
        return self.get_component_rich_style(f"table--{name}")

    def _head(self, width: int) -> Strip:
        style = self._style("head")
        titles = (
            clip(column.title, column.width, is_right=column.is_right)
            for column in self._fitted
        )
        line = " " * _MARGIN + (" " * COLUMN_GAP).join(titles)
        return Strip([Segment(line, style)]).adjust_cell_length(width, style)

    def _sign(self, *, is_cursor: bool) -> str:
        sign = self._glyphs.cursor if is_cursor else " "
        return f" {sign} "

    def _dots(self) -> tuple[str, str]:
        return self._glyphs.loading * 3, "dim"

    def _cells(self, row: RowT) -> list[tuple[str, str]]:
        """Return the text of each cell with its gap, and the name of its style."""
        cells = []
        gap = " " * COLUMN_GAP
        for column in self._fitted:
            tone = column.tone(row) if column.tone else ""
            text = column.text(row)
            if column.is_middle_cut:
                text = middle_cut(text, column.width)
            else:
                text = clip(text, column.width, is_right=column.is_right)
            cells.append((displayable_text(self._glyphs, text) + gap, tone or "row"))
        return cells


def _cells(text: str, most: int) -> int:
    """Return the cells of a text, at most *most*, without reading the rest."""
    if text.isascii():
        return min(most, len(text))
    return min(most, cell_len(text[: most + 1]))


class GroupedTable(PagedTable[RowT]):
    """Draws headings of groups over all columns."""

    def __init__(
        self,
        columns: Sequence[TableColumn[RowT]],
        glyphs: Glyphs,
        heading: Callable[[RowT], str],
        *,
        id: str | None = None,  # noqa: A002 - as every widget calls it
    ) -> None:
        """Create a table of groups.

        Args:
            columns: columns of the other rows.
            glyphs: the characters to draw with.
            heading: returns the heading of a row; empty: it has columns.
            id: for style sheets.
        """
        super().__init__(columns, glyphs, id=id)
        self._heading = heading

    def _cells(self, row: RowT) -> list[tuple[str, str]]:
        heading = self._heading(row)
        if not heading:
            return super()._cells(row)
        width = sum(column.width + COLUMN_GAP for column in self._fitted) - COLUMN_GAP
        text = displayable_text(self._glyphs, clip(heading, max(0, width)))
        return [(text, "head")]
