"""Validates TOML files of nested tables, with errors that name line, table and key.

A table is a pydantic model derived from `TomlTable`. An unknown key is reported with
the nearest known one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from jobs.kit.inputs.column_map import nearest
from runner.errors import DatasetError


class TomlTable(BaseModel):
    """A table of a file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Table = TypeVar("Table", bound=TomlTable)


def read_tables(text: str, model: type[Table], name: str, noun: str) -> Table:
    """Parse and validate a TOML file.

    Args:
        text: its text.
        model: of its top level.
        name: the file, as errors name it.
        noun: its top level, as errors name it, such as "the recipe".

    Raises:
        DatasetError: it is not TOML, or a table or key is wrong.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DatasetError(f"{name}: not valid TOML, {error} (correct it).") from None
    try:
        return model.model_validate(tables)
    except ValidationError as error:
        raise DatasetError(_Fault(error, text, model, noun).sentence(name)) from None


def near_hint(name: str, names: Sequence[str]) -> str:
    """Return a hint at the nearest of *names*: " (did you mean 'x'?)"."""
    near = nearest(name, names, n=1)
    if near:
        return f" (did you mean {near[0]!r}?)"
    return f" (there are: {', '.join(names)})" if names else ""


class _Fault:
    """The first error of a validation; unknown keys come before others."""

    def __init__(
        self, error: ValidationError, text: str, model: type[BaseModel], noun: str
    ) -> None:
        errors = error.errors(include_url=False)
        unknown = (e for e in errors if e["type"] == "extra_forbidden")
        self._error: Any = next(unknown, errors[0])
        self._place = tuple(part for part in self._error["loc"] if part != "[key]")
        self._text, self._model, self._noun = text, model, noun

    def sentence(self, name: str) -> str:
        """Return the error with file, line, table and key."""
        line = _line(self._place, self._text)
        where = f"{name} line {line}" if line else name
        table = self._header(self._place[:-1])
        key = str(self._place[-1]) if self._place else ""
        value = self._error["input"]
        match self._error["type"]:
            case "extra_forbidden":
                known = list(self._model_at(self._place[:-1]).model_fields)
                return f"{where}: {table} has no key {key!r}{near_hint(key, known)}."
            case "missing":
                return f"{where}: {table} needs the key {key!r} (add it)."
            case "value_error":
                subject = f"{self._header(self._place)}: " if self._place else ""
                return f"{where}: {subject}{self._error['ctx']['error']}."
            case "literal_error":
                words = str(self._error["ctx"]["expected"])
                options = [word.strip("'") for word in re.split(", | or ", words)]
                hint = near_hint(str(value), options)
                return f"{where}: {key} = {value!r} in {table} is unknown{hint}."
            case _:
                subject = f"{key} in {table}" if key else self._noun
                return f"{where}: {subject}: {self._error['msg']} (correct it)."

    def _model_at(self, place: tuple[int | str, ...]) -> type[BaseModel]:
        """Return the model of the table at *place*."""
        model = self._model
        for part in place:
            field = model.model_fields.get(str(part))
            if field is not None:
                model = next(_models_in(field.annotation), model)
        return model

    def _header(self, place: tuple[int | str, ...]) -> str:
        """Return a table as its header in the file, such as [fields.enrolled]."""
        names = [str(part) for part in place if isinstance(part, str)]
        numbers = [part for part in place if isinstance(part, int)]
        if not names:
            return self._noun
        header = f"[{'.'.join(names)}]"
        if not numbers:
            return header
        header = f"[{header}]" if len(names) == 1 else header
        return f"{header} number {numbers[0] + 1}"


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, such as that of a mapping's values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _line(place: tuple[int | str, ...], text: str) -> int | None:
    """Return the line of a key or a table, from 1; None if it is not certain."""
    names = [str(part) for part in place if isinstance(part, str)]
    numbers = [part for part in place if isinstance(part, int)]
    lines = text.split("\n")
    for depth in range(len(names), -1, -1):
        header, rest = ".".join(names[:depth]), names[depth:]
        pattern = re.compile(rf"\s*\[\[?\s*{re.escape(header)}\s*\]\]?\s*(#.*)?")
        starts = [n for n, line in enumerate(lines, 1) if pattern.fullmatch(line)]
        skip = numbers[0] if numbers and len(starts) > 1 else 0
        start = starts[min(skip, len(starts) - 1)] if starts and header else 0
        if header and not start:
            continue
        if not rest:
            return start or None
        key = re.compile(rf"\s*{re.escape(rest[0])}\s*[.=]")
        for n, line in enumerate(lines[start:], start + 1):
            if line.lstrip().startswith("["):
                break
            if key.match(line):
                return n
        if header:
            return start
    return None
