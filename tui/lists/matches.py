"""Where a list of tasks holds the next one that a filter lets through. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def next_match(
    numbers: Sequence[int], matches: Sequence[int], at: int, step: int
) -> int | None:
    """The next position of *numbers* that stands in *matches*; None: there is none.

    Args:
        numbers: a list in any order.
        matches: what is looked for, ascending.
        at: where the search begins; that position itself is passed over.
        step: 1: towards the end; -1: towards the beginning.
    """
    end = len(numbers) if step > 0 else -1
    positions = range(at + step, end, step)
    return next((p for p in positions if holds(matches, numbers[p])), None)


def holds(numbers: Sequence[int], number: int) -> bool:
    """Whether an ascending list has a number."""
    position = bisect_left(numbers, number)
    return position < len(numbers) and numbers[position] == number
