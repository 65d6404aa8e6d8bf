"""The change of a ratio of sums, divided over the items that are summed: exactly.

All is rational arithmetic on the doubles as they are: shares add up to the change to
the last bit, whatever their number and order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TypeAlias

Term: TypeAlias = tuple[float, float]
"""What an item adds above and below the line; in a mean, its value and 1."""


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
    """What each item has in the change of `sum above / sum below`.

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
