"""The columns of a table: what they show of a row, and how many fit side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

RowT = TypeVar("RowT")

GAP = 2
"""Cells between two columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[RowT]):
    """One column; its texts may hold anything, the table makes them harmless."""

    title: str
    width: int  #: cells; of a column that grows: at least so many
    text: Callable[[RowT], str]
    tone: Callable[[RowT], str] | None = None  #: a colour of the table, such as failed
    is_right: bool = False  #: figures
    grows: bool = False  #: takes what the others leave
    drops: int = 0  #: where room is scarce the highest go first; 0 stays


def fitted(columns: Sequence[Column[RowT]], width: int) -> list[Column[RowT]]:
    """The columns that *width* cells have room for, with their final widths.

    Those that may go do, the highest `drops` first; what is left over is given to the
    column that grows.
    """
    kept = list(columns)
    while _needed(kept) > width:
        least = max(kept, key=lambda column: column.drops, default=None)
        if least is None or not least.drops:
            break
        kept.remove(least)
    spare = max(0, width - _needed(kept))
    growing = sum(column.grows for column in kept)
    return [
        replace(column, width=column.width + spare // growing)
        if column.grows
        else column
        for column in kept
    ]


def _needed(columns: Sequence[Column[RowT]]) -> int:
    return sum(column.width for column in columns) + GAP * max(0, len(columns) - 1)
