"""A table on its way into a file or a data frame: typed columns, rows read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from runner.exporting.kinds import Kind
from runner.scorecard import Cell

CHUNK_ROWS = 2000
"""Rows held at a time; also a Parquet row group."""

CHUNK_BYTES = 16 << 20
"""Characters held at a time: two thousand embeddings would be gigabytes of text."""

Record = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column's name and what all of its cells are."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table with a name such as `tasks` or `scores/1/metrics`."""

    name: str
    columns: tuple[Column, ...]
    rows: Iterable[Record]  #: may be an iterator: it is read once, from front to back

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    def chunks(self) -> Iterator[list[Record]]:
        """The rows in pieces of bounded size, every cell of its column's kind."""
        kinds = [column.kind for column in self.columns]
        chunk: list[Record] = []
        held = 0
        for row in self.rows:
            cells = tuple(k.cell(cell) for k, cell in zip(kinds, row, strict=True))
            chunk.append(cells)
            held += sum(len(cell) for cell in cells if isinstance(cell, str))
            if len(chunk) >= CHUNK_ROWS or held >= CHUNK_BYTES:
                yield chunk
                chunk, held = [], 0
        if chunk:
            yield chunk


def columns(**kinds: Kind) -> tuple[Column, ...]:
    """Columns by their names, in the order given."""
    return tuple(Column(name=name, kind=kind) for name, kind in kinds.items())
