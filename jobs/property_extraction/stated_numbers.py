"""Finds every number that a text may state."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from jobs.property_extraction.values.numbers import (
    plain_dashes,
    plain_superscripts,
    read_number,
)

CLOSE: Final = 1e-9
"""Largest relative difference of equal numbers."""

_DECIMAL: Final = r"(?<![0-9])(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_ERROR: Final = r"(?:\([0-9]+\))?(?:[ ]?(?:\u00b1|\+/-)[ ]?[0-9.]+)?"

# the first character of a number, to skip costlier matching elsewhere
_BEGIN: Final = r"(?=[0-9.])"

_PLAIN_NUMBER: Final = re.compile(
    rf"{_BEGIN}(?P<factor>{_DECIMAL})(?:\([0-9]+\))?(?P<exponent>(?:[eE][+-]?[0-9]+)?)"
)

_PARTED: Final = (
    re.compile(r"(?<![0-9.])[0-9]{1,3}(?:[ ,][0-9]{3})+(?:\.[0-9]*)?(?![0-9])"),
    re.compile(r"(?<![0-9.])[0-9]+\.[0-9]{3}(?:[ ][0-9]{3})*[ ][0-9]{1,3}(?![0-9])"),
)
"""Numbers with digits in groups of three, before the point, or after it.

"at 4 300 K" may mean 300, and 4,300 too: both count as stated.
"""

# PDF files lose superscripts: 2.1 x 10-5 is a power if it follows a factor
_POWER: Final = re.compile(
    rf"{_BEGIN}(?:(?P<factor>{_DECIMAL}){_ERROR}[ ]?[x\u00d7*\u00b7\u22c5][ ]?10[ ]?\^?"
    r"|(?<![0-9])10[ ]?\^)[ ]?[{(]?[ ]?(?P<power>[+-]?[ ]?[0-9]{1,3})"
)


def numbers_in(text: str) -> tuple[float, ...]:
    """Return every number that a text may state, ascending.

    A number after a dash counts with and without it: as a sign, or as part of a range.
    """
    printed = plain_superscripts(plain_dashes(" ".join(text.split())))
    return tuple(sorted(set(_stated(printed))))


def is_among(value: float, numbers: Sequence[float]) -> bool:
    """Return whether a number is among those of `numbers_in`."""
    slack = CLOSE * abs(value)
    index = bisect_left(numbers, value - slack)
    return index < len(numbers) and numbers[index] <= value + slack


def _stated(printed: str) -> Iterator[float]:
    for match in _PLAIN_NUMBER.finditer(printed):
        yield from _signed(float(match["factor"] + match["exponent"]), match)
    for pattern in _PARTED:
        for match in pattern.finditer(printed):
            value = read_number(match[0], "scientific").value
            if value is not None:
                yield from _signed(value, match)
    for match in _POWER.finditer(printed) if "10" in printed else ():
        power = match["power"].replace(" ", "")
        yield from _signed(float(f"{match['factor'] or 1}e{power}"), match)


def _signed(value: float, match: re.Match[str]) -> Iterator[float]:
    """Yield a finite number, and its negative if a dash precedes it."""
    if math.isfinite(value):
        yield value
        if match.string[match.start() - 1 : match.start()] == "-":
            yield -value
