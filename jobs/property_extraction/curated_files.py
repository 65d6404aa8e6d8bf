"""Reads curated values, the rubric, and the lookup tables of scoring.

The tables are categories of texts, numbers of space groups, and units.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AliasChoices, Field

from jobs.kit.inputs.cells import kind_of, number_of
from jobs.kit.inputs.column_map import ColumnMap
from jobs.kit.inputs.files import read_json
from jobs.kit.inputs.rows import InputFindings
from jobs.property_extraction.input_table import (
    MATERIAL,
    REFNO,
    UNIT,
    ColumnRule,
    Meant,
    Name,
    Refno,
    Repeated,
    RepeatedMeant,
    TableRow,
    column_names,
    open_table,
    read_rows,
    value_column,
)
from jobs.property_extraction.rows import TruthRow
from jobs.property_extraction.values.comparison import ComparisonKind, Property, Rubric
from jobs.property_extraction.values.unit_reader import UnitTableRow
from runner.errors import DatasetError

NAME = AliasChoices("label", "property_name")


class _CuratedRow(TableRow):
    refno: Refno = Field(validation_alias=REFNO)
    name: Name = Field(validation_alias=NAME)
    value: Annotated[Meant, ColumnRule(value_column)] = Field(
        validation_alias=AliasChoices("property_value", "value_string")
    )
    unit: Repeated = Field("", validation_alias=UNIT)
    material: RepeatedMeant = Field("", validation_alias=MATERIAL)
    condition: Meant = Field(
        "", validation_alias=AliasChoices("condition", "conditions")
    )
    definition: RepeatedMeant = ""


TRUTH_FIELDS = column_names(_CuratedRow)
"""Fields to which a column of curated values may be mapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthFile:
    """All rows that have a value, in file order."""

    rows: tuple[TruthRow, ...]
    blank: int  #: rows that were dropped for a missing value
    papers: frozenset[str] = frozenset()  #: also of rows without a value


def read_truth(
    path: Path,
    findings: InputFindings,
    missing: Collection[str] = (),
    renamed: ColumnMap | None = None,
) -> TruthFile:
    """Read a file of curated values.

    Args:
        path: the file.
        findings: collects a finding if two columns hold names.
        missing: texts that count as an empty cell.
        renamed: columns that `--map` renames.

    Raises:
        DatasetError: a column is missing or ambiguous, a row has no paper or name, or
            there is no row.
    """
    rows, papers, blank = [], set(), 0
    for row in read_rows(path, _CuratedRow, missing, renamed):
        papers.add(row.refno)
        if row.value:
            rows.append(TruthRow(**row.cells, source_row=row.line))
        else:
            blank += 1
    if {*NAME.choices}.issubset(open_table(path, renamed).names):
        findings.add(
            "two_name_columns",
            "info",
            path.name,
            "There are columns label and property_name; label is the name.",
        )
    if not papers:
        raise DatasetError(f"{path.name}: it has no rows (add some).")
    if not rows:
        findings.add(
            "no_value",
            "warn",
            path.name,
            "No row has a value: each value that a model states counts as wrong.",
        )
    return TruthFile(rows=tuple(rows), blank=blank, papers=frozenset(papers))


BROKEN = frozenset({"", "#N/A", "#NAME?", "#REF!", "#VALUE!"})
"""Rubric words of rows that a spreadsheet left without one."""

WORDS: Mapping[str, ComparisonKind] = {
    "0.1% si": ComparisonKind.SI,
    "categorical": ComparisonKind.CATEGORICAL,
    "pymatgen": ComparisonKind.PYMATGEN,
    "space group": ComparisonKind.SPACE_GROUP,
    "space_group": ComparisonKind.SPACE_GROUP,
    "exact": ComparisonKind.EXACT,
    "exact_match": ComparisonKind.EXACT,
}


