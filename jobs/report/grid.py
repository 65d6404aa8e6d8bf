"""Tables of a page: captioned, scrolling sideways, numbers to the right."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jobs.report.markup import Child, Element, element
from jobs.report.wording import cell, is_numeric

FIRST_ROWS = 20
"""Of a long file, so many stand in the report: a million rows make no page."""


ENDS = ("lo", "hi")
"""The last part of a column's name that holds the ends of another column's interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The head of a column."""

    name: str
    numeric: bool = False


def grid(
    caption: Child, columns: Sequence[Column], rows: Sequence[Sequence[Child]]
) -> Element:
    """A table; the first cell of a row is its head."""
    classes = ["n" if column.numeric else None for column in columns]
    head = (
        element("th", _breaking(column.name), scope="col", class_=kind)
        for column, kind in zip(columns, classes, strict=True)
    )
    body = (
        element(
            "tr",
            element("th", row[0], scope="row", class_=classes[0]),
            (
                element("td", each, class_=kind)
                for each, kind in zip(row[1:], classes[1:], strict=True)
            ),
        )
        for row in rows
    )
    return scrolling(
        element(
            "table",
            element("caption", element("span", caption)),
            element("thead", element("tr", head)),
            element("tbody", body),
        ),
        "table",
    )


def _breaking(name: str) -> Child:
    """A name that may go on in the next line behind its dots and underscores."""
    return [
        part if part.isalnum() else (part, element("wbr"))
        for part in re.findall(r"[^._]+|[._]", name)
    ]


def scrolling(inside: Element, name: str) -> Element:
    """What is too wide for the page scrolls by itself, by keyboard too."""
    return element(
        "div", inside, class_="scroll", tabindex="0", role="group", aria_label=name
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The beginning of a CSV file."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int  #: rows of the whole file

    @classmethod
    def of(cls, path: Path, most: int = FIRST_ROWS) -> Sheet:
        """Read the beginning of a file, *most* rows of it, and count the rest."""
        with path.open(encoding="utf-8", newline="") as file, _cells_of_any_size():
            reader = csv.reader(file)
            columns = tuple(next(reader))
            rows = tuple(map(tuple, islice(reader, most)))
            total = len(rows) + sum(1 for _ in reader)
        return cls(columns=columns, rows=rows, total=total)

    def grid(self, caption: Child) -> Element:
        """The rows as a table: interval ends below their value, no empty column."""
        by_name = dict(zip(self.columns, self._cells(), strict=True))
        columns: list[Column] = []
        shown: list[Sequence[Child]] = []
        for name, cells in by_name.items():
            value, _, end = name.rpartition(".")
            is_empty = self.rows and not any(cells) and self.total == len(self.rows)
            if is_empty or (end in ENDS and value in by_name):
                continue
            is_number = any(cells) and all(map(is_numeric, filter(None, cells)))
            columns.append(Column(name=name, numeric=is_number))
            texts = list(map(cell, cells)) if is_number else cells
            ends = [by_name.get(f"{name}.{end}", ()) for end in ENDS]
            shown.append(
                [
                    (text, _interval(lo, hi)) if lo and hi else text
                    for text, lo, hi in zip(texts, *ends, strict=True)
                ]
                if all(ends)
                else texts
            )
        return grid(caption, columns, list(zip(*shown, strict=True)))

    def _cells(self) -> list[Sequence[str]]:
        """The rows by column."""
        return list(zip(*self.rows, strict=True)) or [()] * len(self.columns)


def _interval(lo: str, hi: str) -> Element:
    return element("span", f"[{cell(lo)}, {cell(hi)}]", class_="ends")


@contextmanager
def _cells_of_any_size() -> Iterator[None]:
    """A reply in a cell may be longer than the 131,072 characters that csv allows."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
