"""Checks the columns that metrics take; describes them and sums them exactly.

Nothing is clipped or dropped: a value that does not belong is a `ValueError` that names
the argument and the first index.

Undefined is None: it is left out of every figure and counted, never read as 0. Sums are
exactly rounded (`math.fsum`), so the order of the values cannot change a digit.

A column of doubles is cut into two columns of integers, the leading and the following
bits. Sums of integers times counts are exact in doubles below 2^53, in any order and at
any vector width; only joining the two rounds, once. That is why resampling a million
numbers gives the same digits everywhere without the price of `math.fsum`.

The shares that items have in a change are rational numbers made of the doubles as they
are: they add up to the change to the last bit, whatever their number and order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = Sequence[float] | Sequence[bool] | npt.NDArray[np.generic]
"""One number an item, given as a list or an array."""

Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]


def labels(name: str, values: Column) -> Bools:
    """A column of 0 and 1, as booleans."""
    numbers = _numbers(name, _flat(name, values))
    _refuse(name, numbers, (numbers != 0) & (numbers != 1), "0 or 1")
    truth: Bools = numbers == 1
    return truth


def scores(name: str, values: Column) -> Floats:
    """A column of finite numbers; higher is more positive."""
    return _numbers(name, _flat(name, values))


def probabilities(name: str, values: Column) -> Floats:
    """A column of numbers from 0 to 1."""
    numbers = scores(name, values)
    _refuse(name, numbers, (numbers < 0) | (numbers > 1), "between 0 and 1")
    return numbers


def weights(name: str, values: Column | None, n: int) -> Floats:
    """A column of *n* weights, none of them negative; ones where none are given."""
    if values is None:
        return np.ones(n)
    numbers = scores(name, values)
    _refuse(name, numbers, numbers < 0, "0 or more")
    check_same_length(**{name: numbers}, items=np.empty(n))
    return numbers


def check_same_length(**columns: npt.NDArray[np.generic] | Sequence[Hashable]) -> None:
    """Raise `ValueError` unless all *columns* are equally long."""
    (first, head), *rest = columns.items()
    for name, column in rest:
        if len(column) != len(head):
            raise ValueError(
                f"{name} has {len(column)} values and {first} has {len(head)}; "
                "they must speak of the same items."
            )


def _flat(name: str, values: Column) -> npt.NDArray[np.generic]:
    column: npt.NDArray[np.generic] = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{name} must be one column, not of shape {column.shape}.")
    return column


def _numbers(name: str, column: npt.NDArray[np.generic]) -> Floats:
    if not column.size:
        return np.empty(0)
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers only.") from None
    _refuse(name, numbers, ~np.isfinite(numbers), "a finite number")
    return numbers


def _refuse(name: str, numbers: Floats, wrong: Bools, expected: str) -> None:
    if wrong.any():
        index = int(np.argmax(wrong))
        raise ValueError(
            f"{name} holds {numbers[index]} at index {index}, not {expected}."
        )


def as_value(number: float) -> float | None:
    """A number out of an array, where NaN stands for undefined."""
    return None if np.isnan(number) else float(number)


def quotient(above: npt.ArrayLike, below: npt.ArrayLike) -> Floats:
    """*above* by *below*; NaN, for undefined, where that is 0."""
    numerator, denominator = np.broadcast_arrays(
        np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    )
    undefined = np.full(numerator.shape, np.nan)
    quotients: Floats = np.divide(
        numerator, denominator, out=undefined, where=denominator != 0
    )
    return quotients


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A column of values in a few figures; None where a figure is undefined."""

    mean: float | None
    std: float | None  #: with ddof=1, if nothing else was asked for
    median: float | None
    p25: float | None  #: quantiles are linear between neighbours
    p75: float | None
    min: float | None
    max: float | None
    n: int  #: values, undefined ones included
    n_defined: int


def aggregate(values: Iterable[float | None], *, ddof: int = 1) -> Aggregate:
    """Describe *values*; every figure is about the defined ones."""
    all_values = list(values)
    numbers = sorted(defined(all_values))
    p25, median, p75 = quantiles(numbers, (0.25, 0.5, 0.75))
    return Aggregate(
        mean=mean(numbers),
        std=std(numbers, ddof=ddof),
        median=median,
        p25=p25,
        p75=p75,
        min=numbers[0] if numbers else None,
        max=numbers[-1] if numbers else None,
        n=len(all_values),
        n_defined=len(numbers),
    )


