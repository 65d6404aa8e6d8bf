"""P-values as papers and models write them: reading one, and comparing two.

A p-value is a number with the operator that stands directly before it. Which verdict
two of them lead to depends on the expected one alone: a text without a number, a value,
or a bound. A bound never answers a value, because "p < 0.05" is true of 0.03 and of
0.0001 alike.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_SUPERSCRIPTS = "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
_RAISED = re.compile(f"[{_SUPERSCRIPTS}]+")
_LOWERED = str.maketrans(_SUPERSCRIPTS, "+-0123456789")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\uff0d", "-"),
        "≤": "<=",
        "≥": ">=",
    }
)

# Rewritten to e-notation. The caret may be missing where a sign stands ("x 10-5"), but
# not both: "x 100" is no power.
_POWER = r"10(?:\s*\^\s*[({]?\s*|\s*(?=[+-]))([+-]?\d+)"
_TIMES_POWER = re.compile(rf"(?<=[\d.])\s*[x×⋅·*]\s*{_POWER}")
_BARE_POWER = re.compile(r"(?<![\d.])10\s*\^\s*[({]?\s*([+-]?\d+)")

# Both look at whole runs of digits, so that "0.03,0.04" stays two numbers.
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![.,]?\d)")

_STATED = re.compile(r"([<>]=?|==?)?\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)")
_INTRODUCED = re.compile(
    r"(?<![a-z0-9])p(?:[\s_-]*value)?(?:[\s_-]*\(?adj[a-z]*\.?\)?)?"
    r"\s*(?::|(?:of|is|was)\b|(?=[<>=]))\s*(?=[<>=.\d])"
)

_NOT_SIGNIFICANT = re.compile(r"n\.?s\.?|not significant|non[ -]?significant")

BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What a bound says of a number and its threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PValue:
    """A number and its operator."""

    operator: str  #: "=", "<", "<=", ">" or ">="
    value: float

    @property
    def is_bound(self) -> bool:
        """Whether it limits the p-value instead of stating it."""
        return self.operator != "="


def is_not_found(text: str) -> bool:
    """Whether *text* says that the study has no such association."""
    return text.strip().lower() == "not found"


# Recorded answers and above all expected values repeat; the bound keeps memory flat.
@functools.lru_cache(maxsize=1 << 15)
def read_p_value(text: str) -> PValue | None:
    """The p-value in *text*; None where no number is in it.

    Of several numbers, the one that "p", "p-value" or "p adj" introduces, else the
    first.
    """
    text = _plain(text)
    stated = next(
        (
            match
            for intro in _INTRODUCED.finditer(text)
            if (match := _STATED.match(text, intro.end()))
        ),
        _STATED.search(text),
    )
    if stated is None:
        return None
    sign = (stated[1] or "=").replace("==", "=")
    return PValue(operator=sign, value=float(stated[2]))


def p_value_right(expected: str, answer: str, tolerance: float) -> bool:
    """Whether *answer* states the *expected* p-value.

    A value wants a value within *tolerance*, relative to it. A bound wants a bound of
    the same direction that is within *tolerance* or tighter, or a value that satisfies
    it. A text without a number wants itself.
    """
    if is_not_found(expected) or is_not_found(answer):
        return is_not_found(expected) and is_not_found(answer)
    wanted, given = read_p_value(expected), read_p_value(answer)
    if wanted is None:
        return _same_text(expected, answer)
    if given is None:
        return False
    if not wanted.is_bound:
        return not given.is_bound and _is_close(given.value, wanted.value, tolerance)
    satisfies = BOUNDS[wanted.operator](given.value, wanted.value)
    if not given.is_bound:
        return satisfies
    return given.operator[0] == wanted.operator[0] and (
        satisfies or _is_close(given.value, wanted.value, tolerance)
    )


def significance_right(expected: str, answer: str) -> bool:
    """Whether both say the same word."""
    return expected.strip().lower() == answer.strip().lower()


def _plain(text: str) -> str:
    text = _RAISED.sub(lambda match: "^" + match[0].translate(_LOWERED), text)
    text = text.translate(_SIGNS).lower()
    text = _BARE_POWER.sub(r"1e\1", _TIMES_POWER.sub(r"e\1", text))
    text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


def _is_close(given: float, wanted: float, tolerance: float) -> bool:
    # The last factor admits a value that is exactly at the border but for its rounding.
    return abs(given - wanted) <= tolerance * abs(wanted) * (1 + 1e-9)


def _same_text(expected: str, answer: str) -> bool:
    left, right = (_plain(text).strip() for text in (expected, answer))
    return left == right or all(map(_NOT_SIGNIFICANT.fullmatch, (left, right)))
