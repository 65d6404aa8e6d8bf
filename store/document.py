r"""Documents for people: blocks of content, rendered as text that fits a terminal.

An author says what a page holds; the renderer makes text from outside printable, aligns
tables, and wraps or cuts what is too wide. A page is any sequence of blocks:

    >>> page = [
    ...     Heading("PMC1", level=1),
    ...     Fact("title", "Warfarin dose by genotype"),
    ...     "  2 variants, best first",
    ...     TableBlock(
    ...         [Numbers("rank"), Numbers("p", decimals=2), Words("variant")],
    ...         [(1, 0.9341, "rs1799853"), (2, None, "rs1057910")],
    ...         total=14,
    ...     ),
    ...     Quote("Carriers needed less."),
    ... ]
    >>> print(as_text(page))
    PMC1
    title      Warfarin dose by genotype
      2 variants, best first
      rank     p  variant
         1  0.93  rs1799853
         2     -  rs1057910
      and 12 more
          | Carriers needed less.

The text keeps its blocks, so that a narrower terminal can split tables at their columns
and continue lines below their labels:

    >>> print("\n".join(fitted_lines(as_text(page[3:4]), 18)))
      rank     p
         1  0.93
         2     -
      rank  variant
         1  rs1799853
         2  rs1057910
      and 12 more

A plain string is a line of our own text, its indentation included. It is never cut or
wrapped, except by a terminal that is too narrow for it.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias

from store.printable import LIMIT, cut, display_width, one_line, padded, shortened

WIDTH = 80
"""Cells of a page: the narrowest terminal in common use."""

NONE = "-"
"""Shown where there is no value."""

LABEL_WIDTH = 11
"""Cells of a label at the margin of a page, with the blanks after it."""

_GAP = "  "
_QUOTED = "      | "


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a page (level 1) or of a section, before which a line is left blank.

    A name that is too long is cut.
    """

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Fact:
    """A text behind its label, wrapped below its own beginning; without text, nothing.

    The text may be empty where it says nothing, so that no line is shown. A *wide* one
    is a line that only a terminal wraps which is too narrow for it.
    """

    label: str
    text: str
    indent: int = 0
    width: int = LABEL_WIDTH  #: cells of the label, with the blanks after it
    is_cut: bool = False  #: the text stays on one line, cut where it is too long
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """A text from outside, set off by a margin so that it cannot pass for ours."""

    text: str


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers, aligned to the right.

    Whole numbers have thousands separated, others have *decimals*. A text is shown as
    it is, and None or NaN as `-`.
    """

    title: str
    decimals: int = 4


@dataclass(frozen=True, slots=True)
class Words:
    """A column of texts, aligned to the left; None is shown as `-`, "" stays blank."""

    title: str
    width: int | None = None  #: longer texts are cut
    keeps_end: bool = False  #: they are cut in their middle


Column: TypeAlias = Numbers | Words
Cell: TypeAlias = str | float | None


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows of typed cells under the titles of their columns, if these have any.

    A row is cut at the width of the page. A *wide* one is not: a terminal that is too
    narrow splits the table at its columns, and repeats the first one.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    indent: int = 2
    total: int = 0  #: rows in all; those that are not listed are counted below
    rest: str = ""  #: says after that count where they are, or what
    details: Sequence[str] = ()  #: a line below each row, with its indentation
    is_wide: bool = False

    def filled(self) -> TableBlock:
        """Returns the table without the columns in which all cells are None."""
        filled = [
            at
            for at in range(len(self.columns))
            if any(row[at] is not None for row in self.rows)
        ]
        return replace(
            self,
            columns=[self.columns[at] for at in filled],
            rows=[[row[at] for at in filled] for row in self.rows],
        )


def wide_table(
    titles: Sequence[str], rows: Iterable[Sequence[str | None]], indent: int = 0
) -> TableBlock:
    """Returns a table of texts that may exceed the page."""
    columns = [Words(title) for title in titles]
    return TableBlock(columns, list(rows), indent=indent, is_wide=True)


Block: TypeAlias = str | Heading | Fact | Quote | TableBlock


class PageText(str):
    """The text of a page, with the blocks that it was made from.

    A text that is made from this one, such as a part of it, is plain: it has no blocks.
    """

    __slots__ = ("blocks",)
    blocks: tuple[Block, ...]

    def __new__(cls, text: str, blocks: Iterable[Block]) -> Self:
        """Returns *text*, which shows *blocks*."""
        page_text = super().__new__(cls, text)
        page_text.blocks = tuple(blocks)
        return page_text

    def __reduce__(self) -> tuple[type[PageText], tuple[str, tuple[Block, ...]]]:
        return PageText, (str(self), self.blocks)


def blocks_of(text: str) -> Sequence[Block]:
    """Returns the blocks of a text; the lines of one that is plain."""
    if isinstance(text, PageText):
        return text.blocks
    return text.removesuffix("\n").split("\n")


def as_text(blocks: Iterable[Block], width: int = WIDTH) -> PageText:
    """Renders blocks for a terminal."""
    page = tuple(blocks)
    return PageText("\n".join(text_lines(page, width)), page)


def text_lines(blocks: Iterable[Block], width: int = WIDTH) -> Iterator[str]:
    """Yields the lines of blocks for a terminal of *width* cells."""
    for block in blocks:
        match block:
            case str():
                yield one_line(block)
            case Heading():
                if block.level > 1:
                    yield ""
                yield cut(one_line(block.text), width)
            case Fact():
                yield from _fact_lines(block, width)
            case Quote():
                yield from _quoted(block)
            case TableBlock():
                yield from _table_lines(block, width)


def fitted_lines(text: str, width: int) -> Iterator[str]:
    """Yields the lines of a text for a terminal of *width* cells, which may be few.

    Lines are wrapped between words, and continued with an indentation. A table of a
    `PageText` that is too wide is split at its columns.
    """
    for block in blocks_of(text):
        match block:
            case Quote():
                for line in _quoted(block):
                    yield from _wrapped(line, width, _QUOTED)
            case TableBlock(details=()):
                yield from _split_lines(block, width)
            case Fact(is_wide=True):
                hang = " " * display_width(_label(block))
                for line in _fact_lines(block, width):
                    yield from _wrapped(line, width, hang)
            case Fact(is_cut=False):
                yield from _fact_lines(block, min(width, WIDTH))
            case _:
                for line in text_lines([block]):
                    yield from _wrapped(line, width)


def _wrapped(line: str, width: int, margin: str | None = None) -> list[str]:
    """Wraps a line between words; *margin* begins the lines on which it continues."""
    if display_width(line) <= width:
        return [line]
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    if margin is None or len(margin) > width // 2:
        margin = indent + _GAP
    elif line.startswith(margin):
        text, indent = line[len(margin) :], margin
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _label(fact: Fact) -> str:
    label = one_line(fact.label)
    is_long = 0 < fact.width <= display_width(label)
    return " " * fact.indent + (f"{label} " if is_long else padded(label, fact.width))


def _fact_lines(fact: Fact, width: int) -> Iterator[str]:
    label = _label(fact)
    # wrapped lines are short, so that a long text need not be cut
    text = one_line(fact.text, line=LIMIT)
    if fact.is_wide and text:
        yield label + text
        return
    if fact.is_cut:
        yield cut(label + text, width).rstrip()
        return
    room = max(1, width - display_width(label))
    for line in textwrap.wrap(text, room, break_on_hyphens=False):
        yield cut(label + line, width)
        label = " " * display_width(label)


def _quoted(quote: Quote) -> Iterator[str]:
    for line in quote.text.splitlines() or [""]:
        yield f"{_QUOTED}{one_line(line)}"


def _table_lines(table: TableBlock, width: int) -> Iterator[str]:
    margin = " " * table.indent
    has_titles = any(column.title for column in table.columns)
    for at, cells in enumerate(zip(*_columns(table), strict=True), not has_titles):
        line = (margin + _GAP.join(cells)).rstrip()
        yield line if table.is_wide else cut(line, width)
        if at and table.details:
            yield cut(one_line(table.details[at - 1]), width)
    if more := _unlisted(table):
        yield margin + more


def _split_lines(table: TableBlock, width: int) -> Iterator[str]:
    """Yields as many tables as the width needs; the first column begins each."""
    lines = list(_table_lines(table, WIDTH))
    if max(map(display_width, lines), default=0) <= width:
        yield from lines
        return
    columns = _columns(table)
    widths = [display_width(column[0]) for column in columns if column]
    groups: list[list[int]] = [[0]]
    for at in range(1, len(widths)):
        used = sum(widths[index] + len(_GAP) for index in groups[-1])
        if len(groups[-1]) > 1 and table.indent + used + widths[at] > width:
            groups.append([0])
        groups[-1].append(at)
    for group in groups:
        hang = table.indent + sum(widths[at] + len(_GAP) for at in group[:-1])
        for cells in zip(*(columns[at] for at in group), strict=True):
            line = (" " * table.indent + _GAP.join(cells)).rstrip()
            yield from _wrapped(line, width, " " * hang)
    if more := _unlisted(table):
        yield " " * table.indent + more


def _columns(table: TableBlock) -> list[list[str]]:
    """Returns the texts of each column, equally wide: its title, if any, and cells."""
    has_titles = any(column.title for column in table.columns)
    return [
        _aligned(column, [row[at] for row in table.rows])[not has_titles :]
        for at, column in enumerate(table.columns)
    ]


def _aligned(column: Column, cells: Sequence[Cell]) -> list[str]:
    """Returns the title and the cells of a column, equally wide."""
    texts = [column.title, *(_cell(column, cell) for cell in cells)]
    width = max(map(display_width, texts))
    is_number = isinstance(column, Numbers)
    return [padded(text, width, is_number=is_number) for text in texts]


def _cell(column: Column, cell: Cell) -> str:
    if cell is None:
        return NONE
    if isinstance(column, Numbers) and isinstance(cell, float):
        return number(cell, column.decimals)
    text = one_line(cell) if isinstance(cell, str) else f"{cell:,}"
    if isinstance(column, Numbers) or column.width is None:
        return text
    return (shortened if column.keeps_end else cut)(text, column.width)


def _unlisted(table: TableBlock) -> str:
    """Says how many rows are not listed; empty where all are."""
    left = table.total - len(table.rows)
    return f"and {left:,} more{table.rest}" if left > 0 else ""


def number(value: float | None, decimals: int = 4) -> str:
    """Formats a number; None and NaN as `NONE`, an infinite one as `inf`."""
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.{decimals}f}"


_TEN = 9.95
"""From here on a figure with one decimal is rounded to 10.0."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def plural(n: int, noun: str, many: str = "") -> str:
    """`1 sentence`, `2 sentences`; *many* where it is not made by an s."""
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


