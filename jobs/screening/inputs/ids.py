"""Ids of reviews and papers: texts, without the blanks around them."""

from __future__ import annotations

import unicodedata

from jobs.inputs.rows import InputRow, quote

SEPARATOR = ":"
"""Between review and paper in the key of a task; no id may hold it."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories that no id may hold: who reads two ids must see whether they are one, and
control characters also part what is hashed for the draw, and the lines of files."""


def id_of(text: str) -> str:
    """An id without the blanks around it; "" where nothing is left.

    Raises:
        ValueError: it holds what no id may hold; the message says what, and the cure.
    """
    found = text.strip()
    if SEPARATOR in found:
        raise ValueError(
            f"is {quote(found)}, and a colon parts review and paper in the keys of "
            "tasks (rename the id)"
        )
    # nearly all ids are printable, and known to be so at once
    if not found.isprintable() and any(map(_is_unseen, found)):
        raise ValueError(f"is {quote(found)}, with an invisible character (remove it)")
    return found


def read_id(row: InputRow, name: str) -> str:
    """An id that must be there.

    Raises:
        DatasetError: the cell is empty or blank, or holds what no id may hold.
    """
    found = optional_id(row, name)
    if not found:
        raise row.error(f"column {name!r} is empty (fill it in or remove the row)")
    return found


def optional_id(row: InputRow, name: str) -> str:
    """An id, "" where the cell is empty or blank.

    Raises:
        DatasetError: it holds what no id may hold.
    """
    try:
        return id_of(row.optional_text(name))
    except ValueError as error:
        raise row.error(f"{name} {error}") from error


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN
