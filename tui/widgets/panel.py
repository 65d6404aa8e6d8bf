"""Panels and lines of text that redraw only what changed.

Most refreshes change a few digits of a panel; whole panels are ten times the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Generic, TypeAlias, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.containers import Container
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from tui.render.glyphs import Glyphs, displayable_text, substitute_glyphs
from tui.render.layout import Room, one_line

Sign: TypeAlias = tuple[str, tuple[object, ...]]
"""A character, and its styles."""


def changes(old: Sequence[Content], new: Sequence[Content], width: int) -> list[Region]:
    """Return the changed parts of left-aligned lines in *width* cells."""
    return [
        Region(first, y, end - first, 1)
        for y, (before, after) in enumerate(zip_longest(old, new, fillvalue=Content()))
        if not after.is_same(before)
        for first, end in (_between(before, after, width),)
        if end > first
    ]


def _between(before: Content, after: Content, width: int) -> tuple[int, int]:
    """Return the cells from the first to after the last difference."""
    old: Sequence[object]
    new: Sequence[object]
    if before.spans == after.spans and len(before.plain) == len(after.plain):
        old, new = before.plain, after.plain
    else:
        old, new = _signs(before), _signs(after)
    same = _shared(old, new)
    first = cell_len(after.plain[:same])
    if before.cell_length != after.cell_length:
        return first, width
    behind = _shared(old[same:][::-1], new[same:][::-1])
    return first, after.cell_length - cell_len(after.plain[len(new) - behind :])


def _signs(line: Content) -> list[Sign]:
    styles: list[tuple[object, ...]] = [()] * len(line.plain)
    for span in line.spans:
        for at in range(max(0, span.start), min(span.end, len(styles))):
            styles[at] += (span.style,)
    return list(zip(line.plain, styles, strict=True))


def _shared(old: Sequence[object], new: Sequence[object]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


_T = TypeVar("_T")


class TextBlock(Static):
    """A line or a paragraph of text, with a height set by the style sheet.

    Lines that fit are drawn one at a time: Textual would draw all of them for each
    change, with the position of every piece of text, which only a selection needs.
    Between two styles, a changed line is put between the borders of the one before.
    """

    ALLOW_SELECT = False  # a terminal's own selection works everywhere

    def __init__(self, name: str, glyphs: Glyphs) -> None:
        super().__init__(id=name, markup=False)
        self._glyphs = glyphs
        self._content: Content | None = None
        self._drawn: Sequence[Content] = ()
        self._longest = 0  # cells of its longest line
        self._strips: list[Strip] = []  # with borders; empty: to be drawn with them
        self._strips_region = Region()
        self._outdated: set[int] = set()  # lines of these

    def render(self) -> Content:
        """Return the text."""
        return self._content or Content()

    def render_line(self, y: int) -> Strip:
        """Render a line of the text."""
        width = self.size.width
        if not self._fits(width):
            return super().render_line(y)
        style = self.visual_style
        if y >= len(self._drawn):
            return Strip.blank(width, style.rich_style)
        line = self._drawn[y]
        segments = [
            Segment(text, (style + text_style).rich_style)
            for text, text_style in line.render(style, end="")
        ]
        return Strip(segments, line.cell_length).adjust_cell_length(
            width, style.rich_style
        )

    # the only method of Textual through which every change goes
    def _set_dirty(self, *regions: Region) -> None:
        super()._set_dirty(*regions)
        if regions:
            top = self.gutter.top
            self._outdated.update(
                top + y for region in regions for y in region.line_range
            )
        else:
            self._strips = []

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render all lines; of those that have not changed, nothing."""
        if not self._strips or crop != self._strips_region:
            self._strips, self._strips_region = super().render_lines(crop), crop
        elif self._outdated:
            self._draw_outdated()
        self._outdated.clear()
        return self._strips

    def _draw_outdated(self) -> None:
        """Draw changed lines between the borders of the ones before."""
        top, right, bottom, left = self.gutter
        background = self.background_colors[1]
        filters = self.get_line_filters()
        before = self._strips[top]
        begin, end = before.crop(0, left), before.crop(before.cell_length - right)
        for y in self._outdated.intersection(range(top, len(self._strips) - bottom)):
            strip = self.render_line(y - top)
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, background)
            self._strips[y] = Strip.join([begin, strip, end])

    def _fits(self, width: int) -> bool:
        """Return whether the text is left-aligned, and none of its lines is wrapped."""
        is_left = self.styles.text_align in {"left", "start"}
        return is_left and self._longest <= width

    def say(self, words: str | Content) -> None:
        """Show *words*; only changes are sent."""
        content = Content(words) if isinstance(words, str) else words
        content = substitute_glyphs(self._glyphs, content)
        if self._content is not None and content.is_same(self._content):
            return
        width = self.size.width
        before, did_fit = self._drawn, self._fits(width)
        self._content = content
        self._drawn = content.split("\n", allow_blank=True)
        self._longest = max(line.cell_length for line in self._drawn)
        if did_fit and self._fits(width):
            self.refresh(*changes(before, self._drawn, width))
        else:
            self.refresh()


