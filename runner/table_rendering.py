r"""Renders tables of typed cells as terminal text, Markdown, or LaTeX.

A table is declared once and rendered in any form:

    >>> table = PrintTable(
    ...     title="Screening of 375 records",
    ...     columns=(
    ...         PrintColumn(name="Metric"),
    ...         PrintColumn(name="value", kind="number", group="gpt"),
    ...         PrintColumn(name="95% interval", kind="interval", group="gpt"),
    ...         PrintColumn(name="n", kind="number"),
    ...     ),
    ...     rows=(("Sensitivity", 0.9333, (0.88, 0.98), 111),),
    ... )
    >>> print(typeset([table], "markdown"))
    **Screening of 375 records**
    <BLANKLINE>
    | Metric | gpt | gpt: 95% interval | n |
    | :--- | ---: | :---: | ---: |
    | Sensitivity | 0.933 | [0.880, 0.980] | 111 |
    >>> print(typeset([table], "latex").splitlines()[6])
    \begin{tabular}{lS[table-format=1.3]cS[table-format=3.0]}

LaTeX uses booktabs and siunitx; longtable for long tables, graphicx for wide ones, as
the comment above each table notes. Numbers are in columns of type S, aligned at the
decimal point; an undefined one is n/a, never 0. Keys are comments at the end of their
row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Literal, TypeAlias

from store.document import Block, as_text, wide_table
from store.printable import printable

Form: TypeAlias = Literal["text", "markdown", "latex"]

Kind: TypeAlias = Literal["text", "key", "number", "change", "interval", "changes"]
"""Content of a column: text; a key, such as a metric's path; a number, or a signed
difference; an interval, or that of a difference."""

Ends: TypeAlias = tuple[float | None, float | None]

PrintCell: TypeAlias = str | float | Ends | None
"""A cell of its column's kind; None is undefined, an empty text is no content."""

UNDEFINED = "n/a"

PAGE_ROWS = 45
"""Rows that fit a page of LaTeX; a longer table spans pages."""

PAGE_WIDTH = 84
"""Approximate characters of small type per line of LaTeX's article class; a wider table
is scaled down."""

WRAPPED = 40
"""Maximum characters of an unwrapped text cell in LaTeX."""

FIXED = (0.001, 1000.0)
"""Absolute values between which three decimals suffice."""
TINY = 1e-30
"""Smaller values are 0 up to the arithmetic: the end of an interval may be 3e-208."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintColumn:
    """A column of a table, or one of several under a common heading."""

    name: str
    kind: Kind = "text"
    group: str = ""  #: the common heading of neighbouring columns, such as a model

    @property
    def heading(self) -> str:
        """The name in one-line headings; for a group, on its first column only."""
        if not self.group:
            return self.name
        is_value = self.kind in {"number", "change"} and self.name != "n"
        return self.group if is_value else f"{self.group}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintTable:
    """A table with typed columns."""

    title: str
    columns: tuple[PrintColumn, ...]
    rows: tuple[tuple[PrintCell, ...], ...]
    note: str = ""  #: a sentence below it, such as the method of intervals


def typeset(tables: Iterable[PrintTable], form: Form) -> str:
    """Render the tables, separated by blank lines."""
    if form == "text":
        pages = [[*_blocks(table), ""] for table in tables]
        return as_text(list(chain.from_iterable(pages))[:-1])
    lines = _markdown if form == "markdown" else _latex
    return "\n\n".join("\n".join(lines(table)) for table in tables)


def format_number(
    value: float | None, *, signed: bool = False, grouped: bool = True
) -> str:
    """Format a number with the digits that a reader needs.

    Args:
        value: None: undefined.
        signed: show a plus sign, as for differences.
        grouped: separate thousands with commas.
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    sign = "+" if signed else ""
    if isinstance(value, int):
        return f"{value:{sign}{',' if grouped else ''}}"
    if abs(value) < TINY:
        value = 0.0
    least, most = FIXED
    is_plain = value == 0 or least <= abs(value) < most
    # the sign of 0.0 is meaningless
    return f"{value + 0.0:{sign}{'.3f' if is_plain else '.3g'}}"


def format_ends(
    ends: Sequence[float | None], *, signed: bool = False, grouped: bool = True
) -> list[str]:
    """Format the ends of an interval, both with the decimals of the wider one.

    >>> format_ends([3.63e-12, 1.0])
    ['0.000', '1.000']
    """
    widest = max((abs(end) for end in ends if end is not None), default=0.0)
    if FIXED[0] <= widest < FIXED[1]:
        ends = [end if end is None else round(end, 3) for end in ends]
    return [format_number(end, signed=signed, grouped=grouped) for end in ends]