class _RubricRow(TableRow):
    name: Meant = Field(validation_alias=NAME)
    word: str = Field(validation_alias="rubric")
    si: str = Field("", validation_alias="SI")
    condition_name: str = ""
    """A row that names a condition describes no property."""
    definition: Meant = Field(
        "", validation_alias=AliasChoices("definition", "description")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricFile:
    """The rubric, and numbers of other rows in its file."""

    rubric: Rubric
    dropped: int = 0  #: rows without a name, or without a word
    conditions: int = 0  #: rows about conditions


def read_rubric(
    path: Path, findings: InputFindings, *, is_unknown_exact: bool = False
) -> RubricFile:
    """Read a rubric.

    Args:
        path: the file.
        findings: collects names that occur twice.
        is_unknown_exact: read an unknown word as `exact`.

    Raises:
        DatasetError: a column is missing, a word is unknown, or there is no property.
    """
    properties: dict[str, Property] = {}
    dropped = conditions = 0
    for row in read_rows(path, _RubricRow):
        if row.condition_name:
            conditions += 1
            continue
        if not row.name or row.word in BROKEN:
            dropped += 1
            continue
        kind = WORDS.get(row.word.lower())
        if kind is None:
            if not is_unknown_exact:
                raise row.error(
                    f"rubric is {row.word!r} (one of {', '.join(WORDS)} is expected; "
                    "--unknown-rubric exact reads others so)"
                )
            kind = ComparisonKind.EXACT
        if row.name in properties:
            findings.add(
                "rubric_twice",
                "warn",
                path.name,
                "Names have several rows; the last one holds.",
                example=row.name,
            )
            del properties[row.name]
        properties[row.name] = Property(
            name=row.name,
            kind=kind,
            si="" if row.si in BROKEN else row.si,
            definition=row.definition,
            source_row=row.line,
        )
    if not properties:
        raise DatasetError(f"{path.name}: no row has a name and a rubric (add rows).")
    return RubricFile(
        rubric=Rubric(properties=properties), dropped=dropped, conditions=conditions
    )


ClusterTable: TypeAlias = Mapping[str, Mapping[str, str]]
"""Category of each text, by property."""

SpaceGroupTable: TypeAlias = Mapping[str, int]
"""Number of each symbol, from 1 to 230."""

GROUPS = 230


def _object(path: Path, keys: str) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise DatasetError(
            f"{path.name}: {kind_of(value)} (an object of {keys} is expected)."
        )
    return value


def read_clusters(path: Path) -> ClusterTable:
    """Return categories by property and text.

    Raises:
        DatasetError: the file has another form.
    """
    clusters = _object(path, "properties")
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
    """Return numbers by symbol.

    Raises:
        DatasetError: the file has another form, or a number is not a space group's.
    """
    numbers = _object(path, "symbols")
    for symbol, number in numbers.items():
        if type(number) is not int or not 1 <= number <= GROUPS:
            raise DatasetError(
                f"{path.name}: {symbol} is {number!r} (a number from 1 to {GROUPS} is "
                "expected)."
            )
    return numbers


class _UnitRow(TableRow):
    name: str = Field(validation_alias="property_unit")
    si: str = Field(validation_alias="SI")
    conversion_factor: str


def read_unit_table(path: Path) -> tuple[UnitTableRow, ...]:
    """Return units with their SI equivalents, in file order; omit blank ones.

    Raises:
        DatasetError: a column is missing, or a factor is no number above 0.
    """
    return tuple(
        UnitTableRow(name=row.name, si=row.si, factor=_factor(row), source_row=row.line)
        for row in read_rows(path, _UnitRow)
        if row.name and row.conversion_factor
    )


def _factor(row: _UnitRow) -> float:
    try:
        factor = number_of(row.conversion_factor)
    except ValueError as error:
        raise row.error(f"conversion_factor {error}") from error
    if not (math.isfinite(factor) and factor > 0):
        raise row.error(
            f"conversion_factor is {row.conversion_factor} (a number above 0 is "
            "expected)"
        )
    return factor
