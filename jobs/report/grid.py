"""Tables of a page: captioned, scrolling sideways, numbers to the right."""

from __future__ import annotations

import csv
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
        element("th", column.name, scope="col", class_=kind)
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
    def of(cls, path: Path) -> Sheet:
        """Read the beginning of a file, and count the rest."""
        with path.open(encoding="utf-8", newline="") as file, _cells_of_any_size():
            reader = csv.reader(file)
            columns = tuple(next(reader))
            rows = tuple(map(tuple, islice(reader, FIRST_ROWS)))
            total = len(rows) + sum(1 for _ in reader)
        return cls(columns=columns, rows=rows, total=total)

    def grid(self, caption: Child) -> Element:
        """The rows as a table."""
        numeric = [
            any(column) and all(map(is_numeric, filter(None, column)))
            for column in zip(*self.rows, strict=True)
        ] or [False] * len(self.columns)
        columns = [
            Column(name=name, numeric=is_number)
            for name, is_number in zip(self.columns, numeric, strict=True)
        ]
        rows = [
            [
                cell(text) if is_number else text
                for text, is_number in zip(row, numeric, strict=True)
            ]
            for row in self.rows
        ]
        return grid(caption, columns, rows)


@contextmanager
def _cells_of_any_size() -> Iterator[None]:
    """A reply in a cell may be longer than the 131,072 characters that csv allows."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
