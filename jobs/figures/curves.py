"""Curves with no more points than a picture can show."""

from __future__ import annotations

import numpy as np

MOST_POINTS = 400
"""Of a curve in a picture; more cannot be told apart."""


def thinned(n: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """At most `MOST_POINTS` places of *n*, the first and the last among them."""
    return np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(np.intp)
