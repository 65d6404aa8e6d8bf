"""Reads CSV and TSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from jobs.inputs.files import header_of, records
from jobs.review_benchmark.database.formats.entry import NAMES, entry_of
from jobs.review_benchmark.database.paper import BadEntry, Entry
from jobs.text import plural
from runner.errors import DatasetError, UsageError

ALIASES: Final[Mapping[str, str]] = {
    **{name: name for name in NAMES},
    "pubmedid": "pmid",
    "pubmed id": "pmid",
    "record_id": "document_id",
}
"""Which column is what, by its name in lower case."""

_KEYS = ("pmid", "doi", "title")


def columns_of(mapped: Sequence[str]) -> Mapping[str, str]:
    """What `--map` says: columns of a file, each with its name here.

    Raises:
        UsageError: an item is not `name=column`, or no such name is known.
    """
    found = {}
    for text in mapped:
        name, equals, column = (part.strip() for part in text.partition("="))
        if not equals or not column or name not in NAMES:
            raise UsageError(
                f"--map {text}: write name=column, the name one of {', '.join(NAMES)}."
            )
        found[column] = name
    return found


def read_table(
    path: Path, delimiter: str, mapped: Mapping[str, str]
) -> Iterator[Entry | BadEntry]:
    """The rows of a file with a header; columns that say nothing here are passed over.

    Args:
        path: the file.
        delimiter: what parts columns.
        mapped: columns by their own names, in place of those that are known.

    Raises:
        DatasetError: the file is not to be read, or no column tells papers apart.
    """
    rows = records(path, delimiter)
    columns = header_of(path, rows, {})
    names = _named(columns, mapped)
    where = f"{path.name} row 1"
    for column in mapped:
        if column not in columns:
            raise DatasetError(
                f"{where}: no column {column} among {', '.join(columns)} "
                "(correct --map)."
            )
    for name in NAMES:
        if names.count(name) > 1:
            raise DatasetError(
                f"{where}: two columns are {name} (say which with --map {name}=column)."
            )
    if not any(name in names for name in _KEYS):
        raise DatasetError(
            f"{where}: none of pmid, doi and title among {', '.join(columns)} (name "
            "them in the header, or with --map title=column)."
        )
    for number, (_, _, cells) in enumerate(rows, start=1):
        if len(cells) != len(columns):
            fields = plural(len(cells), "field")
            reason = (
                f"{fields} where the header has {len(columns)} "
                "(quote a field that holds a delimiter, complete what is short)"
            )
            yield BadEntry(number=number, reason=reason)
        else:
            found = zip(names, cells, strict=True)
            yield entry_of(
                number, {name: cell or None for name, cell in found if name is not None}
            )


def _named(columns: Sequence[str], mapped: Mapping[str, str]) -> list[str | None]:
    """What each column is here; a name that is mapped is no other column's."""
    taken = set(mapped.values())
    names = []
    for column in columns:
        name = ALIASES.get(column.lower())
        names.append(mapped.get(column, None if name in taken else name))
    return names