def _cell(cell: PrintCell, kind: Kind, *, grouped: bool = True) -> str:
    """Format a cell as plain text."""
    if cell is None:
        return UNDEFINED
    if isinstance(cell, tuple):
        if None in cell:
            return UNDEFINED
        signed = kind == "changes"
        return f"[{', '.join(format_ends(cell, signed=signed))}]"
    if isinstance(cell, str):
        return " ".join(printable(cell).split())
    return format_number(cell, signed=kind == "change", grouped=grouped)


def _cells(table: PrintTable) -> Iterator[tuple[str, ...]]:
    kinds = [column.kind for column in table.columns]
    for row in table.rows:
        yield tuple(map(_cell, row, kinds))


def _headings(table: PrintTable) -> tuple[str, ...]:
    return tuple(_cell(column.heading, "text") for column in table.columns)


def _blocks(table: PrintTable) -> Iterator[Block]:
    if table.title:
        yield _cell(table.title, "text")
    # an interval follows its value: terminals are narrow
    joined = [
        at
        for at, column in enumerate(table.columns)
        if at and column.kind in {"interval", "changes"} and column.group
    ]
    rows = []
    for cells in (_headings(table), *_cells(table)):
        row = list(cells)
        for at in reversed(joined):
            ends = row.pop(at)
            # the value's heading is enough
            row[at - 1] += f" {ends}" if ends.startswith("[") else ""
        rows.append(row)
    yield wide_table(rows[0], rows[1:])
    if table.note:
        yield _cell(table.note, "text")


_ALIGNED = {"text": ":---", "key": ":---", "interval": ":---:", "changes": ":---:"}


def _markdown(table: PrintTable) -> Iterator[str]:
    if table.title:
        yield from (f"**{escape_markdown(_cell(table.title, 'text'))}**", "")
    yield _piped(escape_markdown(head) for head in _headings(table))
    yield _piped(_ALIGNED.get(column.kind, "---:") for column in table.columns)
    for row in _cells(table):
        yield _piped(
            # a key is code; a backtick would end it
            f"`{cell.replace('|', '¦').replace('`', chr(0x2BC))}`"
            if column.kind == "key" and cell
            else escape_markdown(cell)
            for cell, column in zip(row, table.columns, strict=True)
        )
    if table.note:
        yield from ("", escape_markdown(_cell(table.note, "text")))


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    """Escapes text so that no Markdown reader takes it for markup."""
    return re.sub(r"([\\`*_{}<>#|~])", r"\\\1", text)


def _latex(table: PrintTable) -> Iterator[str]:
    is_long = len(table.rows) > PAGE_ROWS
    by_column = list(zip(table.columns, _by_column(table), strict=True))
    visible = [(column, cells) for column, cells in by_column if column.kind != "key"]
    columns = [_latex_column(column, cells) for column, cells in visible]
    layout = "".join(layout for layout, _ in columns)
    is_wide = not is_long and sum(map(_width, *zip(*visible, strict=True))) > PAGE_WIDTH
    packages = ["booktabs", "longtable"] if is_long else ["booktabs"]
    packages += ["graphicx", "siunitx"] if is_wide else ["siunitx"]
    yield f"% needs \\usepackage{{{','.join(packages)}}}"
    title, note = escape_latex(table.title), escape_latex(table.note)
    caption = f"\\caption{{{title}{'. ' if note else ''}{note}}}"
    label = f"\\label{{tab:{_slug(table.title)}}}"
    if is_long:
        yield "\\begingroup\\footnotesize"
        yield f"\\begin{{longtable}}{{{layout}}}"
        yield f"{caption}{label}\\\\"
    else:
        yield from ("\\begin{table}", "\\centering", caption, label, "\\small")
        if is_wide:
            yield "\\resizebox{\\linewidth}{!}{%"
        yield f"\\begin{{tabular}}{{{layout}}}"
    yield "\\toprule"
    yield from _latex_headings([column for column, _ in visible])
    yield "\\midrule"
    if is_long:
        yield "\\endhead"
    keys = _latex_keys(by_column, len(table.rows))
    rows = zip(*(cells for _, cells in columns), strict=True)
    for row, key in zip(rows, keys, strict=True):
        yield f"{' & '.join(row)} \\\\{key}"
    yield "\\bottomrule"
    if is_long:
        yield from ("\\end{longtable}", "\\endgroup")
    else:
        yield "\\end{tabular}%\n}" if is_wide else "\\end{tabular}"
        yield "\\end{table}"


