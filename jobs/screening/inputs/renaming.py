"""Columns of input files by the names used here, from `--map OLD=NEW`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jobs.inputs.column_map import column_map
from jobs.inputs.files import csv_columns
from jobs.screening.inputs.citations import EDGE
from jobs.screening.inputs.exclusions import EXCLUSION
from jobs.screening.inputs.records import RECORD

FIELDS = tuple(dict.fromkeys((*RECORD, *EDGE, *EXCLUSION)))
"""What a column may be renamed to; the tables of texts have no others."""


def renamed_columns(pairs: Sequence[str], paths: Iterable[Path]) -> dict[str, str]:
    """The fields by the columns that hold them.

    Args:
        pairs: as typed, each OLD=NEW; the reverse order is understood too.
        paths: the files, of which one at least must have each column.

    Raises:
        UsageError: a pair is none, or there is no such field or column.
        DatasetError: a file is not to be read.
    """
    if not pairs:
        return {}
    columns = [name for path in paths for name in csv_columns(path)]
    return column_map(pairs, FIELDS, columns)
