"""The files of curated values and rules that settings name; empty where they do not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jobs.inputs.column_map import ColumnMap, column_map, pairs_within
from jobs.inputs.hub import table_file
from jobs.inputs.rows import InputFindings
from jobs.property_extraction.inputs.columns import NA, open_table
from jobs.property_extraction.inputs.predictions import FIELDS as PREDICTED
from jobs.property_extraction.inputs.rubric import RubricFile, read_rubric
from jobs.property_extraction.inputs.tables import read_unit_table
from jobs.property_extraction.inputs.truth import FIELDS as CURATED
from jobs.property_extraction.inputs.truth import Truth, read_truth
from jobs.property_extraction.inputs.verdicts import FIELDS as VERDICTS
from jobs.property_extraction.rubric import Rubric
from jobs.property_extraction.settings import Settings
from jobs.property_extraction.values.unit_row import UnitRow

FIELDS = tuple(dict.fromkeys((*PREDICTED, *CURATED, *VERDICTS)))
"""What a column of predictions, curated values or verdicts may be mapped to."""


def mapped(settings: Settings, paths: Iterable[Path]) -> ColumnMap:
    """The fields by the columns of all *paths* that `--map` renames.

    Raises:
        UsageError: a pair names a field that there is not, or a column that no file
            has.
    """
    if not settings.map:
        return {}
    columns = [name for path in paths for name in open_table(path).header.names]
    return column_map(settings.map, FIELDS, columns)


def mapped_in(settings: Settings, path: Path) -> ColumnMap:
    """The fields by the columns of one file that `--map` renames.

    The other pairs are about other files, which the import has looked through.
    """
    if not settings.map:
        return {}
    columns = open_table(path).header.names
    own = pairs_within(settings.map, FIELDS, columns)
    return column_map(own, FIELDS, columns)


def named_truth(settings: Settings, noticed: InputFindings) -> Truth:
    """The curated values; raise `DatasetError` where a row is off."""
    if settings.truth is None:
        return Truth(rows=(), blank=0)
    path = table_file(settings.truth)
    return read_truth(path, noticed, NA[settings.na], mapped_in(settings, path))


def named_rubric(settings: Settings, noticed: InputFindings) -> RubricFile:
    """How properties are compared; raise `DatasetError` where a row is off."""
    if settings.rubric is None:
        return RubricFile(rubric=Rubric())
    is_lenient = settings.unknown_rubric == "exact"
    return read_rubric(settings.rubric, noticed, is_unknown_exact=is_lenient)


def named_unit_table(settings: Settings) -> tuple[UnitRow, ...]:
    """Further units; raise `DatasetError` where a row is off."""
    return () if settings.unit_table is None else read_unit_table(settings.unit_table)
