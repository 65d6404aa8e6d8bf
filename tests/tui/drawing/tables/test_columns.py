"""Columns share the room that there is, and the least needed go first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.render.layout import COLUMN_GAP, TableColumn, fitted

TASK: TableColumn[str] = TableColumn(title="task", width=9, text=str)
KEY: TableColumn[str] = TableColumn(title="paper", width=10, text=str, grows=True)
COST: TableColumn[str] = TableColumn(
    title="cost", width=7, text=str, is_right=True, drops=2
)
WHEN: TableColumn[str] = TableColumn(
    title="when", width=6, text=str, is_right=True, drops=1
)
ALL = (TASK, KEY, COST, WHEN)


def _titles(width: int) -> list[str]:
    return [column.title for column in fitted(ALL, width)]


def test_what_is_needed_least_goes_first() -> None:
    assert _titles(38) == ["task", "paper", "cost", "when"]
    assert _titles(37) == ["task", "paper", "when"]
    assert _titles(28) == ["task", "paper"]


def test_what_must_stay_stays() -> None:
    assert _titles(3) == ["task", "paper"]


def test_one_column_takes_what_is_left() -> None:
    assert [column.width for column in fitted(ALL, 50)] == [9, 22, 7, 6]


@given(st.integers(21, 300))
def test_the_room_is_used_and_never_exceeded(width: int) -> None:
    found = fitted(ALL, width)
    assert (
        sum(column.width for column in found) + COLUMN_GAP * (len(found) - 1) == width
    )


def test_without_columns_there_is_nothing_to_fit() -> None:
    assert fitted((), 80) == []
