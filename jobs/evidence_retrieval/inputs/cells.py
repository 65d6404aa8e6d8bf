"""What one cell of an input says: a text, a whole number, a number, or nothing.

A cell is a CSV field (None where it is empty) or a JSON value. Missing is an empty cell
or null and nothing else: "NA" and "nan" are texts, and no numbers.
"""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

from jobs.json_lines import kind_of

Cell: TypeAlias = Any
"""A text or None from CSV; whatever JSON holds from JSONL."""

_INTEGER = re.compile(r"[+-]?[0-9]+(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = {"inf", "+inf", "infinity", "+infinity"}


def text_of(cell: Cell) -> str:
    """A text as it stands, blanks included, or a whole number's digits.

    Raises:
        ValueError: it is something else; the message says what.
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell)
    raise ValueError(f"is {kind_of(cell)} (put the text in quotes)")


def integer_of(cell: Cell) -> int:
    """A whole number; `3.0`, as tables with gaps write it, is 3.

    Raises:
        ValueError: it is something else; the message says what.
    """
    if isinstance(cell, str) and _INTEGER.fullmatch(cell):
        return int(cell.partition(".")[0])
    if isinstance(cell, int) and not isinstance(cell, bool):
        return cell
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    raise ValueError(f"is {shown(cell)} (a whole number is expected)")


def number_of(cell: Cell) -> float:
    """A number, read so that writing it gives the same digits; `inf` counts.

    Raises:
        ValueError: it is something else, or not a number; the message says what.
    """
    if isinstance(cell, str):
        if _NUMBER.fullmatch(cell):
            return float(cell)
        if cell.lower() in _INFINITE:
            return math.inf
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell)
    raise ValueError(f"is {shown(cell)} (a number is expected)")


def shown(cell: Cell) -> str:
    """A cell as an error quotes it, cut where it is long."""
    return repr(cell)[:40] if isinstance(cell, str | int | float) else kind_of(cell)
