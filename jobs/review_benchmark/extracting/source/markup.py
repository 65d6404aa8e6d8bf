"""The text of an XML file, such as an article in JATS: a line a block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from runner.errors import DatasetError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

REFERENCES = frozenset({"ref", "mixed-citation", "element-citation", "citation"})
"""Elements that are one line, whatever stands in them."""

INLINE = frozenset(
    {"italic", "bold", "sup", "sub", "sc", "underline", "xref", "ext-link", "styled"}
    | {"i", "b", "em", "strong", "span", "a", "u", "named-content", "monospace"}
)
"""Elements that do not end a line."""


def xml_text(path: Path) -> str:
    """All text of a file; entities and document types of its own are refused.

    Raises:
        DatasetError: it is not well formed, or defines entities.
    """
    # loaded where XML is read: siftlog --help must not wait for it
    from defusedxml.common import DefusedXmlException  # noqa: PLC0415 - see above
    from defusedxml.ElementTree import parse  # noqa: PLC0415 - see above

    try:
        root = parse(path).getroot()
    except ParseError as error:
        line, column = error.position
        raise DatasetError(
            f"{path.name} line {line}, column {column}: it is not well-formed XML "
            "(save it again, or give its text as .txt)."
        ) from None
    except DefusedXmlException:
        raise DatasetError(
            f"{path.name}: it defines entities, which may hide anything (give its text "
            "as .txt instead)."
        ) from None
    return "\n".join(line for line in "".join(_pieces(root)).split("\n") if line)


def _pieces(element: Element) -> Iterator[str]:
    name = (
        element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""
    )
    if name in REFERENCES:
        yield "\n" + " ".join(" ".join(element.itertext()).split()) + "\n"
    elif name:
        yield _flat(element.text)
        for child in element:
            yield from _pieces(child)
    if name and name not in INLINE:
        yield "\n"
    yield _flat(element.tail)


def _flat(text: str | None) -> str:
    """A text whose line breaks are blanks."""
    if not text:
        return ""
    words = " ".join(text.split())
    before = " " if text[0].isspace() else ""
    after = " " if text[-1].isspace() and words else ""
    return f"{before}{words}{after}"
