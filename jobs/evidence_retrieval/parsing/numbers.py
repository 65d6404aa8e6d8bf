"""Numbers as models write them; JSON's own come as the text they were written with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from runner.messages import ParseFailure

# four digits of an exponent are beyond any double, and decimals hold them
_DECIMAL = r"\d+(?:[.,]\d+)?(?:[eE][+-]?\d{1,4})?"
_PROBABILITY = re.compile(rf"({_DECIMAL})\s*(%?)")
_RELEVANCE = re.compile(rf"(-?{_DECIMAL})\s*%?")

# more digits number no sentence, and Python refuses to read thousands of them
_ONE_RUN = re.compile(r"\D*(\d{1,9})\D*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probability:
    """A probability, and whether its scale had to be told from the number alone."""

    value: float  #: 0 to 1
    is_guessed: bool = False


def read_probability(value: object) -> Probability | ParseFailure:
    """A probability in percent, or, where it can be nothing else, as a fraction.

    "85", "85%" and "85.5" are percent, and so is "1". "0.85" and "1.0" are fractions:
    nobody writes one percent with a decimal place.
    """
    if value is None or value == "":
        return ParseFailure(reason="no_probability")
    found = _PROBABILITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return _OUT_OF_RANGE
    text, percent = found.groups()
    number = Decimal(text.replace(",", "."))
    is_guessed = not percent and not text.isdigit() and 0 < number <= 1
    share = number if is_guessed else number / 100
    if share > 1:
        return _OUT_OF_RANGE
    return Probability(value=float(share), is_guessed=is_guessed)


def read_place(value: object, n: int) -> int | None:
    """The place from 0 that a number from 1 to *n* stands for: 3, "[3]" or "S3"."""
    found = _ONE_RUN.fullmatch(value) if isinstance(value, str) else None
    if found is None or found[0].lstrip().startswith("-"):
        return None
    number = int(found[1])
    return number - 1 if 1 <= number <= n else None


def read_relevance(value: object) -> tuple[int, bool] | None:
    """A relevance of 0 to 100, and whether it had to be clipped to that."""
    found = _RELEVANCE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    number = Decimal(found[1].replace(",", "."))
    within = min(max(number, Decimal(0)), Decimal(100))
    return int(within.to_integral_value(ROUND_HALF_UP)), within != number


_OUT_OF_RANGE = ParseFailure(
    reason="probability_out_of_range",
    detail="evidence_probability must be an integer from 0 to 100",
)
