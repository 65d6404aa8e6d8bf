"""The grammar of unit cells: an optional power of ten, then names with exponents.

Names stand apart by `.`, `·`, `*` or blanks; everything after the first `/` divides, so
that W/m.K is W/(m·K); brackets say nothing. Cells come from models, so nothing of them
is evaluated, and whatever has more factors or stranger ones than a unit is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction

from jobs.property_extraction.values.folding import plain_dashes, plain_superscripts
from jobs.property_extraction.values.unit import ONE, Unit

MOST_FACTORS = 12
MOST_EXPONENT = 12

_SPELLINGS = str.maketrans({"˚": "°", "º": "°", "⋅": "·", "∙": "·", "•": "·"})
_AT = re.compile(r" at .*", re.DOTALL)
_BRACKETS = str.maketrans("", "", "()")
_POWER_OF_TEN = re.compile(
    r"(?:10\^([+-]?\d{1,2})|[eE]([+-]\d{1,2}))(?!\d) ?", re.ASCII
)
_SEPARATORS = re.compile(r"[ .·*]+")
_FACTOR = re.compile(r"(°?[^\W\d]+°?|[%°])(?:\^?([+-]?[0-9]{1,2}))?")
_WIDEST = Fraction(10**100)
"""Factors beyond come of strange exponents, and of two of them no float may come."""


def normal_form(text: str) -> str:
    """The one spelling of a unit cell, with a trailing "at 100 K" cut off."""
    plain = plain_superscripts(text).translate(_SPELLINGS)
    plain = plain_dashes(unicodedata.normalize("NFKC", plain))
    return _AT.sub("", " ".join(plain.split()))


def parse_unit(text: str, named: Callable[[str], Unit | None]) -> Unit | None:
    """The unit that a cell spells, or None.

    Args:
        text: The cell, in its normal form.
        named: Gives the unit of a single name, or None.
    """
    text = text.translate(_BRACKETS)
    ten = _POWER_OF_TEN.match(text)
    text = text if ten is None else text[ten.end() :]
    above, divided, below = text.partition("/")
    numerator = _factors("" if divided and above.strip() == "1" else above, named, 1)
    denominator = _factors(below.replace("/", " "), named, -1)
    if numerator is None or denominator is None or (divided and not denominator):
        return None
    factors = numerator + denominator
    if not factors or len(factors) > MOST_FACTORS:
        return None
    if any(unit.offset for unit, _ in factors):
        (unit, exponent), *others = factors
        return None if others or exponent != 1 or ten is not None else unit
    product = ONE if ten is None else Unit(Fraction(10) ** int(ten[1] or ten[2]))
    for unit, exponent in factors:
        product *= unit**exponent
    return product if 1 / _WIDEST < product.factor < _WIDEST else None


def _factors(
    text: str, named: Callable[[str], Unit | None], sign: int
) -> list[tuple[Unit, int]] | None:
    """Units and exponents of a product; None where one of them cannot be read."""
    factors = []
    for word in filter(None, _SEPARATORS.split(text)):
        found = _FACTOR.fullmatch(word)
        unit = None if found is None else named(found[1])
        if found is None or unit is None:
            return None
        exponent = int(found[2] or 1)
        if abs(exponent) > MOST_EXPONENT:
            return None
        factors.append((unit, sign * exponent))
    return factors
