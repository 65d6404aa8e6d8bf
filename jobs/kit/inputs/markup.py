"""Reads the text of XML and HTML files, with the places where pages and sections begin.

JATS, TEI (as GROBID writes it) and HTML are recognised; of any other XML all text is
read. The text of a page is raw: `documents` cleans it and turns marks into offsets.
A mark is a character that Unicode reserves for internal use, so no text contains it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import ParseError

from runner.errors import DatasetError

PAGE: Final = "\f"
"""Separates pages while they are joined; no cleaned text contains it."""

HEADING: Final = "\ufdd0"
"""Precedes a heading, once per level."""

UNPRINTED: Final = "\ufdd1"
"""Ends the title of a section whose heading is not part of the text."""

_MARKS: Final = re.compile(f"[{HEADING}{UNPRINTED}{PAGE}]")
_ONLY_MARKS: Final = re.compile(f"{HEADING}[^\n]*{UNPRINTED}")


def section_mark(level: int, title: str | None = None) -> str:
    """Returns the mark before a heading, or in place of one that is not printed."""
    return HEADING * level + ("" if title is None else f"{title}{UNPRINTED}")


def unmarked(text: str) -> str:
    """Returns text from a file, without any character that serves as a mark."""
    return _MARKS.sub(" ", text)


REFERENCES: Final = frozenset({"ref", "mixed-citation", "element-citation", "citation"})
"""Elements that are one line, whatever stands in them."""

INLINE: Final = frozenset(
    {"italic", "bold", "sup", "sub", "sc", "underline", "xref", "ext-link", "styled"}
    | {"i", "b", "em", "strong", "span", "a", "u", "named-content", "monospace"}
)
"""Elements that end neither a line nor a word."""

_CHUNK: Final = 1 << 16


def xml_text(path: Path) -> str:
    """All text of a file; one that declares anything of its own is refused.

    Raises:
        DatasetError: it is not well formed, or declares entities or attributes.
    """
    # brings a parser, and other kinds of documents need none
    from defusedxml.common import DefusedXmlException  # noqa: PLC0415 - see above
    from defusedxml.ElementTree import DefusedXMLParser  # noqa: PLC0415 - see above

    lines = _TextTarget()
    parser = DefusedXMLParser(target=lines)
    parser.parser.StartDoctypeDeclHandler = _guarded
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                parser.feed(chunk)
        parser.close()
    except ParseError as error:
        line, column = error.position
        raise DatasetError(
            f"{path.name} line {line}, column {column}: it is not well-formed XML "
            "(save it again, or give its text as .txt)."
        ) from None
    except DefusedXmlException:
        raise DatasetError(
            f"{path.name}: it declares entities or attributes of its own, which may "
            "hide anything (give its text as .txt instead)."
        ) from None
    return lines.text()


def _guarded(name: str, sysid: str, pubid: str, has_internal_subset: int) -> None:
    """Let a document type be named, as JATS files name theirs, but hold nothing.

    The default of an attribute can grow as an entity can.
    """
    if has_internal_subset:
        from defusedxml.common import DTDForbidden  # noqa: PLC0415 - see above

        raise DTDForbidden(name, sysid, pubid)


class _TextTarget:
    """What the parser tells: text, and where lines end."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._open_references = 0  # elements that are open, from that of a reference on

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        del attributes
        self._pieces.append(self._gap(tag))
        if self._open_references or _local(tag) in REFERENCES:
            self._open_references += 1

    def data(self, text: str) -> None:
        self._pieces.append(text.replace("\n", " "))

    def end(self, tag: str) -> None:
        self._open_references = max(self._open_references - 1, 0)
        self._pieces.append(self._gap(tag))

    def close(self) -> None:
        """Nothing is held back."""

    def text(self) -> str:
        lines = ("".join(self._pieces)).split("\n")
        return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))

    def _gap(self, tag: str) -> str:
        """What an element's begin or end parts."""
        if _local(tag) in INLINE:
            return ""
        return " " if self._open_references else "\n"


def _local(tag: str) -> str:
    return tag.rpartition("}")[2].lower()


_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t])")
_SETEXT: Final = re.compile(r" {0,3}(=+|-+)[ \t]*$")


def markdown_text(text: str) -> str:
    """Returns Markdown with marks before its headings.

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
    return "\n".join(lines)


def _is_paragraph(lines: list[str], index: int) -> bool:
    """Returns whether a line before an underline can be a heading of one line."""
    text = lines[index - 1].strip()
    before = lines[index - 2].strip() if index > 1 else ""
    return bool(text) and not before and text[0] not in f"{HEADING}|>*-+#"
