"""Ids of reviews and papers: texts, without the blanks around them."""

from __future__ import annotations

from jobs.rows.row import Row

SEPARATOR = ":"
"""Between review and paper in the key of a task; no id may hold it."""

MISSING_COLUMN = "rename one, or pass --map FIELD=COLUMN"
"""What to do where a table calls a column otherwise."""


def read_id(row: Row, name: str) -> str:
    """An id that must be there.

    Raises:
        DatasetError: the cell is empty or blank, or holds the separator of keys.
    """
    found = optional_id(row, name)
    if not found:
        raise row.error(f"column {name!r} is empty (fill it in or remove the row)")
    return found


def optional_id(row: Row, name: str) -> str:
    """An id, "" where the cell is empty or blank.

    Raises:
        DatasetError: it holds the separator of keys.
    """
    found = row.optional_text(name).strip()
    if SEPARATOR in found:
        raise row.error(
            f"{name} is {found!r}, and a colon parts review and paper in the keys of "
            "tasks (rename the id)"
        )
    return found
