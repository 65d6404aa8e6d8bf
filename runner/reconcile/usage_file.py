"""Reads what a provider billed: usage exports and invoices, in CSV or JSON lines.

A form is recognised by its fields (`usage_forms`). Some forms have a line for each
call. Others have sums of all calls in a span of time, with tokens, with money or with
both.

Money is read as a decimal number and counted in whole pico-dollars. A file writes it
with a limited number of decimals: amounts that differ by less than half of the last one
are equal.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from runner.errors import DatasetError
from runner.json_entries import entries_of
from runner.reconcile.usage_forms import COUNTS, FORMS, UsageFileForm
from store.printable import cut, one_line
from store.task import PICO_PER_USD

US: Final = 1_000_000
DAY_US: Final = 86_400 * US
PICO_DECIMALS: Final = 12
NAMED_FIELDS: Final = 120
"""Characters of the field names in an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """One line of a file: a call, or the sum of all calls in a span of time.

    Fields that the form does not have are None. Tokens mean the same as in
    `runner.messages.Usage`: all prompt tokens, and all output with reasoning.
    """

    row: int  #: line of the file, from 1
    start_us: int | None  #: when the call began, or the span
    end_us: int | None  #: when the call ended, or the span
    is_sum: bool
    ids: tuple[str, ...]  #: of the request, any of which may be in the log
    model: str | None
    calls: int | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    tokens_cache_write: int | None
    tokens_cache_write_1h: int | None
    tokens_reasoning: int | None
    billed_pico: int | None
    tier: str | None
    is_batch: bool | None

    @property
    def has_tokens(self) -> bool:
        """Whether prompt and output are stated."""
        return self.tokens_in is not None and self.tokens_out is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFile:
    """All lines of a file."""

    path: Path
    form: str
    lines: tuple[UsageLine, ...]
    decimals: int  #: of its amounts in dollars, at most 12

    @property
    def is_sum(self) -> bool:
        """Whether its lines are sums of many calls."""
        return any(line.is_sum for line in self.lines)

    @property
    def tolerance_pico(self) -> int:
        """Half of the last decimal: amounts that are closer are equal."""
        return int(Decimal(PICO_PER_USD).scaleb(-self.decimals)) // 2


Record: TypeAlias = Mapping[str, Any]
_T = TypeVar("_T")


def read_usage(path: Path) -> UsageFile:
    """Read a file of one form.

    Raises:
        DatasetError: it cannot be read, its form is not known, or a value is wrong.
    """
    form: UsageFileForm | None = None
    lines: list[UsageLine] = []
    decimals = 0
    for row, record in _records(path):
        if form is None or not _fits(form, record):
            line_form = next((form for form in FORMS if _fits(form, record)), None)
            if line_form is None and _is_empty_span(record):
                continue
            if line_form is None or form is not None:
                raise _unknown(path, row, form, record)
            form = line_form
        cells = _Cells(path, row, form, record)
        lines.append(cells.line())
        decimals = max(decimals, cells.decimals)
    if form is None:
        raise DatasetError(f"{path} has no line of usage; export the usage again.")
    return UsageFile(
        path=path,
        form=form.name,
        lines=tuple(lines),
        decimals=min(decimals, PICO_DECIMALS) if decimals else PICO_DECIMALS,
    )


def _unknown(
    path: Path, row: int, form: UsageFileForm | None, record: Record
) -> DatasetError:
    if form is not None:
        return DatasetError(
            f"{path} row {row}: this is no line of the form {form.name}, as the lines "
            "before it; give one export at a time."
        )
    fields = cut(", ".join(map(one_line, map(str, record))), NAMED_FIELDS)
    return DatasetError(
        f"{path} row {row}: no form of docs/reconcile.md has the fields {fields}; name "
        "them as in the form plain: time, model, cost_usd."
    )


def _fits(form: UsageFileForm, record: Record) -> bool:
    return all(_value(record, mark) is not None for mark in form.marks)


def _is_empty_span(record: Record) -> bool:
    """Return whether a span of time has no usage, as in OpenAI's CSV."""
    return "start_time" in record and _value(record, "num_model_requests") is None


def _records(path: Path) -> Iterator[tuple[int, Record]]:
    """Yield each record with its line in the file.

    Raises:
        DatasetError: the file cannot be read or parsed.
    """
    try:
        if path.suffix.lower() == ".csv":
            yield from _csv_records(path)
        else:
            yield from _json_records(path)
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read ({error.strerror}); check the path of the export."
        ) from error
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path} is not UTF-8 text; unpack it, or export it as CSV or JSON lines."
        ) from error


