"""The text of an XML file, such as an article in JATS: a line a block.

Read as it is parsed, so depth and size of the file cost nothing but time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import ParseError

from runner.errors import DatasetError

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

    lines = _Lines()
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


class _Lines:
    """What the parser tells: text, and where lines end."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._within = 0  # elements that are open, from that of a reference on

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        del attributes
        self._pieces.append(self._gap(tag))
        if self._within or _local(tag) in REFERENCES:
            self._within += 1

    def data(self, text: str) -> None:
        self._pieces.append(text.replace("\n", " "))

    def end(self, tag: str) -> None:
        self._within = max(self._within - 1, 0)
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
        return " " if self._within else "\n"


def _local(tag: str) -> str:
    return tag.rpartition("}")[2].lower()
