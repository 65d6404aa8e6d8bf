"""Reads the right values of items: from a file, or from columns of the items.

A gold file is a table (CSV, JSON lines, Parquet) with the id of an item and a column
per field. A blank cell is not judged. "not reported" is a gold value: the right answer
is that the text does not report the field. The elements of a list are separated by
semicolons, or a JSON list; an object is written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from jobs.kit.fields.results import value_text
from jobs.kit.fields.spec import FieldSpec
from jobs.kit.fields.values import Unparsed, Value, read_value
from jobs.kit.inputs.cells import quote
from jobs.kit.inputs.column_map import nearest
from jobs.kit.inputs.item_rows import TABLES, ItemRow, table_rows, table_suffix
from jobs.kit.inputs.items import KEYS, Item
from jobs.kit.inputs.toml_tables import near_hint
from jobs.kit.value_scores import (
    EXACT,
    ValueKind,
    ValueRule,
    ValueScore,
    compare_values,
)
from runner.errors import DatasetError

GoldRow: TypeAlias = Mapping[str, Value | None]
"""Gold values by field, of fields that are judged; None: not reported."""

EXPECTED: Final[Mapping[str, str]] = {
    "not_a_text": "a text",
    "not_an_integer": "a whole number",
    "not_a_number": "a number",
    "not_a_boolean": "true or false",
    "not_a_date": "a date such as 2021, 2021-05 or 2021-05-17",
    "not_a_list": "values separated by semicolons, or a JSON list",
    "not_an_object": "a JSON object with the field's parts",
    "other_unit": "a number in the field's unit",
    "required": "an object with all required parts",
}
"""Expected form of a gold value, by the reason why it cannot be read."""

_KINDS: Final[Mapping[str, ValueKind]] = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "date": "date",
    "boolean": "exact",
    "one-of": "exact",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldValues:
    """The gold values of a run's items."""

    rows: Mapping[str, GoldRow]  #: by item
    fields: tuple[str, ...]  #: fields with any gold value, in the recipe's order


def read_gold(
    items: Mapping[str, Item],
    fields: Mapping[str, FieldSpec],
    path: Path | None = None,
    *,
    id_column: str | None = None,
    is_part: bool = False,
) -> GoldValues | None:
    """Read the gold values; None: there are none.

    Args:
        items: by key.
        fields: by name.
        path: the file; None: columns of the items, which the fields name.
        id_column: column of the ids; None: one with a usual name.
        is_part: whether there are further items, for which the file may have rows.

    Raises:
        DatasetError: a file cannot be read, an item is unknown, or a value has another
            type; names file, row and column.
    """
    if path is None:
        rows = dict(_of_items(items, fields))
    else:
        named = (id_column,) if id_column else ()
        rows = dict(
            _of_file(items, fields, path, (*named, *KEYS, "item"), is_part=is_part)
        )
    judged = tuple(name for name in fields if any(name in row for row in rows.values()))
    return GoldValues(rows=rows, fields=judged) if judged or path is not None else None


def _of_items(
    items: Mapping[str, Item], fields: Mapping[str, FieldSpec]
) -> Iterator[tuple[str, GoldRow]]:
    """Yield the gold values in columns of the items."""
    declared = {name: spec for name, spec in fields.items() if spec.gold}
    if not declared:
        return
    for key, item in items.items():
        row: dict[str, Value | None] = {}
        for name, spec in declared.items():
            column = spec.gold or name
            if column not in item.fields:
                near = near_hint(column, list(item.fields))
                raise DatasetError(
                    f"{item.where}: no column {column}, which [fields.{name}] names as "
                    f"its gold{near}."
                )
            try:
                row |= _cell(name, column, spec, item.fields[column])
            except ValueError as error:
                raise DatasetError(f"{item.where}: {error}.") from None
        yield key, row


