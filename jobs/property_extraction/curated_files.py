"""Reads curated values, the rubric, and the lookup tables of scoring.

The tables are categories of texts, numbers of space groups, and units.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import TypeAlias

from jobs.kit.inputs.cells import kind_of, number_of
from jobs.kit.inputs.column_map import ColumnMap
from jobs.kit.inputs.files import read_json
from jobs.kit.inputs.rows import InputFindings
from jobs.property_extraction.input_table import MATERIAL, REFNO, UNIT, open_table
from jobs.property_extraction.rows import TruthRow
from jobs.property_extraction.values.comparison import ComparisonKind, Property, Rubric
from jobs.property_extraction.values.unit_reader import UnitTableRow
from runner.errors import DatasetError
from runner.table_files import as_meant

NAME_SPELLINGS = ("label", "property_name")
VALUE, OTHER_VALUES = "property_value", ("value_string",)
CONDITION_SPELLINGS = ("condition", "conditions")
DEFINITION = ("definition",)

TRUTH_FIELDS = (
    REFNO[0],
    NAME_SPELLINGS[0],
    VALUE,
    UNIT[0],
    MATERIAL[0],
    CONDITION_SPELLINGS[0],
    *DEFINITION,
)
"""What a column of curated values may be mapped to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthFile:
    """All rows that have a value, in file order."""

    rows: tuple[TruthRow, ...]
    blank: int  #: rows that were dropped because they have none


