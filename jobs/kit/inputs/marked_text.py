"""Raw text with marks where pages and sections begin, as readers of formats make it.

`documents` cleans raw text and turns marks into offsets. A mark is a character that
Unicode reserves for internal use, so no text contains it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PAGE: Final = "\f"
"""Separates pages while they are joined; no cleaned text contains it."""

HEADING: Final = "\ufdd0"
"""Precedes a heading, once per level."""

UNPRINTED: Final = "\ufdd1"
"""Ends the title of a section whose heading is not part of the text."""

_MARKS: Final = re.compile(f"[{HEADING}{UNPRINTED}{PAGE}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedText:
    """Raw pages with marks, and what the file says about itself."""

    pages: tuple[str, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)
    is_paged: bool = False  #: whether the file says where pages begin
    heads_with_title: bool = False  #: whether its first heading may be its title


def section_mark(level: int, title: str | None = None) -> str:
    """Returns the mark before a heading, or in place of one that is not printed."""
    return HEADING * level + ("" if title is None else f"{title}{UNPRINTED}")


def unmarked(text: str) -> str:
    """Returns text from a file, without characters that serve as marks."""
    return _MARKS.sub(" ", text)


_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t])")
_SETEXT: Final = re.compile(r" {0,3}(=+|-+)[ \t]*$")


def markdown_text(text: str) -> MarkedText:
    """Reads Markdown, with marks before its headings.

    Headings are those of CommonMark, in both forms; lines of fenced code are none.
    """
    lines = [unmarked(line) for line in text.splitlines()]
    fence = ""
    for index, line in enumerate(lines):
        if match := _FENCE.match(line):
            if not fence:
                fence = match[1]
            elif match[1].startswith(fence) and not line.strip(" \t" + fence[0]):
                fence = ""
        elif fence:
            continue
        elif match := _ATX.match(line):
            # behind the signs, so that they are no part of the title
            mark = section_mark(len(match[1]))
            lines[index] = f"{match[0]} {mark}{line[match.end() :].strip()}"
        elif (match := _SETEXT.match(line)) and index and _is_paragraph(lines, index):
            level = 1 if match[1][0] == "=" else 2
            lines[index - 1] = section_mark(level) + lines[index - 1].lstrip()
    return MarkedText(pages=("\n".join(lines),), heads_with_title=True)


def _is_paragraph(lines: list[str], index: int) -> bool:
    """Returns whether a line before an underline can be a heading of one line."""
    text = lines[index - 1].strip()
    before = lines[index - 2].strip() if index > 1 else ""
    return bool(text) and not before and text[0] not in f"{HEADING}|>*-+#"