def defined(values: Iterable[float | None]) -> list[float]:
    """The values that are not undefined, in order; a NaN or infinity is an error.

    Raises:
        ValueError: naming the first value that is not finite.
    """
    numbers = [value for value in values if value is not None]
    for index, number in enumerate(numbers):
        if not math.isfinite(number):
            raise ValueError(
                f"values holds {number} at defined index {index}: "
                "an undefined value is None."
            )
    return numbers


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the defined values; None where there is none."""
    numbers = defined(values)
    return ratio(math.fsum(numbers), len(numbers))


def ratio(numerator: float, denominator: float) -> float | None:
    """A rate; None where the denominator is 0."""
    return numerator / denominator if denominator else None


def std(values: Iterable[float | None], *, ddof: int = 1) -> float | None:
    """The standard deviation of the defined values; below ddof + 1 of them None."""
    numbers = defined(values)
    centre = mean(numbers)
    if centre is None:
        return None
    variance = ratio(math.fsum((x - centre) ** 2 for x in numbers), len(numbers) - ddof)
    return None if variance is None else math.sqrt(variance)


def quantiles(
    numbers: Iterable[float], shares: tuple[float, ...]
) -> tuple[float | None, ...]:
    """Quantiles at *shares* (0 to 1), linear between neighbours as numpy's default."""
    column = np.fromiter(numbers, dtype=np.float64)
    if not column.size:
        return (None,) * len(shares)
    return tuple(float(q) for q in np.quantile(column, shares))


_MANTISSA_BITS = 53


class ExactColumn:
    """A column that can be summed under many vectors of counts."""

    def __init__(self, values: Sequence[float] | Floats, total_count: int) -> None:
        """Cut *values*; the counts of one vector add up to at most *total_count*."""
        column = np.asarray(values, dtype=np.float64)
        largest = float(np.max(np.abs(column), initial=0.0))
        _, self._exponent = np.frexp(largest)
        self._bits = _MANTISSA_BITS - total_count.bit_length()
        scaled = np.ldexp(column, self._bits - self._exponent)
        self._leading = np.rint(scaled)
        following = np.rint(np.ldexp(scaled - self._leading, self._bits))
        self._following = following if following.any() else None

    def sums(self, counts: Floats) -> Floats:
        """The column's sum under each row of *counts*, whole numbers as doubles."""
        total: Floats = np.einsum("ij,j->i", counts, self._leading)
        if self._following is not None:
            rest = np.einsum("ij,j->i", counts, self._following)
            total += np.ldexp(rest, -self._bits)
        np.ldexp(total, self._exponent - self._bits, out=total)
        return total


Term: TypeAlias = tuple[float, float]
"""Numerator and denominator of one item; in a mean, its value and 1."""


def exact_sum(values: Iterable[float]) -> Fraction:
    """The sum of some doubles, without rounding."""
    by_denominator: dict[int, int] = defaultdict(int)
    for value in values:
        above, below = value.as_integer_ratio()
        by_denominator[below] += above
    return sum(
        (Fraction(above, below) for below, above in by_denominator.items()), Fraction()
    )


def exact_ratio(terms: Mapping[str, Term]) -> Fraction | None:
    """The ratio of the sums, without rounding; None over nothing."""
    below = exact_sum(term[1] for term in terms.values())
    return exact_sum(term[0] for term in terms.values()) / below if below else None


def shares_of_change(
    before: Mapping[str, Term], after: Mapping[str, Term]
) -> dict[str, Fraction] | None:
    """Return each item's share of the change of `sum above / sum below`.

    With r the ratio before and B the sum below after, the share of an item is
    (change above - r * change below) / B: it counts by what it became, held against the
    ratio that there was. One that came counts by how far it lies above or below that
    ratio, one that went likewise with the other sign. The shares add up to
    (A' - A - r (B' - B)) / B' = A'/B' - r, since A = r B.

    Args:
        before: terms by item.
        after: likewise; items that are on one side alone came or went.

    Returns:
        The shares that are not 0, in the order of *before*, then of what came; None
        where a ratio is undefined.
    """
    ratio = exact_ratio(before)
    below = exact_sum(term[1] for term in after.values())
    if ratio is None or not below:
        return None
    shares = {}
    for item in dict.fromkeys((*before, *after)):
        old, new = before.get(item, (0.0, 0.0)), after.get(item, (0.0, 0.0))
        if old == new:
            continue
        above = Fraction(new[0]) - Fraction(old[0])
        share = (above - ratio * (Fraction(new[1]) - Fraction(old[1]))) / below
        if share:
            shares[item] = share
    return shares
