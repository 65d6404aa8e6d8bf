"""Figures as people read them: counts, times, money."""

from __future__ import annotations

from typing import Final

_UNITS_S: Final = (("s", 1.0, 120.0), ("min", 60.0, 7200.0))
"""Unit, its length, and up to what it suits; beyond stand hours."""


def number(value: float) -> str:
    """A count."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, length, end in _UNITS_S:
        if seconds < end:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds / 3600:.1f} h"


def cost(usd: float | None) -> str:
    """Money; an unknown price is never zero."""
    from store.read.usage import dollars

    return "? (a price is unknown)" if usd is None else dollars(usd)
