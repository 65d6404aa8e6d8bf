"""Types of the cells in input files, for the fields of row models.

A type says what a cell may hold and what becomes of it. Each one is a function that
takes a cell and raises `ValueError` with the rest of a sentence that begins with the
column's name; the function serves cells outside of models too.

>>> from pydantic import TypeAdapter
>>> TypeAdapter(Count).validate_python("3.0")
3
>>> count_of("-1")
Traceback (most recent call last):
...
ValueError: is -1 (a whole number from 0 is expected)

A blank cell is None. `Text`, `Trimmed` and lists read it as nothing; the other types
refuse it, and `Count | None` says that a cell may be blank.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeAlias

from pydantic import PlainValidator, ValidationInfo

InputCell: TypeAlias = Any
"""A text or None from CSV; any JSON value from JSON."""

BLANK = "is missing (fill it in or remove the row)"
"""The complaint about a blank cell that must hold something."""

_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_INTEGER = re.compile(r"[+-]?[0-9]+(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LABELS: Mapping[str, int] = {"0": 0, "1": 1}
_INFINITE = {"inf", "+inf", "infinity", "+infinity"}


def kind_of(value: object) -> str:
    """Names the kind of a JSON value."""
    return _KINDS[type(value)]


def quote(cell: InputCell) -> str:
    """Quotes a cell for an error, cut where it is long."""
    return repr(cell)[:40] if isinstance(cell, str | int | float) else kind_of(cell)


def text_of(cell: InputCell) -> str:
    """A text as it stands, blanks included, or a whole number's digits."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell)
    raise ValueError(f"is {kind_of(cell)} (put the text in quotes)")


def optional_text(cell: InputCell) -> str:
    """The same, and "" for a blank cell."""
    return "" if cell is None else text_of(cell)


def trimmed(cell: InputCell) -> str:
    """The same without the blanks around it."""
    return optional_text(cell).strip()


def filled(cell: InputCell) -> str:
    """A text as it stands that is not empty."""
    text = text_of(cell)
    if not text:
        raise ValueError(BLANK)
    return text


def integer_of(cell: InputCell) -> int:
    """A whole number; `3.0`, as tables with gaps write it, is 3."""
    if isinstance(cell, str) and _INTEGER.fullmatch(cell):
        return int(cell.partition(".")[0])
    if isinstance(cell, int) and not isinstance(cell, bool):
        return cell
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    raise ValueError(f"is {quote(cell)} (a whole number is expected)")


def count_of(cell: InputCell) -> int:
    """A whole number from 0."""
    value = integer_of(cell)
    if value < 0:
        raise ValueError(f"is {value} (a whole number from 0 is expected)")
    return value


def positive_of(cell: InputCell) -> int:
    """A whole number from 1."""
    value = integer_of(cell)
    if value < 1:
        raise ValueError(f"is {value} (a whole number from 1 is expected)")
    return value


def label_of(cell: InputCell) -> int:
    """0 or 1."""
    if isinstance(cell, str) and cell in _LABELS:  # nearly always; four times as fast
        return _LABELS[cell]
    try:
        return _LABELS[str(integer_of(cell))]
    except (ValueError, KeyError):
        raise ValueError(f"is {quote(cell)} (0 or 1 is expected)") from None


def number_of(cell: InputCell, decimal: str | None = None) -> float:
    """A number, read so that writing it gives the same digits; `inf` counts.

    Args:
        cell: as the file has it.
        decimal: "," in tables whose columns are separated by semicolons; a point is
            read there too.
    """
    if isinstance(cell, str):
        if decimal == "," and cell.count(",") == 1:
            cell = cell.replace(",", ".")
        if _NUMBER.fullmatch(cell):
            return float(cell)
        if cell.lower() in _INFINITE:
            return math.inf
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        with suppress(OverflowError):  # hundreds of digits
            return float(cell)
    raise ValueError(f"is {quote(cell)} (a number is expected)")


def probability_of(cell: InputCell, decimal: str | None = None) -> float:
    """A number from 0 to 1."""
    value = number_of(cell, decimal)
    if not 0.0 <= value <= 1.0:
        raise ValueError(
            f"is {quote(cell)} (a probability from 0 to 1 is expected; divide percents "
            "by 100)"
        )
    return value


def texts_of(cell: InputCell) -> tuple[str, ...]:
    """A list of texts, or in CSV texts joined by "|"; () if blank."""
    if cell is None:
        return ()
    if isinstance(cell, str):
        return tuple(cell.split("|"))
    if not isinstance(cell, list):
        raise ValueError(f"is {kind_of(cell)} (a list of texts is expected)")  # noqa: TRY004 - for pydantic
    if set(map(type, cell)) == {str}:  # nearly always; much faster than one by one
        return tuple(cell)
    return tuple(map(_entry, cell))


def _entry(entry: InputCell) -> str:
    try:
        return text_of(entry)
    except ValueError as error:
        raise ValueError(f"holds an entry that {error}") from error


def numbers_of(cell: InputCell) -> tuple[float, ...]:
    """A list of numbers; () if blank."""
    if cell is None:
        return ()
    if not isinstance(cell, list):
        raise ValueError(f"is {kind_of(cell)} (a list is expected)")  # noqa: TRY004 - likewise
    try:
        return tuple(map(number_of, cell))
    except ValueError as error:
        raise ValueError(f"holds a value that {error}") from error


def word_of(cell: InputCell, words: Sequence[str]) -> str:
    """One of some words."""
    text = filled(cell)
    if text not in words:
        raise ValueError(f"is {quote(text)} (one of {', '.join(words)} is expected)")
    return text


def one_of(words: Sequence[str]) -> PlainValidator:
    """Validates one of some words; goes into `Annotated[Kind, ...]`."""
    allowed = frozenset(words)

    def word(cell: InputCell) -> str:
        if isinstance(cell, str) and cell in allowed:
            return cell
        return word_of(cell, words)

    return PlainValidator(word)


def _number(cell: InputCell, info: ValidationInfo) -> float:
    # readers pass the decimal sign of the file as the context
    return number_of(cell, info.context)


def _probability(cell: InputCell, info: ValidationInfo) -> float:
    return probability_of(cell, info.context)


Text = Annotated[str, PlainValidator(optional_text)]
Trimmed = Annotated[str, PlainValidator(trimmed)]
Filled = Annotated[str, PlainValidator(filled)]
Whole = Annotated[int, PlainValidator(integer_of)]
Count = Annotated[int, PlainValidator(count_of)]
Positive = Annotated[int, PlainValidator(positive_of)]
Label = Annotated[int, PlainValidator(label_of)]
Texts = Annotated[tuple[str, ...], PlainValidator(texts_of)]
Numbers = Annotated[tuple[float, ...], PlainValidator(numbers_of)]
Number = Annotated[float, PlainValidator(_number)]
Probability = Annotated[float, PlainValidator(_probability)]
