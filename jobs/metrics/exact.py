"""Weighted sums that are exact, so that no machine can add them up differently.

A column of doubles is cut into two columns of integers, the leading and the following
bits. Sums of integers times counts are exact in doubles below 2^53, in any order and at
any vector width; only joining the two rounds, once. That is why resampling a million
numbers gives the same digits everywhere without the price of `math.fsum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

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
