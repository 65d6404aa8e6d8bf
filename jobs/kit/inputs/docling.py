"""Reads documents that docling has converted to JSON, with their pages and sections.

The text is that of the body in reading order. Running heads and page numbers are left
out, as docling keeps them apart. A table is one line per row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from jobs.kit.inputs.files import read_json
from jobs.kit.inputs.marked_text import PAGE, MarkedText, section_mark, unmarked
from runner.errors import DatasetError

SCHEMA: Final = "DoclingDocument"
"""The value of `schema_name`, by which the format is recognised."""

DEPTH: Final = 100
"""Nodes inside each other, where documents have a dozen."""

PAGES: Final = 10_000
"""Highest number of a page."""

_FURNITURE: Final = frozenset({"page_header", "page_footer"})


def is_docling(path: Path) -> bool:
    """Returns whether the beginning of a JSON file says that docling wrote it."""
    with path.open("rb") as file:
        return f'"{SCHEMA}"'.encode() in file.read(4096)


def docling_paper(path: Path) -> MarkedText:
    """Reads a document in docling's JSON.

    Raises:
        DatasetError: it is no JSON, or is not built as docling builds it.
    """
    value = read_json(path)
    try:
        return _Walk(value).result()
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DatasetError(
            f"{path.name}: it is not a {SCHEMA} as docling writes it, {error!r} "
            "(convert the paper again)."
        ) from error


class _Walk:
    """Follows the body of a document from node to node."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._page = 1
        self._is_paged = bool(document.get("pages"))
        self._title = ""
        self._lines: list[str] = []
        # read with their table, wherever the body has them
        self._captions = {
            caption["$ref"]
            for table in document.get("tables", ())
            for caption in table.get("captions", ())
        }

    def result(self) -> MarkedText:
        self._children(self._document["body"], 0)
        return MarkedText(
            pages=tuple("\n".join(self._lines).split(PAGE)),
            metadata={"title": self._title} if self._title else {},
            is_paged=self._is_paged,
        )

    def _children(self, node: Mapping[str, Any], depth: int) -> None:
        if depth > DEPTH:
            raise ValueError(f"nodes are nested deeper than {DEPTH}")
        for child in node.get("children", ()):
            if child["$ref"] not in self._captions:
                self._node(self._resolved(child), depth)

    def _resolved(self, reference: Mapping[str, str]) -> Mapping[str, Any]:
        """Returns the node that a reference such as `#/texts/3` names."""
        _, kind, index = reference["$ref"].split("/")
        node: Mapping[str, Any] = self._document[kind][int(index)]
        return node

    def _node(self, node: Mapping[str, Any], depth: int) -> None:
        label = node.get("label")
        if label in _FURNITURE or node.get("content_layer") == "furniture":
            return
        self._turn_page(node)
        if "data" in node:
            for caption in node.get("captions", ()):
                self._line(self._resolved(caption)["text"])
            self._lines += _table_lines(node["data"])
        text = node.get("text")
        if isinstance(text, str):
            if label == "section_header":
                self._line(text, section_mark(min(int(node.get("level") or 1), 6)))
            else:
                self._line(text)
            if label == "title" and not self._title:
                self._title = text
        self._children(node, depth + 1)

    def _line(self, text: str, mark: str = "") -> None:
        text = " ".join(unmarked(text).split())
        if text:
            self._lines.append(mark + text)

    def _turn_page(self, node: Mapping[str, Any]) -> None:
        for provenance in (node.get("prov") or ())[:1]:
            page = int(provenance["page_no"])
            if self._page < page <= PAGES:
                self._lines.append(PAGE * (page - self._page))
                self._page = page


def _table_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Yields the rows of a table; a cell over several columns is written once."""
    rows: dict[int, dict[int, str]] = {}
    for cell in data["table_cells"]:
        row = rows.setdefault(cell["start_row_offset_idx"], {})
        row[cell["start_col_offset_idx"]] = " ".join(unmarked(cell["text"]).split())
    for _, row in sorted(rows.items()):
        yield " | ".join(text for _, text in sorted(row.items()))
