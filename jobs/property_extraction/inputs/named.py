"""The files of curated values and rules that settings name; empty where they do not."""

from __future__ import annotations

from jobs.hub import table_file
from jobs.noticed import Noticed
from jobs.property_extraction.inputs.columns import NA
from jobs.property_extraction.inputs.rubric import RubricFile, read_rubric
from jobs.property_extraction.inputs.tables import read_unit_table
from jobs.property_extraction.inputs.truth import Truth, read_truth
from jobs.property_extraction.rubric import Rubric
from jobs.property_extraction.settings import Settings
from jobs.property_extraction.values.unit_row import UnitRow


def named_truth(settings: Settings, noticed: Noticed) -> Truth:
    """The curated values; raise `DatasetError` where a row is off."""
    if settings.truth is None:
        return Truth(rows=(), blank=0)
    return read_truth(table_file(settings.truth), noticed, NA[settings.na])


def named_rubric(settings: Settings, noticed: Noticed) -> RubricFile:
    """How properties are compared; raise `DatasetError` where a row is off."""
    if settings.rubric is None:
        return RubricFile(rubric=Rubric())
    is_lenient = settings.unknown_rubric == "exact"
    return read_rubric(settings.rubric, noticed, is_unknown_exact=is_lenient)


def named_unit_table(settings: Settings) -> tuple[UnitRow, ...]:
    """Further units; raise `DatasetError` where a row is off."""
    return () if settings.unit_table is None else read_unit_table(settings.unit_table)
