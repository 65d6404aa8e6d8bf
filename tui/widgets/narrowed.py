"""A table with a line above it in which a part of what to list is typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from tui.drawing.tables.columns import RowT
from tui.widgets.table import PagedTable

Fits: TypeAlias = Callable[[Mapping[int, RowT], str], Mapping[int, RowT]]
"""The rows that go with what was typed."""


class FilteredTable(Vertical, Generic[RowT]):
    """Rows that are all at hand, and of these the ones that fit."""

    DEFAULT_CSS = """
    FilteredTable Input.-textual-compact { padding: 0 1; background: $panel; }
    FilteredTable PagedTable { height: 1fr; }
    """

    def __init__(
        self,
        table: PagedTable[RowT],
        fits: Fits[RowT],
        placeholder: str,
        *,
        id: str | None = None,  # noqa: A002 - as every widget calls it
    ) -> None:
        """A table under its filter.

        Args:
            table: what shows the rows.
            fits: which of them go with what was typed.
            placeholder: stands in the line while it is empty.
            id: for style sheets.
        """
        super().__init__(id=id)
        self.table = table
        self._fits = fits
        self._field = Input(
            placeholder=placeholder, compact=True, select_on_focus=False
        )
        self._all: Mapping[int, RowT] = {}
        self._shown: Mapping[int, RowT] | None = None

    def compose(self) -> ComposeResult:
        """The line, and the table below."""
        yield self._field
        yield self.table

    @property
    def part(self) -> str:
        """What was typed."""
        return self._field.value.strip()

    @property
    def count(self) -> int:
        """Rows that are listed."""
        return len(self._shown or ())

    def show(self, rows: Mapping[int, RowT]) -> None:
        """List other rows, by numbers that a row keeps; the cursor stays on its row."""
        self._all = rows
        self._list()

    def begin(self, rows: Mapping[int, RowT]) -> None:
        """List rows that have nothing to do with those before, unfiltered."""
        self._all, self._shown = rows, None
        self._field.value = ""
        self.table.relist(())
        self._list()

    def _list(self) -> None:
        shown = self._fits(self._all, self.part)
        if shown != self._shown:
            self._shown = shown
            self.table.show(shown)

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        message.stop()
        self._list()

    @on(Input.Submitted)
    def _entered(self, message: Input.Submitted) -> None:
        message.stop()
        self.table.focus()
        if self.part and not self._shown:
            self.take(self.part)

    def take(self, text: str) -> None:
        """What to do with a text that fits no row and was entered: nothing here."""

    def type_in(self) -> None:
        """Go on with typing what to list."""
        # at once: what is typed together with the key belongs to the field
        self.screen.set_focus(self._field)

    def clear(self) -> None:
        """List everything again."""
        self._field.value = ""
