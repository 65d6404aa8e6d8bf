"""A line of the table that a bench prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure against its goal."""

    target: str  #: which of the specifications' targets it speaks of
    what: str
    value: float
    goal: str
    met: bool
