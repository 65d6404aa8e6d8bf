"""Shows quotes in the text that they are from, for `siftlog show`.

A job finds where its quotes are (`quotes`, see `runner.job.Job`); this cuts the text
around them:

    >>> text = "Methods. We enrolled 134 adults in two centres. Results."
    >>> found = in_context(text, "134 adults", 21, 31, chars=12)
    >>> found.before, found.passage, found.after
    ('…We enrolled ', '134 adults', ' in two…')
"""

from __future__ import annotations

import re

from runner.job import QuotedPassage

CONTEXT_CHARS = 160
"""Characters shown on either side of a passage."""

_BLANKS = re.compile(r"\s+")


def in_context(
    text: str,
    quote: str,
    start: int | None,
    end: int | None,
    *,
    label: str = "",
    match: str = "",
    place: str = "",
    chars: int = CONTEXT_CHARS,
) -> QuotedPassage:
    """Returns a quote with the text around it, on one line.

    Args:
        text: of the item.
        quote: as the model wrote it.
        start: offset of the passage in the text; None: it was not found.
        end: offset of its end, exclusive.
        label: what the quote supports.
        match: how well the passage matches it.
        place: such as a page.
        chars: of the text on either side, at most.
    """
    if start is None or end is None:
        return QuotedPassage(quote=quote, label=label, match=match, place=place)
    return QuotedPassage(
        quote=quote,
        label=label,
        match=match,
        place=place,
        before=_end_of(text[:start], chars),
        passage=_on_a_line(text[start:end]),
        after=_beginning_of(text[end:], chars),
    )


def _on_a_line(text: str) -> str:
    return _BLANKS.sub(" ", text)


def _beginning_of(text: str, chars: int) -> str:
    """Returns the beginning of a text up to a blank, with a mark where it is cut."""
    line = _on_a_line(text[: 2 * chars])
    if len(text) <= 2 * chars and len(line) <= chars:
        return line.rstrip()
    beginning, blank, _ = line[: chars + 1].rpartition(" ")
    return f"{beginning if blank else line[:chars]}…"


def _end_of(text: str, chars: int) -> str:
    return _beginning_of(text[::-1], chars)[::-1]
