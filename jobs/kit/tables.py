"""Declares tables: columns with a getter each, over rows of one type.

A column's name stands beside the function that reads its cell, so neither can move
without the other, and mypy checks every getter against the type of the rows:

    >>> @dataclass(frozen=True)
    ... class Review:
    ...     pmid: str
    ...     found: int
    ...     lost: Mapping[str, int]
    ...     recall: Metric
    >>> reviews = TableOf[Review](
    ...     name="per_review",
    ...     columns=(
    ...         text("pmid", lambda row: row.pmid, "PubMed id of the review"),
    ...         count("found", lambda row: row.found),
    ...         per_key("lost_{}", ("search", "rank"), lambda row, at: row.lost[at]),
    ...         group(METRIC_VALUE, lambda row: row.recall, prefix="recall"),
    ...     ),
    ...     caption="One row a review.",
    ... )
    >>> recall = Metric(path="recall", value=0.5, n=2, lo=0.25, hi=0.75)
    >>> row = Review("26", 1, {"search": 0, "rank": 1}, recall)
    >>> reviews.fields(row)
    {'pmid': '26', 'found': 1, 'lost_search': 0, 'lost_rank': 1, 'recall': 0.5, \
'recall.lo': 0.25, 'recall.hi': 0.75}

`reviews.table([row])` is a short table with its rows. `reviews.streamed(rows)` is one
with a row per paper or question: *rows* is a function, called when it is written.
The scoring writes both as CSV and shows them in the report; `siftlog export` writes
them in other formats.

The maker of a column states its kind: `text`, `count`, `number`, `flag`, or `column`
for cells of several kinds. `group` takes columns of a part of the row, such as a
metric; `per_key` and `groups` repeat a column or a group for each of some keys. A table
of up to four columns may be made as a `Table` directly: its cells are easily matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from runner.scorecard import Cell, Metric, StreamedRow, Table
from runner.table_rendering import Kind as PrintKind
from runner.table_rendering import PrintCell, PrintColumn, PrintTable

Row = TypeVar("Row")
Part = TypeVar("Part")

ColumnKind: TypeAlias = Literal["text", "count", "number", "flag", "any"]
"""Type of a column's cells, which may also be undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumn(Generic[Row]):
    """One column of a declared table."""

    name: str
    cell: Callable[[Row], Cell]
    kind: ColumnKind
    meaning: str = ""  #: for a data dictionary, with the unit; empty: the name says it
    part: _PartCell[Row] | None = None  #: how `cell` reads it, in a `group`


@dataclass(frozen=True, slots=True)
class _PartCell(Generic[Row]):
    """A cell that is read from a part of the row."""

    of: Callable[[Row], Any]  #: the part, the same function for a whole group
    cell: Callable[[Any], Cell]


Columns: TypeAlias = tuple[DeclaredColumn[Row], ...]
"""One or several neighbouring columns."""


def text(
    name: str, cell: Callable[[Row], str | None], meaning: str = ""
) -> Columns[Row]:
    """A column of texts, such as names and ids."""
    return column(name, cell, meaning, "text")


def count(
    name: str, cell: Callable[[Row], int | None], meaning: str = ""
) -> Columns[Row]:
    """A column of whole numbers."""
    return column(name, cell, meaning, "count")


def number(
    name: str, cell: Callable[[Row], float | None], meaning: str = ""
) -> Columns[Row]:
    """A column of measured numbers."""
    return column(name, cell, meaning, "number")


def flag(
    name: str, cell: Callable[[Row], bool | None], meaning: str = ""
) -> Columns[Row]:
    """A column of true and false."""
    return column(name, cell, meaning, "flag")


def column(
    name: str, cell: Callable[[Row], Cell], meaning: str = "", kind: ColumnKind = "any"
) -> Columns[Row]:
    """A column whose cells may be of several kinds."""
    return (DeclaredColumn(name=name, cell=cell, kind=kind, meaning=meaning),)


def per_key(
    name: str,
    keys: Iterable[str],
    cell: Callable[[Row, str], Cell],
    kind: ColumnKind = "count",
) -> Columns[Row]:
    """A column for each key, with the key in place of `{}` in its name."""

    def of_key(key: str) -> DeclaredColumn[Row]:
        return DeclaredColumn(
            name=name.format(key), cell=lambda row: cell(row, key), kind=kind
        )

    return tuple(map(of_key, keys))


def group(
    columns: Iterable[Columns[Part]],
    part: Callable[[Row], Part | None],
    prefix: str = "",
) -> Columns[Row]:
    """Columns of a part of the row; all are undefined where the row has no such part.

    Args:
        columns: of the part.
        part: gets it from the row.
        prefix: before the names of the columns.
    """

    def of_row(inner: DeclaredColumn[Part]) -> DeclaredColumn[Row]:
        def cell(row: Row) -> Cell:
            value = part(row)
            return None if value is None else inner.cell(value)

        return DeclaredColumn(
            name=prefix + inner.name,
            cell=cell,
            kind=inner.kind,
            meaning=inner.meaning,
            part=_PartCell(part, inner.cell),
        )

    return tuple(map(of_row, chain(*columns)))


