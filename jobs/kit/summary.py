"""Builds the summary that a terminal prints after a scoring, from document blocks.

>>> from store.document import wide_table
>>> rows = [["gpt", "0.91"], ["baseline", ""]]
>>> print(summary_text(["2 reviews", wide_table(["model", "recall"], rows)]), end="")
2 reviews
model     recall
gpt       0.91
baseline
"""

from __future__ import annotations

from collections.abc import Iterable

from runner.scorecard import NO_TRUTH, Finding
from store.document import Block, PageText, text_lines
from store.printable import printable

LINE_CHARS = 240
"""Longer lines, such as two long lists that differ, are cut."""


def summary_text(blocks: Iterable[Block]) -> PageText:
    """Renders the blocks of a summary."""
    page = tuple(blocks)
    lines = (printable(line, line=LINE_CHARS) for line in text_lines(page))
    return PageText("\n".join([*lines, ""]), page)


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """Returns a line for each warning and error, and for a missing truth."""
    return [
        finding.message if finding.code == NO_TRUTH else finding.line
        for finding in findings
        if finding.severity != "info" or finding.code == NO_TRUTH
    ]