def _csv_records(path: Path) -> Iterator[tuple[int, Record]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            for record in reader:
                if None in record or None in record.values():
                    raise DatasetError(
                        f"{path} row {reader.line_num}: it has not as many cells as "
                        "the header; correct the row."
                    )
                yield reader.line_num, record
        except csv.Error as error:
            raise DatasetError(
                f"{path} row {reader.line_num}: not valid CSV ({error}); correct the "
                "row."
            ) from error


def _json_records(path: Path) -> Iterator[tuple[int, Record]]:
    with path.open("rb") as file:
        for row, _, raw in entries_of(file, str(path)):
            try:
                entry = json.loads(raw, parse_float=Decimal)
            except UnicodeDecodeError:
                raise
            except ValueError as error:
                raise DatasetError(
                    f"{path} row {row}: not valid JSON ({error}); correct the row, or "
                    "name a file of CSV .csv."
                ) from error
            if not isinstance(entry, dict):
                raise DatasetError(
                    f"{path} row {row}: not an object; export it as JSON lines."
                )
            for record in _flat(entry):
                yield row, record


def _flat(entry: Record) -> Iterator[Record]:
    """Yield the records in a page of an API, in a span of time, or the record."""
    data, results = entry.get("data"), entry.get("results")
    if isinstance(data, list):
        for inner in data:
            if isinstance(inner, dict):
                yield from _flat(inner)
    elif isinstance(data, dict):
        yield data
    elif isinstance(results, list):
        span = {name: cell for name, cell in entry.items() if name != "results"}
        for result in results:
            if isinstance(result, dict):
                yield {**span, **result}
    else:
        yield entry


def _value(record: Record, path: str) -> Any:  # noqa: ANN401 - any cell
    """Return a cell; None where there is none, or an empty one."""
    value: Any = record
    for name in path.split("."):
        if isinstance(value, str):  # an object in a cell of CSV
            try:
                value = json.loads(value, parse_float=Decimal)
            except ValueError:
                return None
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return None if value == "" else value


class _Amount(NamedTuple):
    pico: int
    decimals: int


class _Cells:
    """The cells of one record, as a form names them."""

    def __init__(
        self, path: Path, row: int, form: UsageFileForm, record: Record
    ) -> None:
        self._path, self._row, self._form, self._record = path, row, form, record
        self.decimals = 0

    def line(self) -> UsageLine:
        """Return the record as a line; raise `DatasetError`."""
        form = self._form
        counts = {name: self._read(name, _count, "a count") for name in COUNTS}
        if form.sums_prompt:
            write = self._read("write_5m", _count, "a count") or 0
            write += counts["tokens_cache_write_1h"] or 0
            fresh, cached = counts["tokens_in"] or 0, counts["tokens_cached"] or 0
            counts["tokens_cache_write"] = write
            counts["tokens_in"] = fresh + cached + write
        start_us = self._read("start", _time_us, "a time")
        end_us = self._read("end", _time_us, "a time")
        if form.is_sum and end_us is None and start_us is not None:
            end_us = start_us + DAY_US
        amount = self._read("cost", self._amount, "an amount of dollars")
        if amount is not None:
            self.decimals = amount.decimals
        model = self._cell("model")
        tier = self._cell("tier")
        return UsageLine(
            row=self._row,
            start_us=start_us,
            end_us=end_us,
            is_sum=form.is_sum,
            ids=tuple(
                str(cell)
                for name in form.fields.get("ids", ())
                if (cell := _value(self._record, name)) is not None
            ),
            model=None if model is None else str(model),
            calls=self._read("calls", _count, "a count") if form.is_sum else 1,
            billed_pico=None if amount is None else amount.pico,
            tier=None if tier is None else str(tier),
            is_batch=self._read("batch", _truth, "true or false"),
            **counts,
        )

    def _amount(self, cell: object) -> _Amount:
        number = Decimal(str(cell).strip().removeprefix("$"))
        pico = number * PICO_PER_USD / self._form.cost_per_usd
        exponent = number.normalize().as_tuple().exponent
        if not isinstance(exponent, int):
            raise ValueError("not finite")  # noqa: TRY004 - as of any wrong cell
        shift = len(str(self._form.cost_per_usd)) - 1
        return _Amount(int(pico.to_integral_value()), max(0, -exponent + shift))

    def _cell(self, field: str) -> Any:  # noqa: ANN401 - any cell
        names = self._form.fields.get(field, ())
        cells = (_value(self._record, name) for name in names)
        return next((cell for cell in cells if cell is not None), None)

    def _read(self, field: str, parse: Callable[[object], _T], what: str) -> _T | None:
        cell = self._cell(field)
        if cell is None:
            return None
        try:
            return parse(cell)
        except (ValueError, InvalidOperation, OverflowError) as error:
            name = self._form.fields[field][0]
            raise DatasetError(
                f"{self._path} row {self._row}: {name} is {str(cell)[:40]!r}, not "
                f"{what}; correct the row or export it again."
            ) from error


def _count(cell: object) -> int:
    """Parse a number of tokens or calls, which some exports write as 12.0."""
    number = Decimal(str(cell))
    if number != number.to_integral_value() or number < 0:
        raise ValueError("not a count")
    return int(number)


def _truth(cell: object) -> bool:
    word = str(cell).strip().lower()
    if word not in {"true", "false", "1", "0"}:
        raise ValueError("neither true nor false")
    return word in {"true", "1"}


def _time_us(cell: object) -> int:
    """Parse a time: ISO 8601, in UTC unless it says otherwise, or seconds since 1970.

    Numbers above 10^11 are milliseconds: seconds of that size are in the year 5138.
    """
    if not isinstance(cell, str) or cell.replace(".", "", 1).isdigit():
        seconds = Decimal(str(cell))
        return int(seconds * (1000 if seconds > 10**11 else US))
    moment = datetime.fromisoformat(cell.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