def groups(
    columns: Iterable[Columns[Part]],
    keys: Iterable[str],
    part: Callable[[Row, str], Part | None],
    prefix: str = "{}",
) -> Columns[Row]:
    """A `group` for each key, with the key in place of `{}` in the prefix."""

    def of_key(key: str) -> Columns[Row]:
        return group(columns, lambda row: part(row, key), prefix.format(key))

    return tuple(chain(*map(of_key, keys)))


METRIC_VALUE: tuple[Columns[Metric], ...] = (
    number("", lambda metric: metric.value),
    number(".lo", lambda metric: metric.lo, "lower end of the interval"),
    number(".hi", lambda metric: metric.hi, "upper end of the interval"),
)
"""A metric with the ends of its interval; the prefix is its path."""


_Reader: TypeAlias = tuple[
    Callable[[Row], Any] | None, tuple[Callable[[Any], Cell], ...]
]
"""Getter of a part, or None for the row itself, and the getters of its cells."""


@dataclass(frozen=True, kw_only=True)
class TableOf(Generic[Row]):
    """A table, declared without its rows.

    Raises:
        ValueError: two columns have the same name.
    """

    name: str
    columns: tuple[Columns[Row], ...]
    caption: str = ""
    is_headline: bool = False  #: a report begins with it

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"the table {self.name!r} has two columns of one name")

    @cached_property
    def flat_columns(self) -> Columns[Row]:
        """All columns in their order."""
        return tuple(chain(*self.columns))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(inner.name for inner in self.flat_columns)

    def cells(self, row: Row) -> tuple[Cell, ...]:
        """The cells of a row, in the order of the columns."""
        cells: list[Cell] = []
        for part_of, getters in self._readers:
            part = row if part_of is None else part_of(row)
            if part_of is not None and part is None:
                cells += [None] * len(getters)
            else:
                cells += [cell(part) for cell in getters]
        return tuple(cells)

    @cached_property
    def _readers(self) -> tuple[_Reader[Row], ...]:
        """Neighbouring columns of one part together, so that it is got once a row."""
        by_part = groupby(self.flat_columns, lambda inner: inner.part and inner.part.of)
        return tuple(
            (part_of, tuple(c.part.cell if c.part else c.cell for c in columns))
            for part_of, columns in by_part
        )

    def fields(self, row: Row) -> dict[str, Cell]:
        """The cells of a row by the names of their columns."""
        return dict(zip(self.names, self.cells(row), strict=True))

    def table(self, rows: Iterable[Row] = (), *, name: str = "") -> Table:
        """The table with its rows, or without those that come as `details`.

        Args:
            rows: in their order.
            name: instead of the declared one, such as a file in a model's folder.
        """
        return Table(
            name=name or self.name,
            columns=self.names,
            rows=tuple(map(self.cells, rows)),
            caption=self.caption,
            is_headline=self.is_headline,
        )

    def lines(self, rows: Iterable[Row]) -> Iterator[tuple[Cell, ...]]:
        """The names of the columns and then the rows, as a CSV file has them."""
        yield self.names
        yield from map(self.cells, rows)

    def details(self, rows: Iterable[Row], *, name: str = "") -> Iterator[StreamedRow]:
        """The rows one by one, for a table with a row per paper or question."""
        for row in rows:
            yield StreamedRow(table=name or self.name, cells=self.cells(row))

    def streamed(
        self, rows: Callable[[], Iterable[Row]], *, name: str = ""
    ) -> StreamedTable:
        """The table with *rows* that are made when it is written."""
        return StreamedTable(
            table=self.table(name=name), details=lambda: self.details(rows(), name=name)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedTable:
    """A table of a scoring whose rows are made while it is written."""

    table: Table  #: without its rows
    details: Callable[[], Iterator[StreamedRow]]

    def __iter__(self) -> Iterator[StreamedRow]:
        return self.details()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedColumn(Generic[Row]):
    """A column of a table for a terminal or for print."""

    column: PrintColumn
    cell: Callable[[Row], PrintCell]


def printed(
    name: str,
    cell: Callable[[Row], PrintCell],
    kind: PrintKind = "text",
    group: str = "",
) -> PrintedColumn[Row]:
    """A column for print; kind and group are those of a `PrintColumn`."""
    return PrintedColumn(
        column=PrintColumn(name=name, kind=kind, group=group), cell=cell
    )


def print_table(
    title: str,
    rows: Iterable[Row],
    columns: Sequence[PrintedColumn[Row]],
    note: str = "",
) -> PrintTable:
    """Set rows as a table for a terminal, Markdown or LaTeX."""
    return PrintTable(
        title=title,
        columns=tuple(column.column for column in columns),
        rows=tuple(tuple(column.cell(row) for column in columns) for row in rows),
        note=note,
    )
