"""Builds the summary that a terminal prints after a scoring, from document blocks.

>>> rows = [["gpt", "0.91"], ["baseline", ""]]
>>> print(summary_text(["2 reviews", wide_table(["model", "recall"], rows)]), end="")
2 reviews
model     recall
gpt       0.91
baseline
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runner.scorecard import Finding
from store.document import Block, TableBlock, Words, text_lines
from store.printable import printable

LINE_CHARS = 240
"""Longer lines, such as two long lists that differ, are cut."""


def summary_text(blocks: Iterable[Block]) -> str:
    """Renders the blocks of a summary, whose lines a terminal folds at its width."""
    lines = (printable(line, line=LINE_CHARS) for line in text_lines(blocks))
    return "\n".join([*lines, ""])


def wide_table(
    titles: Sequence[str], rows: Iterable[Sequence[str | None]]
) -> TableBlock:
    """Returns a table of texts, a row for each model, that may exceed the page."""
    columns = [Words(title) for title in titles]
    return TableBlock(columns, list(rows), indent=0, is_wide=True)


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """Returns a line for each warning and error."""
    return [finding.line for finding in findings if finding.severity != "info"]
