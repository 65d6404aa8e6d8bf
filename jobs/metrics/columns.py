"""What the metrics take: columns of labels, scores, probabilities and weights, checked.

Nothing is clipped or dropped: a value that does not belong is a `ValueError` that names
the argument and the first index.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
    of_one_length(**{name: numbers}, items=np.empty(n))
    return numbers


def of_one_length(**columns: npt.NDArray[np.generic] | Sequence[Hashable]) -> None:
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


def _refuse(name: str, numbers: Floats, wrong: Bools, wanted: str) -> None:
    if wrong.any():
        index = int(np.argmax(wrong))
        raise ValueError(
            f"{name} holds {numbers[index]} at index {index}, not {wanted}."
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
    found: Floats = np.divide(
        numerator, denominator, out=undefined, where=denominator != 0
    )
    return found