def read_truth(
    path: Path,
    findings: InputFindings,
    missing: Collection[str] = (),
    renamed: ColumnMap | None = None,
) -> TruthFile:
    """Read a file of curated values.

    Args:
        path: the file.
        findings: learns of two columns that hold names.
        missing: texts that count as an empty cell.
        renamed: columns that `--map` renames.

    Raises:
        DatasetError: a column is missing or could be several, a row has no paper or
            name, or there is none.
    """
    table = open_table(path, missing, renamed)
    header = table.header
    refno, name = header.need(REFNO), header.need(NAME_SPELLINGS)
    value = header.value(VALUE, OTHER_VALUES)
    unit, material = header.first(UNIT), header.first(MATERIAL)
    condition, definition = header.first(CONDITION_SPELLINGS), header.first(DEFINITION)
    if set(NAME_SPELLINGS) <= set(header.names):
        findings.add(
            "two_name_columns",
            "info",
            path.name,
            "There are columns label and property_name; label is the name.",
        )
    rows, blank = [], 0
    for cells in table.rows:
        for column in (refno, name):
            if not cells.at(column):
                raise cells.error(
                    f"{header.names[column]} is blank (fill it in, or remove the row)"
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
    return TruthFile(rows=tuple(rows), blank=blank)


BROKEN = frozenset({"", "#N/A", "#NAME?", "#REF!", "#VALUE!"})
"""Rubric words of rows that a spreadsheet left without one."""

CONDITION_RUBRIC = "condition_name"
"""Rows that name a condition describe no property."""

WORDS: Mapping[str, ComparisonKind] = {
    "0.1% si": ComparisonKind.SI,
    "categorical": ComparisonKind.CATEGORICAL,
    "pymatgen": ComparisonKind.PYMATGEN,
    "space group": ComparisonKind.SPACE_GROUP,
    "space_group": ComparisonKind.SPACE_GROUP,
    "exact": ComparisonKind.EXACT,
    "exact_match": ComparisonKind.EXACT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricFile:
    """The rubric, and what of its file is none."""

    rubric: Rubric
    dropped: int = 0  #: rows without a name, or without a word
    conditions: int = 0  #: rows about conditions


def read_rubric(
    path: Path, findings: InputFindings, *, is_unknown_exact: bool = False
) -> RubricFile:
    """Read a rubric.

    Args:
        path: the file.
        findings: learns of names that occur twice.
        is_unknown_exact: read a word that is none as `exact`.

    Raises:
        DatasetError: a column is missing, a word is none, or there is no property.
    """
    table = open_table(path)
    header = table.header
    name, word = header.need(NAME_SPELLINGS), header.need(("rubric",))
    si, condition = header.first(("SI",)), header.first((CONDITION_RUBRIC,))
    definition = header.first(("definition", "description"))
    properties: dict[str, Property] = {}
    dropped = conditions = 0
    for cells in table.rows:
        if cells.at(condition):
            conditions += 1
            continue
        property_name, kind_word = as_meant(cells.at(name)), cells.at(word)
        if not property_name or kind_word in BROKEN:
            dropped += 1
            continue
        kind = WORDS.get(kind_word.lower())
        if kind is None:
            if not is_unknown_exact:
                raise cells.error(
                    f"rubric is {kind_word!r} (one of {', '.join(WORDS)} is expected; "
                    "--unknown-rubric exact reads others so)"
                )
            kind = ComparisonKind.EXACT
        if property_name in properties:
            findings.add(
                "rubric_twice",
                "warn",
                path.name,
                "Names have several rows; the last one holds.",
                example=property_name,
            )
            del properties[property_name]
        unit = cells.at(si)
        properties[property_name] = Property(
            name=property_name,
            kind=kind,
            si="" if unit in BROKEN else unit,
            definition=as_meant(cells.at(definition)),
            source_row=cells.number,
        )
    if not properties:
        raise DatasetError(f"{path.name}: no row has a name and a rubric (add rows).")
    return RubricFile(
        rubric=Rubric(properties=properties), dropped=dropped, conditions=conditions
    )


ClusterTable: TypeAlias = Mapping[str, Mapping[str, str]]
"""By property: the category of each text."""

SpaceGroupTable: TypeAlias = Mapping[str, int]
"""By symbol: the number, from 1 to 230."""

GROUPS = 230


def read_clusters(path: Path) -> ClusterTable:
    """Categories by property and text.

    Raises:
        DatasetError: the file is no such object.
    """
    clusters = read_json(path)
    if not isinstance(clusters, dict):
        raise DatasetError(
            f"{path.name}: {kind_of(clusters)} (an object of properties is expected)."
        )
    for name, texts in clusters.items():
        if not isinstance(texts, dict) or not all(
            isinstance(category, str) for category in texts.values()
        ):
            raise DatasetError(
                f"{path.name}: {name} is {kind_of(texts)} (an object of texts, each "
                "with its category, is expected)."
            )
    return clusters


def read_space_groups(path: Path) -> SpaceGroupTable:
    """Numbers by symbol.

    Raises:
        DatasetError: the file is no such object, or a number is none of a space group.
    """
    numbers = read_json(path)
    if not isinstance(numbers, dict):
        raise DatasetError(
            f"{path.name}: {kind_of(numbers)} (an object of symbols is expected)."
        )
    for symbol, number in numbers.items():
        if type(number) is not int or not 1 <= number <= GROUPS:
            raise DatasetError(
                f"{path.name}: {symbol} is {number!r} (a number from 1 to {GROUPS} is "
                "expected)."
            )
    return numbers


def read_unit_table(path: Path) -> tuple[UnitTableRow, ...]:
    """Units with what they are in SI, in file order; rows without a unit are left out.

    Raises:
        DatasetError: a column is missing, or a factor is no number above 0.
    """
    table = open_table(path)
    header = table.header
    unit, si = header.need(("property_unit",)), header.need(("SI",))
    factor = header.need(("conversion_factor",))
    rows = []
    for cells in table.rows:
        if not cells.at(unit) or not cells.at(factor):
            continue
        try:
            number = number_of(cells.at(factor))
        except ValueError as error:
            raise cells.error(f"conversion_factor {error}") from error
        if not (math.isfinite(number) and number > 0):
            raise cells.error(
                f"conversion_factor is {cells.at(factor)} (a number above 0 is "
                "expected)"
            )
        rows.append(
            UnitTableRow(
                name=cells.at(unit),
                si=cells.at(si),
                factor=number,
                source_row=cells.number,
            )
        )
    return tuple(rows)
