r"""Writes blocks of a methods text as Markdown or LaTeX, with names beside the values.

A value in Markdown stands between two comments of HTML, which readers do not see and
pandoc keeps:

    <!--siftlog:count:tasks.failed-->3<!--/siftlog-->

In LaTeX it is the second argument of a macro, which sets it and nothing else:

    \siftlogvalue{count:tasks.failed}{3}

A line before the text names the run, the scoring and the last event that it was made
from; `siftlog check` needs it only to say that a value is stale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, assert_never

from jobs.kit.methods.blocks import Block, Bullets, Line, MethodsTable, Paragraph
from jobs.kit.methods.references import QuotedValue, encoded
from runner.table_rendering import escape_latex
from store.document import Heading
from store.printable import one_line

SOURCE: Final = "siftlog-source"
"""Begins the line that names the run."""

MACRO: Final = "siftlogvalue"


def source_line(run: str, scoring: int | None, seq: int) -> str:
    """Return the fields that name what a text was made from."""
    return f"{SOURCE} run={encoded(run)} scoring={scoring or 0} seq={seq}"


def markdown(blocks: Iterable[Block], source: str) -> str:
    """Return the blocks as Markdown, for pandoc and for GitHub."""
    parts = [f"<!--{source}-->", *(_markdown(block) for block in blocks)]
    return "\n\n".join(parts) + "\n"


def latex(blocks: Iterable[Block], source: str) -> str:
    r"""Return the blocks as LaTeX, to be read with `\input`."""
    head = (
        f"% {source}\n"
        "% needs \\usepackage{booktabs,longtable}\n"
        f"\\providecommand{{\\{MACRO}}}[2]{{#2}}"
    )
    return "\n\n".join([head, *(_latex(block) for block in blocks)]) + "\n"


def markdown_value(reference: QuotedValue, blank: str = " ") -> str:
    """Return a value with its name, for Markdown."""
    # in a value, an apostrophe stays one
    text = safe_markdown(reference.text).replace("'", "\\'").replace(" ", blank)
    return f"<!--siftlog:{reference.name}-->{text}<!--/siftlog-->"


def latex_value(reference: QuotedValue) -> str:
    """Return a value with its name, for LaTeX."""
    return f"\\{MACRO}{{{reference.name}}}{{{escape_latex(reference.text)}}}"


_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]#|~$^!\"@])")


def safe_markdown(text: str) -> str:
    """Escape text so that no reader of Markdown takes any of it for markup."""
    safe = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    safe = _MARKDOWN.sub(r"\\\1", safe.replace(">", "&gt;"))
    # pandoc makes dashes and dots of these, and GitHub makes links
    safe = safe.replace("--", "-\\-").replace("--", "-\\-").replace("..", ".\\.")
    return safe.replace("://", "\\://").replace("www.", "www\\.")


def _pieces(
    line: Line, text: Callable[[str], str], value: Callable[[QuotedValue], str]
) -> str:
    return "".join(
        text(piece) if isinstance(piece, str) else value(piece) for piece in line
    )


def _markdown_line(line: Line) -> str:
    return _pieces(line, safe_markdown, markdown_value)


def _markdown(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {safe_markdown(block.text)}"
        case Paragraph():
            return _markdown_line(block.line)
        case Bullets():
            return "\n".join(f"- {_markdown_line(line)}" for line in block.lines)
        case MethodsTable():
            return "\n".join(_markdown_table(block))
        case _:
            assert_never(block)


def _markdown_table(table: MethodsTable) -> Iterator[str]:
    yield _markdown_line(table.caption)
    yield ""
    yield _piped(map(safe_markdown, table.columns))
    yield _piped(["---"] * len(table.columns))
    # pandoc wraps cells, and a value on two lines of a table is two pieces
    value = partial(markdown_value, blank="\N{NO-BREAK SPACE}")
    for row in table.rows:
        yield _piped(_pieces(cell, safe_markdown, value) for cell in row)


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex_line(line: Line) -> str:
    return _pieces(line, escape_latex, latex_value)


_SECTIONS: Final = {1: "section", 2: "subsection"}


def _latex(block: Block) -> str:
    match block:
        case Heading():
            section = _SECTIONS.get(block.level, "subsubsection")
            return f"\\{section}*{{{escape_latex(block.text)}}}"
        case Paragraph():
            return _latex_line(block.line)
        case Bullets():
            items = "\n".join(f"\\item {_latex_line(line)}" for line in block.lines)
            return f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}"
        case MethodsTable():
            return "\n".join(_latex_table(block))
        case _:
            assert_never(block)


WIDTHS: Final = {
    2: (0.3, 0.6),
    3: (0.1, 0.25, 0.55),
    5: (0.28, 0.2, 0.08, 0.22, 0.08),
}
"""Shares of the width of a page, by number of columns."""


def _latex_table(table: MethodsTable) -> Iterator[str]:
    layout = "".join(f"p{{{share}\\linewidth}}" for share in WIDTHS[len(table.columns)])
    yield "\\begingroup\\footnotesize\\raggedright"
    yield f"\\begin{{longtable}}{{{layout}}}"
    yield f"\\caption{{{_latex_line(table.caption)}}}\\\\"
    yield "\\toprule"
    yield f"{_cells(map(escape_latex, table.columns))} \\\\"
    yield "\\midrule\\endhead"
    for row in table.rows:
        yield f"{_cells(map(_latex_line, row))} \\\\"
    yield "\\bottomrule"
    yield "\\end{longtable}\\endgroup"


def _cells(cells: Iterable[str]) -> str:
    # braces keep a bracket at the start of a row from being an argument of \\
    texts: Sequence[str] = [cell or "{}" for cell in cells]
    return " & ".join(f"{{{cell}}}" if cell[0] in "[*" else cell for cell in texts)
