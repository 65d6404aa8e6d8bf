"""Rates, means and the figures that describe a column of values.

Undefined is None: it is left out of every figure and counted, never read as 0. Sums are
exactly rounded (`math.fsum`), so the order of the values cannot change a digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


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
    given = list(values)
    numbers = sorted(defined(given))
    p25, median, p75 = quantiles(numbers, (0.25, 0.5, 0.75))
    return Aggregate(
        mean=mean(numbers),
        std=std(numbers, ddof=ddof),
        median=median,
        p25=p25,
        p75=p75,
        min=numbers[0] if numbers else None,
        max=numbers[-1] if numbers else None,
        n=len(given),
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
