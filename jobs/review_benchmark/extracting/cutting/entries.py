"""A list of references as its entries, and entries as chunks to ask about.

An entry of a Cochrane review is a study, headed by its name and year, with one or more
publications; elsewhere it is a numbered reference, a paragraph or a line. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from jobs.inputs.documents import Document, TextSpan

OVERLAP: Final = 2
"""Entries that a chunk shares with the one before it."""

STUDIES: Final = (
    re.compile(
        r"^[ \t]*(?P<id>[^\W_][^\n{}]{0,60}?)[ \t]*\{[^}\n]*\}[ \t]*$", re.MULTILINE
    ),
    re.compile(
        r"^[ \t]*(?P<id>[^\W\d_][^\n{}.,;:]{0,40}?[ ](?:18|19|20)\d\d[a-z]?)[ \t]*$",
        re.MULTILINE,
    ),
)
"""A study's heading: `Ahn 2008 {published data only}`, or without the braces."""

BORDERS: Final = (
    *STUDIES,
    re.compile(r"^[ \t]*\[?\d{1,4}[.\])][ \t]+(?=\S)", re.MULTILINE),
    re.compile(r"(?<=\n)[ \t]*\n(?=[ \t]*\S)"),
    re.compile(r"^(?=[^\W\d_][\w'-]+ [A-Z]{1,3}[,.:])", re.MULTILINE),
)
"""What an entry begins with; the first that comes at all, of a study, or more than
once, of anything else, counts."""

PUBLICATION: Final = re.compile(
    r"(?<![^.\])}\n]\n)^[ \t]*(?:\*[ \t]*)?(?=[^\W\d_][\w' -]{0,40} [A-Z]{1,3}[,.])",
    re.MULTILINE,
)
"""What a reference to a publication begins with: a star, or its first author, where the
line before has come to its end; a list of authors goes on over lines too."""


def entries(document: Document, span: TextSpan) -> tuple[TextSpan, ...]:
    """The entries of a list of references, in order; at least one."""
    for border in BORDERS:
        is_study = border in STUDIES
        found = [
            match.start()
            for match in border.finditer(document.text, span.start, span.end)
        ]
        if found and not is_study:
            # what stands before the first border is an entry too
            before = TextSpan(start=span.start, end=found[0])
            found[:0] = [span.start] if document.piece(before) else []
        if len(found) > 1 or (found and is_study):
            ends = (*found[1:], span.end)
            return tuple(
                TextSpan(start=start, end=end)
                for start, end in zip(found, ends, strict=True)
            )
    return (span,)


def study_name(entry: str) -> str:
    """What an entry is headed by, such as `Ahn 2008`; empty where it is no study's."""
    heads = (border.match(entry) for border in STUDIES)
    return next((head["id"].strip() for head in heads if head), "")


def chunks(
    document: Document, found: tuple[TextSpan, ...], size: int
) -> tuple[TextSpan, ...]:
    """Spans of about *size* publications that end at the borders of entries.

    Each but the first begins with the last entries of the one before.
    """
    made = []
    begin = end = 0
    while end < len(found):
        held = 0
        end = begin
        while end < len(found) and (end == begin or held < size):
            held += _publications(document, found[end])
            end += 1
        made.append(TextSpan(start=found[begin].start, end=found[end - 1].end))
        begin = max(end - OVERLAP, begin + 1)
    return tuple(made)


def _publications(document: Document, entry: TextSpan) -> int:
    """How many publications an entry seems to have; at least one."""
    return max(1, len(PUBLICATION.findall(document.text, entry.start, entry.end)))
