"""Reads predictions made elsewhere: one value a row of a CSV file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from sys import intern

from jobs.kit.inputs.column_map import ColumnMap, name_list
from jobs.property_extraction.input_table import (
    MATERIAL,
    REFNO,
    UNIT,
    TableHeader,
    TableRow,
    open_table,
)
from runner.errors import DatasetError
from runner.table_files import as_meant

NAME = ("property_name",)
VALUE, OTHER_VALUES = "value_string", ("property_value",)
NUMBER = ("value_number",)
UNITS, OTHER_UNITS = "units", UNIT[:2]
CONDITION = ("condition", "conditions")
CONDITIONS = "conditions."
QUOTE = ("quote", "evidence", "location.evidence")
MODEL = ("model",)
REPLICATE = ("replicate",)
ID = ("id",)
MENTIONS = ("mentions",)
FLAG = ("flag",)
STATUS = ("paper_status",)
"""What became of a paper without rows, as `predictions.csv` of a scoring says it:
`scored`, or `failed` or `skipped` with a reason after a colon."""

STATUSES = ("scored", "failed", "skipped")

PREDICTION_FIELDS = (
    *(REFNO[0], NAME[0], VALUE, NUMBER[0], UNITS, MATERIAL[0], CONDITION[0]),
    *(CONDITIONS + "*", QUOTE[0], MODEL[0], REPLICATE[0]),
)
"""What a column of predictions may be mapped to."""

TAKEN = ("refno", "name", "value", "number", "unit", "material", "condition", "quote")
"""Fields whose columns are reported when a file is imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRow:
    """One row of a file."""

    row: int  #: in the file; the header is row 1
    refno: str
    name: str
    value: str  #: empty: the row predicts nothing
    unit: str
    material: str
    condition: str
    quote: str
    model: str  #: empty: no column names one
    replicate: int
    mentions: int = 1
    flag: str = ""
    status: str = ""  #: of a paper without rows; else empty
    reason: str = ""  #: of that status
    extra: Mapping[str, str] = field(default_factory=dict)
    """Further columns that are not blank, by name."""


def prediction_files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files that are named, and the `*.csv` of folders by name.

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


def column_notes(
    path: Path, missing: Collection[str] = (), renamed: ColumnMap | None = None
) -> tuple[str, ...]:
    """Which column of a file is taken for what, and which are not used.

    Raises:
        DatasetError: a column is missing or could be several.
    """
    header = open_table(path, missing, renamed).header
    columns = _Columns.of(header)
    original = {new: old for old, new in (renamed or {}).items()}

    def name_at(column: int) -> str:
        return original.get(header.names[column], header.names[column])

    taken = [
        f"{field} from {name_at(column)}"
        for field in TAKEN
        if (column := getattr(columns, field)) is not None
    ]
    unused = [name_at(column) for _, column in columns.extra]
    rest = f"; not used: {name_list(unused)}" if unused else ""
    return (f"{path.name}: {', '.join(taken)}{rest}.",)


def read_predictions(
    path: Path, missing: Collection[str] = (), renamed: ColumnMap | None = None
) -> Iterator[PredictedRow]:
    """The rows of a file, in file order.

    Args:
        path: the file.
        missing: texts that count as an empty cell.
        renamed: columns that `--map` renames.

    Raises:
        DatasetError: a column is missing or could be several, or a row has no paper or
            no name.
    """
    table = open_table(path, missing, renamed)
    columns = _Columns.of(table.header)
    for cells in table.rows:
        status = cells.at(columns.status) and not cells.at(columns.name)
        for column in (columns.refno,) if status else (columns.refno, columns.name):
            if not cells.at(column):
                raise cells.error(
                    f"{table.header.names[column]} is blank (fill it in, or remove the "
                    "row)"
                )
        yield columns.read(cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Where each field stands in a row."""

    refno: int
    name: int
    value: int
    number: int | None
    unit: int | None
    material: int | None
    condition: int | None
    conditions: tuple[tuple[str, int], ...]
    quote: int | None
    model: int | None
    replicate: int | None
    mentions: int | None
    flag: int | None
    status: int | None
    extra: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, header: TableHeader) -> _Columns:
        conditions = tuple(
            (name.removeprefix(CONDITIONS), column)
            for column, name in enumerate(header.names)
            if name.startswith(CONDITIONS)
        )
        columns = cls(
            refno=header.need(REFNO),
            name=header.need(NAME),
            value=header.value(VALUE, OTHER_VALUES),
            number=header.first(NUMBER),
            unit=header.predicted_unit(UNITS, OTHER_UNITS),
            material=header.first(MATERIAL),
            condition=header.first(CONDITION),
            conditions=conditions,
            quote=header.first(QUOTE),
            model=header.first(MODEL),
            replicate=header.first(REPLICATE),
            mentions=header.first(MENTIONS),
            flag=header.first(FLAG),
            status=header.first(STATUS),
        )
        used = {getattr(columns, column_field.name) for column_field in fields(columns)}
        used |= {column for _, column in conditions}
        return replace(
            columns,
            extra=tuple(
                (intern(name), column)
                for column, name in enumerate(header.names)
                if column not in used and name
            ),
        )

    def read(self, cells: TableRow) -> PredictedRow:
        conditions = [
            f"{name}={cells.at(column)}"
            for name, column in self.conditions
            if cells.at(column)
        ]
        plain = as_meant(cells.at(self.condition))
        status, reason = self._status(cells)
        mentions = cells.at(self.mentions)
        return PredictedRow(
            row=cells.number,
            refno=intern(cells.at(self.refno)),
            name=intern(as_meant(cells.at(self.name))),
            value=as_meant(cells.at(self.value)) or cells.at(self.number),
            unit=intern(cells.at(self.unit)),
            material=intern(as_meant(cells.at(self.material))),
            condition="; ".join([plain, *conditions] if plain else conditions),
            quote=as_meant(cells.at(self.quote)),
            model=intern(cells.at(self.model)),
            replicate=self._replicate(cells),
            # a foreign column of that name may hold anything
            mentions=int(mentions) if mentions.isdecimal() and int(mentions) else 1,
            flag=cells.at(self.flag),
            status=status,
            reason=reason,
            extra={
                name: cells.at(column)
                for name, column in self.extra
                if cells.at(column)
            },
        )

    def _status(self, cells: TableRow) -> tuple[str, str]:
        """Status and reason of a paper without rows; empty for a row with a name."""
        if cells.at(self.name) or not cells.at(self.status):
            return "", ""
        status, _, reason = cells.at(self.status).partition(": ")
        if status not in STATUSES:
            raise cells.error(
                f"{STATUS[0]} is {status[:20]!r} ({', '.join(STATUSES)} expected)"
            )
        return status, reason

    def _replicate(self, cells: TableRow) -> int:
        text = cells.at(self.replicate) or "1"
        if not (text.isascii() and text.isdigit() and int(text)):
            raise cells.error(f"replicate is {text!r} (a whole number from 1 expected)")
        return int(text)