_P_VALUE: Final = re.compile(r"\bp=\s*([=<>≤≥]=?)\s*")


def answer_words(text: str) -> str:
    """Return the answer of a verdict as it is shown.

    Some records write `p=` before a p-value with a sign of its own. Stored verdicts
    keep that form, so that those of different versions can be compared.

    >>> answer_words("p== 0.008, sig=yes")
    'p=0.008, sig=yes'
    """
    return _P_VALUE.sub(r"p\1", text)


def floored(share: float) -> str:
    """Format a lower bound with three decimals, never rounded up.

    >>> floored(0.94999)
    '0.949'
    """
    return f"{int(share * 1000 + 1e-9) / 1000:.3f}"


def duration(seconds: float) -> str:
    """Formats a duration in the two largest suitable units.

    >>> duration(0.41), duration(41), duration(125), duration(840)
    ('0.4 s', '41 s', '2 min 05', '14 min')
    >>> duration(12_420), duration(180_000), duration(28_080_000)
    ('3 h 27', '2 d 02 h', '325 d')
    """
    if seconds < _TEN:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    steps = (
        (2 * _MINUTE, f"{whole} s"),
        (10 * _MINUTE, f"{whole // _MINUTE} min {whole % _MINUTE:02}"),
        (_HOUR, f"{whole // _MINUTE} min"),
        (_DAY, f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02}"),
        (10 * _DAY, f"{whole // _DAY} d {whole % _DAY // _HOUR:02} h"),
    )
    return next((text for end, text in steps if whole < end), f"{whole // _DAY} d")
