"""Curated values, one a row of a CSV file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from sys import intern

from jobs.inputs.column_map import ColumnMap
from jobs.inputs.rows import InputFindings
from jobs.property_extraction.inputs.columns import open_table
from jobs.property_extraction.row import TruthRow
from runner.errors import DatasetError
from runner.score.render import as_meant

REFNO = ("refno", "paper", "paper_id")
NAME = ("label", "property_name")
VALUE, OTHER_VALUES = "property_value", ("value_string",)
UNIT = ("property_unit", "unit", "units")
MATERIAL = ("material", "material_or_system")
CONDITION = ("condition", "conditions")
DEFINITION = ("definition",)

FIELDS = (REFNO[0], NAME[0], VALUE, UNIT[0], MATERIAL[0], CONDITION[0], *DEFINITION)
"""What a column of curated values may be mapped to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """All rows that have a value, in file order."""

    rows: tuple[TruthRow, ...]
    blank: int  #: rows that were dropped because they have none


def read_truth(
    path: Path,
    noticed: InputFindings,
    missing: Collection[str] = (),
    renamed: ColumnMap | None = None,
) -> Truth:
    """Read a file of curated values.

    Args:
        path: the file.
        noticed: learns of two columns that hold names.
        missing: texts that count as an empty cell.
        renamed: columns that `--map` renames.

    Raises:
        DatasetError: a column is missing or could be several, a row has no paper or
            name, or there is none.
    """
    table = open_table(path, missing, renamed)
    header = table.header
    refno, name = header.need(REFNO), header.need(NAME)
    value = header.value(VALUE, OTHER_VALUES)
    unit, material = header.first(UNIT), header.first(MATERIAL)
    condition, definition = header.first(CONDITION), header.first(DEFINITION)
    if set(NAME) <= set(header.names):
        noticed.add(
            "two_name_columns",
            "info",
            path.name,
            "There are columns label and property_name; label is the name.",
        )
    rows, blank = [], 0
    for cells in table.rows:
        for place in (refno, name):
            if not cells.at(place):
                raise cells.error(
                    f"{header.names[place]} is blank (fill it in, or remove the row)"
                )
        if not cells.at(value):
            blank += 1
            continue
        rows.append(
            TruthRow(
                refno=intern(cells.at(refno)),
                name=intern(as_meant(cells.at(name))),
                value=as_meant(cells.at(value)),
                unit=intern(cells.at(unit)),
                material=intern(as_meant(cells.at(material))),
                condition=as_meant(cells.at(condition)),
                definition=intern(as_meant(cells.at(definition))),
                source_row=cells.number,
            )
        )
    if not rows:
        raise DatasetError(f"{path.name}: no row has a value (add rows).")
    return Truth(rows=tuple(rows), blank=blank)
