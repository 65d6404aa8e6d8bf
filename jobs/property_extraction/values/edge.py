"""A pair of values that are one, by the rule of their property."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edge:
    """Places of a prediction and a truth row that state one value."""

    prediction: int
    truth: int
    error: float = 0.0  #: relative, of numbers; 0 where texts are compared
