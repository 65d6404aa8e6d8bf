"""Reads printed values: normalises their spelling and reads the number, if any.

Papers print `7.441(5)`, `14.2±0.6`, `~13`, `2.6 × 10⁻⁹` and `11.260 78`. Any remaining
text besides one number makes it no value: a bound, a range, or not a number. Digits are
ASCII digits.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobs.property_extraction.settings import Numbers

_DASH = re.compile("[‐‑‒–—―−﹘﹣－]")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")


def folded(text: str) -> str:
    """Return a text without differences of case, blanks and compatibility (NFKC)."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def plain_dashes(text: str) -> str:
    """Return a text with all its dashes and minus signs as ASCII hyphens."""
    return _DASH.sub("-", text)  # for a whole paper ten times faster than `translate`


def plain_superscripts(text: str) -> str:
    """Return a text with `10⁻⁹` as `10^-9`; before NFKC, which makes it 10−9."""
    return _RAISED.sub(_lowered, text)


def _lowered(run: re.Match[str]) -> str:
    caret = "" if run.string.endswith("^", 0, run.start()) else "^"
    return caret + run[0].translate(_SUPERSCRIPTS)


NumberStatus: TypeAlias = Literal["value", "bound", "range", "not_a_number"]


@dataclass(frozen=True, slots=True)
class Number:
    """A parsed value; the number is finite, and set only if the status is `value`."""

    status: NumberStatus
    value: float | None = None


_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)"
# 1,234.5 or 11.260 78 or 1 234.5 or plain
_MANTISSA = (
    r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?"
    r"|(?:[1-9]\d{0,2}(?:[ ]\d{3})+|\d+)\.\d{3}(?:[ ]\d{3})*[ ]\d{1,3}(?!\d)"
    r"|[1-9]\d{0,2}(?:[ ]\d{3})+(?!\d)(?:\.\d*)?"
    rf"|{_DECIMAL})"
)
_UNCERTAINTY = r"(?:\(\d+\))?"
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_TEN = r"10[ ]?\^[ ]?"
_TIMES_TEN = rf"[ ]?[x×*·⋅][ ]?{_TEN}"
_ERROR = rf"[ ]?(?:±|\+/-)[ ]?{_DECIMAL}{_UNCERTAINTY}{_EXPONENT}"
_PRINTED = (
    rf"(?P<sign>[+-]?)(?:{_TEN}(?P<bare_power>[+-]?\d+)"
    rf"|(?P<mantissa>{_MANTISSA}){_UNCERTAINTY}(?P<exponent>{_EXPONENT})(?:{_ERROR})?"
    rf"(?:{_TIMES_TEN}(?P<power>[+-]?\d+))?(?:{_ERROR}(?:{_TIMES_TEN}[+-]?\d+)?)?)"
)
_UNNAMED = re.sub(r"\?P<\w+>", "?:", _PRINTED)

_NUMBER = re.compile(_PRINTED, re.ASCII)
_RANGE = re.compile(rf"{_UNNAMED}[ ]?-[ ]?{_UNNAMED}", re.ASCII)
_BARE = re.compile(rf"[+-]?{_DECIMAL}{_EXPONENT}", re.ASCII)
_IN_BRACKETS = re.compile(r"\(\d+\)", re.ASCII)
_BRACED = re.compile(
    r"\^[ ]?(?:\{[ ]?([+-]?\d+)[ ]?\}|\([ ]?([+-]?\d+)[ ]?\))", re.ASCII
)
_BOUND = re.compile(
    r"[<>≤≥]|(?:up to|below|above|at least|less than|more than)\b", re.IGNORECASE
)
_ABOUT = re.compile(
    r"^(?:[~≈≃∼]|(?:ca|about|approx(?:imately)?)\b\.?)[ ]?", re.IGNORECASE
)


def read_number(text: str, rule: Numbers) -> Number:
    """Read the number that a text states.

    Args:
        text: A value as it was printed.
        rule: `scientific` reads numbers as papers print them. `strict` only accepts
            decimals, without digits in brackets, and knows no bounds and ranges.
    """
    if rule == "strict":
        bare = _IN_BRACKETS.sub("", text).strip()
        return _number(bare if _BARE.fullmatch(bare) else "nan")
    printed = " ".join(plain_superscripts(plain_dashes(text)).split())
    printed = _BRACED.sub(r"^\1\2", printed)
    printed = _ABOUT.sub("", printed)
    if _BOUND.match(printed):
        return Number("bound")
    match = _NUMBER.fullmatch(printed)
    if match is not None:
        return _number(_decimal(match))
    return Number("range" if _RANGE.match(printed) else "not_a_number")


def _decimal(match: re.Match[str]) -> str:
    """Return the number in Python's syntax, so that it is rounded once."""
    if match["bare_power"] is not None:
        return f"{match['sign']}1e{match['bare_power']}"
    mantissa = match["sign"] + re.sub("[, ]", "", match["mantissa"])
    if match["power"] is None:
        return mantissa + match["exponent"]
    return "nan" if match["exponent"] else f"{mantissa}e{match['power']}"


def _number(decimal: str) -> Number:
    value = float(decimal)
    return Number("value", value) if math.isfinite(value) else Number("not_a_number")


_ABSTENTIONS = frozenset(
    {
        *("-", "n/a", "na", "nan", "none", "null"),
        *("not found", "not reported", "not stated", "not_found"),
    }
)


def is_abstention(text: str) -> bool:
    """Return whether a predicted value is no prediction; in truth it is a value."""
    return folded(plain_dashes(text)) in _ABSTENTIONS
