"""Rows put aside until the last of them has said what the columns hold.

What a job's tables hold is known once all rows are there, and they come from one pass
over the answers, those of several tables in turns. A few of them stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import Final

import msgspec

from runner.exporting.kinds import Kind
from runner.exporting.sheet import Column, Record
from runner.scorecard import Cell

IN_MEMORY: Final = 1 << 20
"""Bytes of a table that are held before a file without a name takes them."""

_LENGTH_BYTES: Final = 4
_DECODER: Final = msgspec.msgpack.Decoder(tuple[Cell, ...])


class Aside:
    """The rows of one table: taken one by one, given back in their order."""

    def __init__(self, names: Sequence[str], leaving: ExitStack) -> None:
        """A table without rows.

        Args:
            names: of its columns.
            leaving: when it is left, the rows are gone.
        """
        self._names = names
        self._kinds = [Kind.NOTHING] * len(names)
        self._encoder = msgspec.msgpack.Encoder()
        self._file = leaving.enter_context(
            SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - by *leaving*
        )

    def add(self, cells: Record) -> None:
        """Put the next row aside."""
        held = [_storable(cell) for cell in cells]
        self._kinds = [
            kind.with_(Kind.of(cell))
            for kind, cell in zip(self._kinds, held, strict=True)
        ]
        packed = self._encoder.encode(held)
        self._file.write(len(packed).to_bytes(_LENGTH_BYTES) + packed)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, each of the narrowest kind that takes all of its cells."""
        return tuple(
            Column(name=name, kind=kind)
            for name, kind in zip(self._names, self._kinds, strict=True)
        )

    def __iter__(self) -> Iterator[Record]:
        """All rows from the first."""
        self._file.seek(0)
        while head := self._file.read(_LENGTH_BYTES):
            yield _DECODER.decode(self._file.read(int.from_bytes(head)))


def _storable(cell: Cell) -> Cell:
    """A cell that can be packed: whole numbers beyond 64 bits are texts from here."""
    is_huge = Kind.of(cell) is Kind.TEXT and not isinstance(cell, str)
    return repr(cell) if is_huge else cell
