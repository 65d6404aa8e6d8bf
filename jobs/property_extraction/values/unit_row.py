"""A row of a given table of units."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRow:
    """One `name` is `factor` of the unit `si`."""

    name: str
    si: str
    factor: float  #: finite, not 0
    source_row: int = 0  #: in its file; the header is row 1