def _latex_keys(
    columns: Sequence[tuple[PrintColumn, Sequence[PrintCell]]], rows: int
) -> list[str]:
    """Return each row's keys as a comment, for the author of the page."""
    key_columns = [cells for column, cells in columns if column.kind == "key"]
    return [
        "".join(f" % {_cell(cells[at], 'key')}" for cells in key_columns)
        for at in range(rows)
    ]


def _width(column: PrintColumn, cells: Sequence[PrintCell]) -> int:
    """Return the width of a column in characters, with its margin."""
    texts = [column.name, *(_cell(cell, column.kind) for cell in cells)]
    return min(max(map(len, texts)), WRAPPED) + 2


def _by_column(table: PrintTable) -> list[tuple[PrintCell, ...]]:
    return list(zip(*table.rows, strict=True)) or [()] * len(table.columns)


def _latex_column(
    column: PrintColumn, cells: Sequence[PrintCell]
) -> tuple[str, list[str]]:
    """Return the layout of a column, and its cells."""
    match column.kind:
        case "text" | "key":
            texts = [_cell(cell, "text") for cell in cells]
            is_long = max(map(len, texts), default=0) > WRAPPED
            return "p{5.5cm}" if is_long else "l", [
                escape_latex(text) for text in texts
            ]
        case "interval" | "changes":
            return "c", [_latex_ends(cell, column.kind) for cell in cells]
        case "number" | "change":
            return _latex_numbers(column.kind, cells)


def _latex_numbers(kind: Kind, cells: Sequence[PrintCell]) -> tuple[str, list[str]]:
    texts = [_cell(cell, kind, grouped=False) for cell in cells]
    matches = [re.fullmatch(r"([+-]?)(\d+)(?:\.(\d+))?", text) for text in texts]
    numbers = [match for match in matches if match is not None]
    if any(re.match(r"[+-]?\d.*e", text) for text in texts):
        # an S column needs one format for all numbers
        is_number = re.compile(r"[+-]?\d").match
        return "r", [
            f"\\num{{{t}}}" if is_number(t) else escape_latex(t) for t in texts
        ]
    whole = max((len(match[2]) for match in numbers), default=1)
    parts = max((len(match[3] or "") for match in numbers), default=0)
    sign = "+" if kind == "change" else "-" if any(e[1] for e in numbers) else ""
    layout = f"S[table-format={sign}{whole}.{parts}]"
    # braces keep siunitx from parsing text
    return layout, [
        text if match is not None else f"{{{escape_latex(text)}}}"
        for text, match in zip(texts, matches, strict=True)
    ]


def _latex_ends(cell: PrintCell, kind: Kind) -> str:
    if not isinstance(cell, tuple) or None in cell:
        return escape_latex(_cell(cell, kind))
    signed = kind == "changes"
    ends = format_ends(cell, signed=signed, grouped=False)
    form = "\\num[print-implicit-plus]" if signed else "\\num"
    # braces keep a bracket at the start of a row from being an argument of \\
    return f"{{[{', '.join(f'{form}{{{end}}}' for end in ends)}]}}"


def _latex_headings(columns: Sequence[PrintColumn]) -> Iterator[str]:
    if any(column.group for column in columns):
        headings, rules, at = [], [], 1
        for group, group_columns in groupby(columns, key=lambda column: column.group):
            size = len(list(group_columns))
            if group:
                head = escape_latex(_cell(group, "text"))
                headings.append(f"\\multicolumn{{{size}}}{{c}}{{{head}}}")
                rules.append(f"\\cmidrule(lr){{{at}-{at + size - 1}}}")
            else:
                headings += [""] * size
            at += size
        yield f"{' & '.join(headings)} \\\\"
        yield " ".join(rules)
    yield f"{' & '.join(f'{{{escape_latex(column.name)}}}' for column in columns)} \\\\"


_SPECIAL = {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "`": "\\textasciigrave{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def escape_latex(text: str) -> str:
    """Escape text for LaTeX."""
    # after \\, a bracket or a star would be its argument
    guard = "{}" if text.startswith(("[", "*")) else ""
    escaped = "".join(_SPECIAL.get(char, char) for char in text)
    # two hyphens would become a dash
    return guard + escaped.replace("--", "-{}-")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "table"