def _of_file(
    items: Mapping[str, Item],
    fields: Mapping[str, FieldSpec],
    path: Path,
    ids: Sequence[str],
    *,
    is_part: bool,
) -> Iterator[tuple[str, GoldRow]]:
    """Yield the rows of a gold file."""
    if table_suffix(path) not in TABLES:
        raise DatasetError(
            f"{path.name}: gold values are read from a table "
            f"({', '.join(sorted(TABLES))}; save it as one of these)."
        )
    columns = {name: spec.gold or name for name, spec in fields.items()}
    first: dict[str, ItemRow] = {}
    for row in table_rows(path):
        key = row.cells[_id_column(ids, row)].strip()
        if not first:
            _check_columns(row, columns)
        if key in first:
            raise row.error(
                f"id {key!r} also occurs in {row.source.unit} {first[key].number} "
                "(remove one)"
            )
        first[key] = row
        if key not in items:
            if is_part:
                continue
            near = "".join(f"; the nearest is {n!r}" for n in nearest(key, items, 1))
            raise row.error(
                f"no item has the id {key!r}{near} (correct the id or remove the row)"
            )
        values: dict[str, Value | None] = {}
        for name, column in columns.items():
            try:
                values |= _cell(name, column, fields[name], row.cells.get(column, ""))
            except ValueError as error:
                raise row.error(str(error)) from None
        yield key, values


def _id_column(names: Sequence[str], row: ItemRow) -> str:
    """Return the first of the names that is a column."""
    lower = {name.lower(): name for name in reversed([*row.cells])}
    for name in names:
        if name in row.cells or name.lower() in lower:
            return name if name in row.cells else lower[name.lower()]
    raise DatasetError(
        f"{row.source.file}: no column id (name the column of the items' ids 'id')."
    )


def _check_columns(row: ItemRow, columns: Mapping[str, str]) -> None:
    if not any(column in row.cells for column in columns.values()):
        raise DatasetError(
            f"{row.source.file}: no column has the name of a field (name at least one "
            f"of {', '.join(columns.values())})."
        )


def _cell(
    name: str, column: str, spec: FieldSpec, text: str
) -> dict[str, Value | None]:
    """Return the gold value in a cell by its field; nothing if the cell is blank."""
    if not text.strip():
        return {}
    expected = expected_instead(text, spec)
    if expected:
        raise ValueError(f"{column} is {quote(text)} ({expected} is expected)")
    return {name: gold_value(text.strip(), spec)}


def expected_instead(text: str, spec: FieldSpec) -> str:
    """Return what a gold value should be; empty if it fits the field."""
    try:
        gold_value(text.strip(), spec)
    except Unparsed as error:
        if spec.options:
            return f"one of {', '.join(spec.options)}"
        return EXPECTED.get(error.reason, "another value")
    return ""


def gold_value(text: str, spec: FieldSpec) -> Value | None:
    """Read a gold value; raise `Unparsed` if it does not fit the field."""
    if not spec.is_list:
        return _single(_decoded(text) if spec.element == "object" else text, spec)
    is_json = text.startswith("[")
    elements = _decoded(text) if is_json else [part.strip() for part in text.split(";")]
    if not isinstance(elements, list):
        raise Unparsed("not_a_list")
    values = [
        _single(element, spec) for element in elements if element not in {"", None}
    ]
    return tuple(value for value in values if value is not None) or None


def _single(raw: object, spec: FieldSpec) -> Value | None:
    if spec.element == "boolean" and raw in {"0", "1"}:
        return raw == "1"
    return read_value(raw, spec)[0]


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def gold_text(gold: Value | None) -> str:
    """Return a gold value as a table shows it."""
    return "not reported" if gold is None else value_text(gold)


def rule_of(spec: FieldSpec) -> ValueRule:
    """Return how a field is compared with its gold value."""
    rule = spec.score
    if rule is None:
        return EXACT
    return ValueRule(
        method="exact" if rule.method == "set" else rule.method,
        absolute=rule.absolute,
        relative=rule.relative,
        threshold=rule.threshold,
        key=rule.key,
    )


def rule_words(spec: FieldSpec) -> str:
    """Return a field's rule for the definition of its metrics; "": it has none."""
    if spec.score is None:
        return ""
    rule = spec.score.model_dump(exclude_defaults=True)
    return ", " + ", ".join(f"{name} {value}" for name, value in rule.items())


def score_value(
    value: Value | None, gold: Value | None, spec: FieldSpec, rule: ValueRule
) -> ValueScore:
    """Compare a value with its gold value by the field's type and rule."""
    kinds = {name: _KINDS[part.type] for name, part in spec.fields.items()}
    kind = kinds or _KINDS.get(spec.element)
    if spec.is_list:
        value, gold = value or (), gold or ()
    return compare_values(value, gold, rule, kind=kind)
