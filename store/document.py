"""Documents for people: blocks of content, rendered as terminal text, Markdown or JSON.

An author says what a page holds; the renderers make text from outside printable, align
tables, and wrap or cut what is too wide. A page is any sequence of blocks:

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
    >>> print(as_markdown(page[:2]))
    # PMC1
    <BLANKLINE>
    - title: Warfarin dose by genotype
    >>> as_json(page[1:2])
    [{'label': 'title', 'text': 'Warfarin dose by genotype'}]

A plain string is a line of our own text, its indentation included. It is never cut or
wrapped: a terminal folds it at its width.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from store.printable import LIMIT, cut, display_width, one_line, padded, shortened

WIDTH = 80
"""Cells of a page: the narrowest terminal in common use."""

NONE = "-"
"""Shown where there is no value."""

LABEL_WIDTH = 11
"""Cells of a label at the margin of a page, with the blanks after it."""

_GAP = "  "


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

    The text may be empty where it says nothing, so that no line is shown.
    """

    label: str
    text: str
    indent: int = 0
    width: int = LABEL_WIDTH  #: cells of the label, with the blanks after it
    is_cut: bool = False  #: the text stays on one line, cut where it is too long


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
    """Rows of typed cells under the titles of their columns.

    A row is cut at the width of the page. A *wide* one is not: a terminal that is too
    narrow splits the table at its columns, for which no cell may be blank.
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


Block: TypeAlias = str | Heading | Fact | Quote | TableBlock


def as_text(blocks: Iterable[Block], width: int = WIDTH) -> str:
    """Renders blocks for a terminal."""
    return "\n".join(text_lines(blocks, width))


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
                for line in block.text.splitlines() or [""]:
                    yield f"      | {one_line(line)}"
            case TableBlock():
                yield from _table_lines(block, width)


def _fact_lines(fact: Fact, width: int) -> Iterator[str]:
    label = " " * fact.indent + padded(one_line(fact.label), fact.width)
    # wrapped lines are short, so that a long text need not be cut
    text = one_line(fact.text, line=LIMIT)
    if fact.is_cut:
        yield cut(label + text, width).rstrip()
        return
    room = width - display_width(label)
    for line in textwrap.wrap(text, room, break_on_hyphens=False):
        yield cut(label + line, width)
        label = " " * display_width(label)


def _table_lines(table: TableBlock, width: int) -> Iterator[str]:
    columns = [
        _aligned(column, [row[at] for row in table.rows])
        for at, column in enumerate(table.columns)
    ]
    margin = " " * table.indent
    for at, cells in enumerate(zip(*columns, strict=True)):
        line = (margin + _GAP.join(cells)).rstrip()
        yield line if table.is_wide else cut(line, width)
        if at and table.details:
            yield cut(one_line(table.details[at - 1]), width)
    if more := _unlisted(table):
        yield margin + more


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


def as_markdown(blocks: Iterable[Block]) -> str:
    """Renders blocks as Markdown, whose text no reader takes for markup."""
    parts: list[str] = []
    has_facts = False
    for block in blocks:
        # facts that follow one another are one list
        glue = "\n" if has_facts and isinstance(block, Fact) else "\n\n"
        if markdown := _markdown(block):
            parts += [glue, markdown] if parts else [markdown]
            has_facts = isinstance(block, Fact)
    return "".join(parts)


def _markdown(block: Block) -> str:
    match block:
        case str():
            return escape_markdown(one_line(block.strip()))
        case Heading():
            return f"{'#' * block.level} {escape_markdown(one_line(block.text))}"
        case Fact():
            parts = filter(None, (block.label.strip(), block.text))
            return f"- {': '.join(escape_markdown(one_line(part)) for part in parts)}"
        case Quote():
            lines = block.text.splitlines() or [""]
            return "\n".join(f"> {escape_markdown(one_line(line))}" for line in lines)
        case TableBlock():
            return "\n".join(_markdown_rows(block))


def _markdown_rows(table: TableBlock) -> Iterator[str]:
    columns = table.columns
    yield _piped(column.title for column in columns)
    marks = ("---:" if isinstance(column, Numbers) else ":---" for column in columns)
    yield f"| {' | '.join(marks)} |"
    for row in table.rows:
        yield _piped(map(_cell, columns, row))
    if more := _unlisted(table):
        yield f"\n{escape_markdown(more)}"


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, cells))} |"


def escape_markdown(text: str) -> str:
    """Escapes text so that no Markdown reader takes it for markup."""
    return re.sub(r"([\\`*_{}<>#|~])", r"\\\1", text)


def as_json(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Returns blocks as values for JSON: cells keep their types, texts their length."""
    return [_json(block) for block in blocks if block != ""]


def _json(block: Block) -> dict[str, Any]:
    match block:
        case str():
            return {"text": block.strip()}
        case Heading():
            return {"heading": block.text, "level": block.level}
        case Fact():
            return {"label": block.label.strip(), "text": block.text}
        case Quote():
            return {"quote": block.text}
        case TableBlock():
            rows = [[_json_cell(cell) for cell in row] for row in block.rows]
            return {
                "columns": [column.title for column in block.columns],
                "rows": rows,
                "total": max(block.total, len(rows)),
            }


def _json_cell(cell: Cell) -> Cell:
    """Returns a cell; NaN and infinities, which JSON does not have, as None."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
