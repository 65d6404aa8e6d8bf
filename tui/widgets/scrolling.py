"""Scrolls long lists: pages in memory, keys that move, scroll bars.

Pure: knows neither a screen nor a database. A table shows a list of *numbers*; their
rows are loaded in pages on demand, and the last used are kept. Only one page is
requested at a time, always one that is visible *now*, so fast scrolling queues nothing
and never waits for pages that are no longer visible.
"""

from __future__ import annotations

import enum
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from textual.binding import Binding, BindingType
from textual.scrollbar import ScrollBarRender
from textual.widget import Widget

from tui.render.glyphs import Glyphs

RowT = TypeVar("RowT")

PAGE = 200
"""Rows of a page: some screens, read in a tenth of a millisecond."""
MAX_PAGES = 64
"""Maximum pages in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A requested page."""

    listing: int  #: number of the list; answers for older lists are dropped
    page: int
    numbers: tuple[int, ...]


class Pages(Generic[RowT]):
    """The rows of a list of numbers, as far as they were read.

    Example::

        pages.relist(range(1, 1_000_001))
        if ask := pages.next_request(0, 40):
            pages.put(ask, rows_of(ask.numbers))
        pages.row(3)
    """

    def __init__(self, *, size: int = PAGE, max_pages: int = MAX_PAGES) -> None:
        self.numbers: Sequence[int] = ()
        self.is_growing = False  #: the last page is not known yet
        self._grown_numbers: array[int] | None = None  #: the numbers, once extended
        self._size = size
        self._max_pages = max_pages
        self._pages: OrderedDict[int, list[RowT | None]] = OrderedDict()
        self._stale: set[int] = set()
        self._listing = 0
        self._pending_request: PageRequest | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def relist(self, numbers: Sequence[int]) -> None:
        """Show another list; drops all pages."""
        self.numbers = numbers
        self._grown_numbers = None
        self._pages.clear()
        self._stale.clear()
        self._listing += 1
        self._pending_request = None

    def extend(self, numbers: Sequence[int]) -> None:
        """Append to the same list; existing rows do not move."""
        if not numbers:
            return
        # the last page, and a pending answer for it, may have been short
        last = len(self) // self._size
        if self._pending_request is not None and self._pending_request.page == last:
            self._pending_request = None
        if last in self._pages:
            self._stale.add(last)
        if self._grown_numbers is None:
            self.numbers = self._grown_numbers = array("q", self.numbers)
        self._grown_numbers.extend(numbers)

    def row(self, position: int) -> RowT | None:
        """Return the row at a position; None if not read yet."""
        page, offset = divmod(position, self._size)
        rows = self._pages.get(page)
        if rows is None:
            return None
        self._pages.move_to_end(page)
        return rows[offset] if offset < len(rows) else None

    def expire(self) -> None:
        """Read everything again when it becomes visible; until then show old rows."""
        self._stale.update(self._pages)

    def next_request(
        self, first: int, last: int, *, is_upward: bool = False
    ) -> PageRequest | None:
        """Return the page to read next for the rows from *first* to before *last*.

        Visible pages come first, then the next one in the direction of scrolling, then
        both ends, where one key leads. None: all were read, or an answer is pending; a
        pending page that is no longer visible is abandoned if a visible one is missing.
        """
        if not self.numbers:
            return None
        end = (len(self) - 1) // self._size
        top = max(0, first) // self._size
        bottom = min(end, max(first, last - 1) // self._size)
        seen = range(top, bottom + 1)
        ahead = top - 1 if is_upward else bottom + 1
        page = next((p for p in seen if p not in self._pages), None)
        if self._pending_request is not None and (
            page is None or self._pending_request.page in seen
        ):
            return None
        if page is None:
            page = next((p for p in seen if p in self._stale), None)
        if page is None:
            ends = (0,) if self.is_growing else (0, end)
            # what is read ahead must not push out what is visible
            fit = len(seen) + 1 + len(ends) <= self._max_pages
            later = (ahead, *ends) if fit else (ahead,)
            page = next(
                (p for p in later if 0 <= p <= end and p not in self._pages), None
            )
        if page is None:
            return None
        begin = page * self._size
        numbers = tuple(self.numbers[begin : begin + self._size])
        self._pending_request = PageRequest(
            listing=self._listing, page=page, numbers=numbers
        )
        return self._pending_request

    def positions(self, ask: PageRequest) -> range:
        """Return the positions of a request's rows."""
        begin = ask.page * self._size
        return range(begin, begin + len(ask.numbers))

    def put(self, ask: PageRequest, rows: Mapping[int, RowT]) -> bool:
        """Store an answer; return whether it was used.

        Args:
            ask: the request.
            rows: by number; some may be missing.
        """
        if ask is not self._pending_request:
            return False
        self._pending_request = None
        self._stale.discard(ask.page)
        self._pages[ask.page] = [rows.get(number) for number in ask.numbers]
        self._pages.move_to_end(ask.page)
        while len(self._pages) > self._max_pages:
            page, _ = self._pages.popitem(last=False)
            self._stale.discard(page)
        return True

    def give_up(self, ask: PageRequest) -> None:
        """Abandon a request: it may be repeated."""
        if ask is self._pending_request:
            self._pending_request = None


class CursorMove(enum.Enum):
    """A movement of the cursor by a key."""

    UP = "up"
    DOWN = "down"
    HALF_UP = "half a page up"
    HALF_DOWN = "half a page down"
    PAGE_UP = "page up"
    PAGE_DOWN = "page down"
    FIRST = "to the first"
    LAST = "to the last"


@dataclass(frozen=True, slots=True)
class Viewport:
    """Position in a list: the current row, and the top row."""

    cursor: int = 0
    top: int = 0

    def moved(self, move: CursorMove, count: int, height: int) -> Viewport:
        """Return the position after a key, for *count* rows with *height* visible."""
        half, page = max(1, height // 2), max(1, height - 1)
        steps = {
            CursorMove.UP: -1,
            CursorMove.DOWN: 1,
            CursorMove.HALF_UP: -half,
            CursorMove.HALF_DOWN: half,
            CursorMove.PAGE_UP: -page,
            CursorMove.PAGE_DOWN: page,
            CursorMove.FIRST: -count,
            CursorMove.LAST: count,
        }
        return self.at(self.cursor + steps[move], count, height)

    def at(self, cursor: int, count: int, height: int) -> Viewport:
        """Return the position with the cursor elsewhere, scrolled minimally."""
        cursor = max(0, min(count - 1, cursor))
        last_top = max(0, count - height)
        top = max(min(self.top, cursor), cursor - max(1, height) + 1)
        return Viewport(cursor, max(0, min(last_top, top)))

    def relisted(self, old: Sequence[int], new: Sequence[int], height: int) -> Viewport:
        """Return the position of the same row on the same line, in another list.

        If the row is gone, the cursor stays at its position.
        """
        line = self.cursor - self.top
        cursor = self.cursor
        if self.cursor < len(old):
            try:
                cursor = new.index(old[self.cursor])
            except ValueError:
                cursor = self.cursor
        return Viewport(cursor, cursor - line).at(cursor, len(new), height)


_KEYS = {
    CursorMove.DOWN: ("j,down", "Down"),
    CursorMove.UP: ("k,up", "Up"),
    CursorMove.FIRST: ("g,home", "First"),
    CursorMove.LAST: ("G,end", "Last"),
    CursorMove.HALF_DOWN: ("ctrl+d", "Half a page down"),
    CursorMove.HALF_UP: ("ctrl+u", "Half a page up"),
    CursorMove.PAGE_DOWN: ("pagedown", "Page down"),
    CursorMove.PAGE_UP: ("pageup", "Page up"),
}

MOVES: tuple[BindingType, ...] = tuple(
    Binding(
        keys,
        f"move('{move.name}')",
        about,
        id=f"move.{move.name.lower().replace('_', '-')}",
        show=False,
    )
    for move, (keys, about) in _KEYS.items()
)
"""For widgets with `action_move`."""


class _Hatched(ScrollBarRender):
    BLANK_GLYPH = "░"


class _Plain(ScrollBarRender):
    # whole cells only: ASCII has no eighths of a cell
    VERTICAL_BARS = [" "]  # noqa: RUF012 - as textual declares it


class _PlainHatched(_Plain):
    BLANK_GLYPH = "-"


def dress(widget: Widget, glyphs: Glyphs, *, is_hatched: bool = False) -> None:
    """Draw the vertical scroll bar of *widget* with *glyphs*."""
    plain, hatched = (
        (_Plain, _PlainHatched) if glyphs.plain else (ScrollBarRender, _Hatched)
    )
    renderer = hatched if is_hatched else plain
    bar = widget.vertical_scrollbar
    if bar.renderer is not renderer:
        # for this bar only, as in Textual's documentation
        bar.renderer = renderer  # type: ignore[misc]
        bar.refresh()
