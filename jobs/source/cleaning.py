"""From raw pages to one text: what typesetting added is taken away again.

Ligatures become letters, soft and line-end hyphens join what they part, and the lines
that a page's head or foot repeats are left out. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from jobs.json_scan import wellformed
from jobs.source.document import Document

EDGE = 2
"""Lines at a page's head and foot that may be running titles or page numbers."""

LEAST_PAGES = 3
"""Fewer pages repeat nothing that could be told from text."""

PAGE = "\f"
"""Parts pages while they are joined; no cleaned text holds it."""

_LETTERS = str.maketrans(
    {
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
        "\ufb05": "st",
        "\ufb06": "st",
        "\u00a0": " ",
        "\u00ad": "",
        "\u2010": "-",
        "\u2011": "-",
        # what PDFium makes of a hyphen at the end of a line, and of the line's end
        "\x02": "-\n",
        "\ufffe": "-\n",
    }
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff]")
_BREAK = re.compile(
    # whole words alone: the hyphen of a DOI or an address is its own
    r"(?<![^\s(])([^\W\d_]+)-([ \t]*[\n\f]\s*)([^\W\d_]+)"
)
_HYPHENED = re.compile(r"(?<![^\W\d_])[^\W\d_]+-[^\W\d_]+")
_NUMBER = re.compile(r"[0-9]+")


def cleaned(name: str, pages: Sequence[str]) -> Document:
    """The document that pages of raw text make up."""
    text = PAGE.join(_without_running([_plain(page) for page in pages]))
    hyphened = set(_HYPHENED.findall(text.lower()))

    def joined(match: re.Match[str]) -> str:
        first, between, second = match.groups()
        # a name has its hyphen by right, and so has a word that has it within a line
        is_own = second[0].isupper() or f"{first}-{second}".lower() in hyphened
        pages = PAGE * between.count(PAGE)
        return f"{first}{'-' if is_own else ''}{second}{pages}"

    text = _BREAK.sub(joined, text)
    starts = (0, *(match.end() for match in re.finditer(PAGE, text)))
    return Document(name=name, text=text.replace(PAGE, "\n"), starts=starts)


def _plain(page: str) -> str:
    lines = page.replace("\r\n", "\n").replace("\r", "\n").replace(PAGE, "\n")
    lines = wellformed(_CONTROL.sub("", lines.translate(_LETTERS)))
    return "\n".join(line.rstrip() for line in lines.split("\n")).strip("\n")


def _without_running(pages: list[str]) -> list[str]:
    """Pages without the lines that half of them have at an edge, numbers aside."""
    seen = Counter(line for page in pages for line in set(map(_shape, _edges(page))))
    least = max(LEAST_PAGES, (len(pages) + 1) // 2)
    running = {line for line, n in seen.items() if n >= least}
    return [_stripped(page, running) for page in pages]


def _edges(page: str) -> list[str]:
    lines = [line for line in page.split("\n") if line.strip()]
    return [*lines[:EDGE], *lines[-EDGE:]]


def _stripped(page: str, running: set[str]) -> str:
    lines = page.split("\n")
    filled = [place for place, line in enumerate(lines) if line.strip()]
    edges = {*filled[:EDGE], *filled[-EDGE:]}
    return "\n".join(
        line
        for place, line in enumerate(lines)
        if place not in edges or _shape(line) not in running
    ).strip("\n")


def _shape(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.split()))
