"""The orders that a list of tasks can have, and how much of it each shows."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import OptionList

from store.views import Order
from tui.drawing.glyphs import Glyphs
from tui.screens.modal import Modal

ABOUT = {
    Order.NUMBER: "all tasks, as they were planned",
    Order.NEWEST: "all tasks, the last changed at the top",
    Order.SLOWEST: "only these, picked from all that fit",
    Order.DEAREST: "only these, picked from all that fit",
    Order.MOST_TRIED: "only these, picked from all that fit",
}
_WIDTH = max(len(order.value) for order in Order)


class SortMenu(Modal[Order | None]):
    """Asks for an order; None: as before."""

    DEFAULT_CSS = """
    SortMenu { align: center middle; background: $background 60%; }
    SortMenu OptionList {
        width: 68; max-width: 95%; height: auto; padding: 1 2;
        border: round $accent; background: $background;
        &:focus { border: round $accent; background-tint: $background 0%; }
    }
    SortMenu.-ascii OptionList { border: ascii $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,h,left,s", "dismiss", "Back", id="sort.back"),
        Binding("j", "move(1)", "Down", show=False, id="sort.down"),
        Binding("k", "move(-1)", "Up", show=False, id="sort.up"),
    ]

    def __init__(self, order: Order, glyphs: Glyphs) -> None:
        super().__init__()
        self.set_class(bool(glyphs.plain), "-ascii")
        self._order = order

    def compose(self) -> ComposeResult:
        """One line for each order."""
        options = OptionList(
            *(f"{order.value:<{_WIDTH}}   {ABOUT[order]}" for order in Order),
            markup=False,
        )
        options.border_title = "Sort"
        options.border_subtitle = "enter chooses, esc goes back"
        options.highlighted = list(Order).index(self._order)
        yield options

    def action_move(self, by: int) -> None:
        """Another line."""
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self.dismiss(list(Order)[message.option_index])
