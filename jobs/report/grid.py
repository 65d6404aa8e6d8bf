"""Tables of a page: captioned, scrolling sideways, numbers to the right."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jobs.report.markup import Child, Element, element
from jobs.report.wording import cell, is_numeric

FIRST_ROWS = 20
"""Of a long file, so many stand in the report: a million rows make no page."""


_PATH = re.compile(r"\w+([._]\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The head of a column."""

    name: str
    numeric: bool = False
    title: str = ""  #: what a reader calls it, above its name; empty: the name alone


def grid(
    caption: Child, columns: Sequence[Column], rows: Sequence[Sequence[Child]]
) -> Element:
    """A table; the first cell of a row is its head."""
    classes = ["n" if column.numeric else None for column in columns]
    head = (
        element("th", _headed(column), scope="col", class_=kind)
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


def _headed(column: Column) -> Child:
    """A column's words with its name below; its name alone where it has no words."""
    name = _breaking(column.name)
    if not column.title:
        return name
    return column.title, element("span", element("code", name), class_="key")


def _breaking(name: str) -> Child:
    """A metric's path may go on in the next line behind its dots and underscores."""
    if not _PATH.fullmatch(name):
        return name
    first, *parts = re.split(r"(?<=[._])", name)
    return (first, ((element("wbr"), part) for part in parts))


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

    def grid(self, caption: Child, titles: Mapping[str, str]) -> Element:
        """The rows as a table: interval ends below their value, no empty column.

        Args:
            caption: of the table.
            titles: of columns, in the words of a reader.
        """
        by_name = dict(zip(self.columns, self._cells(), strict=True))
        columns: list[Column] = []
        shown: list[Sequence[Child]] = []
        ends = {
            name: _ends(name) for name in by_name if by_name.keys() >= {*_ends(name)}
        }
        behind = {end for both in ends.values() for end in both}
        for name, cells in by_name.items():
            is_empty = self.rows and not any(cells) and self.total == len(self.rows)
            if is_empty or name in behind:
                continue
            is_number = any(cells) and all(map(is_numeric, filter(None, cells)))
            title = titles.get(name, "")
            columns.append(Column(name=name, numeric=is_number, title=title))
            texts = list(map(cell, cells)) if is_number else cells
            if name in ends:
                low, high = (by_name[end] for end in ends[name])
                shown.append(list(map(_with_interval, texts, low, high)))
            else:
                shown.append(texts)
        return grid(caption, columns, list(zip(*shown, strict=True)))

    def _cells(self) -> list[Sequence[str]]:
        """The rows by column."""
        return list(zip(*self.rows, strict=True)) or [()] * len(self.columns)


def _ends(name: str) -> tuple[str, str]:
    """The columns that hold the interval ends of another, if there are such."""
    return f"{name}.lo", f"{name}.hi"


def _with_interval(text: str, lo: str, hi: str) -> Child:
    if not lo or not hi:
        return text
    return text, element("span", f"[{cell(lo)}, {cell(hi)}]", class_="ends")


@contextmanager
def _cells_of_any_size() -> Iterator[None]:
    """A reply in a cell may be longer than the 131,072 characters that csv allows."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
