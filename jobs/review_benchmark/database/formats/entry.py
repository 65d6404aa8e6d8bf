"""What a record says of a paper, from cells that many programs have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from jobs.inputs.rows import InputCell, integer_of, quote, text_of
from jobs.review_benchmark.database.merging import NORMAL
from jobs.review_benchmark.database.paper import BadEntry, Entry
from jobs.review_benchmark.matching.normal import pmid_of

Cells: TypeAlias = Mapping[str, InputCell]
"""By the names of the fields; what is absent, None or blank is not given."""

NAMES: Final = (
    *("document_id", "pmid", "doi", "title", "abstract", "authors", "journal", "year"),
)

LAST_YEAR = 9999
"""A year has at most four digits."""


def entry_of(number: int, cells: Cells) -> Entry | BadEntry:
    """The entry that cells say, or what is wrong with them.

    Args:
        number: of the record in its file, from 1.
        cells: what the record holds.
    """
    try:
        entry = _entry(number, cells)
    except ValueError as error:
        return BadEntry(number=number, reason=str(error))
    if pmid_of(entry.pmid) or NORMAL.doi(entry.doi) or NORMAL.title(entry.title):
        return entry
    # such a paper could never be found again: importing it twice would make two
    return BadEntry(
        number=number, reason="neither PMID nor DOI nor title is there (give one)"
    )


def _entry(number: int, cells: Cells) -> Entry:
    return Entry(
        source_id=_identifier("document_id", cells) or str(number),
        pmid=_identifier("pmid", cells),
        doi=_text("doi", cells),
        title=_text("title", cells),
        abstract=_text("abstract", cells),
        authors=_authors(cells.get("authors")),
        journal=_text("journal", cells),
        year=_year(cells.get("year")),
    )


def _text(name: str, cells: Cells) -> str:
    cell = cells.get(name)
    if isinstance(cell, str):
        return cell.strip()
    if cell is None:
        return ""
    try:
        return text_of(cell)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def _identifier(name: str, cells: Cells) -> str:
    """A text or a number, such as `123.0` where a table has gaps."""
    cell = cells.get(name)
    return str(cell) if isinstance(cell, float) else _text(name, cells)


def _year(cell: InputCell) -> int | None:
    if isinstance(cell, str):
        cell = cell.strip()
    if cell is None or cell == "":
        return None
    try:
        year = integer_of(cell)
    except ValueError as error:
        raise ValueError(f"year {error}") from error
    if not 0 < year <= LAST_YEAR:
        raise ValueError(f"year is {quote(cell)} (four digits are expected)")
    return year


def _authors(cell: InputCell) -> tuple[str, ...]:
    """A list of names, or names parted by semicolons."""
    names = cell.split(";") if isinstance(cell, str) else cell or []
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(stripped for name in names if (stripped := name.strip()))
    raise ValueError("authors is something else than a list of names (correct it)")
