"""Reads imported predictions: one value per row of a CSV file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import AliasChoices, Field, PlainValidator, model_validator

from jobs.kit.inputs.column_map import ColumnMap, name_list
from jobs.property_extraction.input_table import (
    MATERIAL,
    REFNO,
    ColumnRule,
    Meant,
    Refno,
    Repeated,
    RepeatedMeant,
    TableRow,
    columns_in,
    open_table,
    predicted_unit_column,
    read_rows,
    unless_blank,
    value_column,
)
from jobs.property_extraction.rows import ImportedRow
from runner.errors import DatasetError

CONDITIONS = "conditions."
STATUSES = ("scored", "failed", "skipped")

PREDICTION_FIELDS = (
    *("refno", "property_name", "value_string", "value_number", "units", "material"),
    *("condition", CONDITIONS + "*", "quote", "model", "replicate"),
)
"""Fields to which a column of predictions may be mapped."""

TAKEN: Mapping[str, str] = {
    "refno": "refno",
    "name": "name",
    "value": "value_string",
    "number": "value_number",
    "unit": "unit",
    "material": "material",
    "condition": "whole_condition",
    "quote": "quote",
}
"""Fields whose columns are reported when a file is imported, by their label."""


def _replicate(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"is {text!r} (a whole number from 1 expected)")
    return int(text)


def _mentions(text: str) -> int:
    # a foreign column of that name may hold anything
    return int(text) if text.isdecimal() and int(text) else 1


class PredictedRow(TableRow, extra="allow"):
    """One row of a file, with any further columns."""

    refno: Refno = Field(validation_alias=REFNO)
    name: RepeatedMeant = Field(validation_alias="property_name")
    value_string: Annotated[Meant, ColumnRule(value_column)] = Field(
        validation_alias=AliasChoices("value_string", "property_value")
    )
    value_number: str = ""
    unit: Annotated[Repeated, ColumnRule(predicted_unit_column)] = Field(
        "", validation_alias=AliasChoices("units", "property_unit", "unit")
    )
    material: RepeatedMeant = Field("", validation_alias=MATERIAL)
    whole_condition: Meant = Field(
        "", validation_alias=AliasChoices("condition", "conditions")
    )
    quote: Meant = Field(
        "", validation_alias=AliasChoices("quote", "evidence", "location.evidence")
    )
    model: Repeated = ""
    """Empty: no column names one."""
    replicate: Annotated[int, unless_blank(_replicate, 1)] = 1
    mentions: Annotated[int, PlainValidator(_mentions)] = 1
    flag: str = ""
    paper_status: str = ""
    """Outcome of a paper without rows, as in `predictions.csv` of a scoring: `scored`,
    or `failed` or `skipped` with a reason after a colon."""

    @model_validator(mode="after")
    def _names_a_property(self) -> Self:
        if not (self.name or self.paper_status):
            raise ValueError("property_name is blank (fill it in, or remove the row)")
        if self.status and self.status not in STATUSES:
            raise ValueError(
                f"paper_status is {self.status[:20]!r} ({', '.join(STATUSES)} expected)"
            )
        return self

    @property
    def row(self) -> int:
        """Row number in the file; the header is row 1."""
        return self.line

    @property
    def value(self) -> str:
        """The text, or else the number; empty: the row predicts nothing."""
        return self.value_string or self.value_number

    @property
    def condition(self) -> str:
        """All conditions."""
        parts = [
            f"{name.removeprefix(CONDITIONS)}={text}"
            for name, text in self._further.items()
            if name.startswith(CONDITIONS)
        ]
        return "; ".join(filter(None, (self.whole_condition, *parts)))

    @property
    def extra(self) -> Mapping[str, str]:
        """Further columns that are not blank, by name."""
        return {
            name: text
            for name, text in self._further.items()
            if not name.startswith(CONDITIONS)
        }

    @property
    def _further(self) -> Mapping[str, str]:
        further = self.model_extra or {}
        return {name: text for name, text in further.items() if name and text}

    @property
    def status(self) -> str:
        """Status of a paper without rows; else empty."""
        return "" if self.name else self.paper_status.partition(": ")[0]

    @property
    def reason(self) -> str:
        """Reason of that status."""
        return "" if self.name else self.paper_status.partition(": ")[2]

    @property
    def imported(self) -> ImportedRow:
        """The row as a run stores it."""
        fields = ImportedRow.__struct_fields__
        return ImportedRow(**{name: getattr(self, name) for name in fields})


def prediction_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the named files, and the `*.csv` of folders, sorted by name.

    Raises:
        DatasetError: a folder has none.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        csv_files = sorted(path.glob("*.csv"), key=lambda file: file.name)
        if not csv_files:
            raise DatasetError(f"{path}: there is no *.csv file in this folder.")
        yield from csv_files


def column_notes(path: Path, renamed: ColumnMap | None = None) -> tuple[str, ...]:
    """Return a note with the columns of a file that are read, and the unused ones.

    Raises:
        DatasetError: a column is missing or ambiguous.
    """
    names = open_table(path, renamed).names
    columns = columns_in(PredictedRow, path.name, names)
    original = {new: old for old, new in (renamed or {}).items()}
    taken = [
        f"{label} from {original.get(columns[name], columns[name])}"
        for label, name in TAKEN.items()
        if name in columns
    ]
    unused = [
        original.get(name, name)
        for name in names
        if name and name not in columns.values() and not name.startswith(CONDITIONS)
    ]
    rest = f"; not used: {name_list(unused)}" if unused else ""
    return (f"{path.name}: {', '.join(taken)}{rest}.",)


def read_predictions(
    path: Path, missing: Collection[str] = (), renamed: ColumnMap | None = None
) -> Iterator[PredictedRow]:
    """Yield the rows of a file, in file order, as `read_rows` reads them."""
    return read_rows(path, PredictedRow, missing, renamed)
