"""A list of references as its entries, and entries as chunks to ask about.

An entry of a Cochrane review is a study, headed by its name and year, with one or more
publications; elsewhere it is a numbered reference, a paragraph or a line. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from jobs.review_benchmark.extracting.source.document import Document, Span

OVERLAP: Final = 2
"""Entries that a chunk shares with the one before it."""

STUDY: Final = re.compile(
    r"^[ \t]*(?P<id>[^\W\d_][^\n{}]{0,60}?[ ](?:18|19|20)\d\d[a-z]?)"
    r"[ \t]*(?:\{[^}\n]*\}|\(?(?:un)?published data[^)\n]*\)?)?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""A study's heading, such as `Ahn 2008 {published data only}`."""

BORDERS: Final = (
    STUDY,
    re.compile(r"^[ \t]*\[?\d{1,4}[.\])][ \t]+(?=\S)", re.MULTILINE),
    re.compile(r"(?<=\n)[ \t]*\n(?=[ \t]*\S)"),
    re.compile(r"^(?=[^\W\d_][\w'-]+ [A-Z]{1,3}[,.:])", re.MULTILINE),
)
"""What an entry begins with; the first that comes more than once counts."""


def entries(document: Document, span: Span) -> tuple[Span, ...]:
    """The entries of a list of references, in order; at least one."""
    for border in BORDERS:
        found = [
            match.start()
            for match in border.finditer(document.text, span.start, span.end)
        ]
        if len(found) > 1 or (found and border is STUDY):
            break
    else:
        return (span,)
    if document.piece(Span(start=span.start, end=found[0])) and border is not STUDY:
        found.insert(0, span.start)
    ends = (*found[1:], span.end)
    return tuple(
        Span(start=start, end=end) for start, end in zip(found, ends, strict=True)
    )


def chunks(found: tuple[Span, ...], size: int) -> tuple[Span, ...]:
    """Spans of about *size* entries that end at their borders.

    Each but the first begins with the last entries of the one before.
    """
    step = max(size - OVERLAP, 1)
    starts = range(0, max(len(found) - OVERLAP, 1), step)
    return tuple(
        Span(start=found[at].start, end=found[min(at + size, len(found)) - 1].end)
        for at in starts
    )
