"""Columns of input files by the names used here, from `--map FIELD=COLUMN`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jobs.rows.files import csv_columns
from jobs.screening.inputs.citations import EDGE
from jobs.screening.inputs.exclusions import EXCLUSION
from jobs.screening.inputs.records import RECORD
from runner.errors import UsageError

FIELDS = tuple(dict.fromkeys((*RECORD, *EDGE, *EXCLUSION)))
"""What a column may be renamed to; the tables of texts have no others."""


def renamed_columns(pairs: Sequence[str], paths: Iterable[Path]) -> dict[str, str]:
    """The fields by the columns that hold them.

    Args:
        pairs: as typed, each FIELD=COLUMN.
        paths: the CSV files, of which one at least must have each column: a name that
            is mistyped would else be a column silently missing.

    Raises:
        UsageError: one has no equals sign, or there is no such field or column.
        DatasetError: a file is not to be read.
    """
    found = {}
    for pair in pairs:
        field, is_pair, column = map(str.strip, pair.partition("="))
        if not (is_pair and field and column):
            raise UsageError(f"--map {pair}: write FIELD=COLUMN, such as pmid=PubMed.")
        if field not in FIELDS:
            raise UsageError(
                f"--map {pair}: there is no field {field}; one of {', '.join(FIELDS)} "
                "is expected."
            )
        found[column] = field
    if found:
        columns = {name for path in paths for name in csv_columns(path)}
        for column, field in found.items():
            if column not in columns:
                raise UsageError(
                    f"--map {field}={column}: no file has a column {column}; name one "
                    "as its header does."
                )
    return found
