"""One line of text, which may hold names from outside: never read as markup."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from tui.drawing.clip import one_line
from tui.drawing.glyphs import Glyphs
from tui.drawing.only_ascii import drawn


class TextLine(Widget):
    """Shows a text at the left, cut where one at the right needs the room."""

    DEFAULT_CSS = """
    TextLine { height: 1; width: 1fr; background: $background; color: $foreground; }
    """

    def __init__(
        self,
        glyphs: Glyphs,
        *,
        id: str | None = None,  # noqa: A002 - as every widget calls it
        classes: str | None = None,
        is_rule: bool = False,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._left = self._right = ""
        self._glyphs = glyphs
        self._fill = glyphs.rule if is_rule else " "

    @property
    def said(self) -> tuple[str, str]:
        """What is shown at the left and at the right, as it was given."""
        return self._left, self._right

    def say(self, left: str, right: str = "") -> None:
        """Show other texts; the same ones cost nothing."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The line; there is no other."""
        width = self.size.width
        text = laid_out(self._left, self._right, width, self._fill) if not y else ""
        text = drawn(self._glyphs, text)
        return Strip([Segment(text, self.rich_style)]).adjust_cell_length(
            width, self.rich_style
        )


def laid_out(left: str, right: str, width: int, fill: str = " ") -> str:
    """Both texts on one harmless line of *width* cells, a cell free at either end."""
    right = one_line(right, width - 2)
    left = one_line(left, width - 2 - (cell_len(right) + 2 if right else 0))
    gap = max(0, width - 2 - cell_len(left) - cell_len(right))
    # a rule keeps a cell's distance from what it leads to
    ends = [" " if text else "" for text in (left, right)]
    rule = fill * (gap - len("".join(ends)))
    return f" {left}{rule.join(ends) if rule else ' ' * gap}{right} "