class Ground(Container):
    """Holds panels; its own lines, all of them blank, are drawn as one."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return blank lines."""
        return super().render_lines(Region(0, 0, crop.width, 1)) * crop.height


class TooSmall(TextBlock):
    """The message for a window that is too small."""

    DEFAULT_CSS = """
    TooSmall { display: none; height: 1fr; padding: 1; }
    """

    def __init__(self, glyphs: Glyphs, instead: str = "siftlog watch --plain") -> None:
        """Create the message.

        Args:
            glyphs: the characters that the terminal supports.
            instead: the command for small windows.
        """
        super().__init__("small", glyphs)
        self._instead = instead

    def on_mount(self) -> None:
        """Set the constant text."""
        self.say(
            "The monitor needs a window of 80 columns and 24 lines: make this one "
            f"larger, or leave with q and use '{self._instead}'."
        )


class TitledPanel(TextBlock, Generic[_T]):
    """One drawing under a title, placed by the style sheet."""

    def __init__(
        self,
        draw: Callable[[_T, Room], Content],
        title: str,
        glyphs: Glyphs,
        name: str,
    ) -> None:
        super().__init__(name, glyphs)
        self.border_title = title
        self._draw = draw
        self._value: _T | None = None

    def show(self, seen: _T) -> None:
        """Draw new data."""
        self._value = seen
        self._fit()

    def on_resize(self, event: Resize) -> None:
        """Draw again for the new size."""
        del event
        self._fit()

    def _fit(self) -> None:
        width, height = self.content_size
        if self._value is not None and width and height:
            room = Room(width=width, height=height, glyphs=self._glyphs)
            self.say(self._draw(self._value, room))


class TextLine(Widget):
    """Shows a text at the left, cut for the one at the right."""

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
    def texts(self) -> tuple[str, str]:
        """The texts at the left and at the right, as given."""
        return self._left, self._right

    def say(self, left: str, right: str = "") -> None:
        """Show other texts; unchanged ones are free."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render the only line."""
        width = self.size.width
        text = laid_out(self._left, self._right, width, self._fill) if not y else ""
        text = displayable_text(self._glyphs, text)
        return Strip([Segment(text, self.rich_style)]).adjust_cell_length(
            width, self.rich_style
        )


def laid_out(left: str, right: str, width: int, fill: str = " ") -> str:
    """Lay out both texts on one safe line of *width* cells, blank at both ends."""
    right = one_line(right, width - 2)
    left = one_line(left, width - 2 - (cell_len(right) + 2 if right else 0))
    gap = max(0, width - 2 - cell_len(left) - cell_len(right))
    # a rule has a blank at both ends
    ends = [" " if text else "" for text in (left, right)]
    rule = fill * (gap - len("".join(ends)))
    return f" {left}{rule.join(ends) if rule else ' ' * gap}{right} "
