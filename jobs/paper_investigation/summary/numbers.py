"""Numbers as summaries print them."""

from __future__ import annotations

from jobs.metrics import ratio

UNDEFINED = "n/a"


def fixed(value: float | None, undefined: str = UNDEFINED) -> str:
    """A share or mean with three decimals."""
    return undefined if value is None else f"{value:.3f}"


def interval(lo: float | None, hi: float | None) -> str:
    """An interval in brackets; "" where it is undefined."""
    return "" if lo is None or hi is None else f"[{lo:.2f}, {hi:.2f}]"


def percent(k: int, n: int) -> str:
    """A share of *n* in percent; 0.0% where there are none."""
    return f"{ratio(k, n) or 0.0:.1%}"
