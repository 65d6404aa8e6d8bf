"""Sliding windows over a list of candidates, from its end to its front; pure.

A window brings the best of its candidates to its front, where the next window, which
overlaps it, takes them along.
"""

from __future__ import annotations

from collections.abc import Sequence


def spans(n: int, size: int, stride: int) -> tuple[range, ...]:
    """The places that each window covers, in the order in which they are asked.

    The last one starts at the front and is as long as the others: where the stride does
    not come out even, it overlaps more rather than being short.
    """
    starts = [*range(n - size, 0, -stride), 0]
    return tuple(range(start, min(start + size, n)) for start in starts)


def moved(order: Sequence[int], span: range, places: Sequence[int]) -> tuple[int, ...]:
    """*order* with the entries of *span* put in the order of *places* within it."""
    window = order[span.start : span.stop]
    return (
        *order[: span.start],
        *(window[place] for place in places),
        *order[span.stop :],
    )
