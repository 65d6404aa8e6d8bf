"""Reads the limits of a run's models: those in force, and those that the user set.

The user sets the most calls at a time. The number in use is learned: it is lower at the
start of a run and while the endpoint refuses calls.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from store.database import SQL

UNITS: Mapping[str, str] = {
    "concurrency": "calls at a time",
    "rpm": "requests a minute",
    "tpm": "tokens a minute",
}
"""Limits that a user can set, by their names in `runner.limits.limiter.Limits`."""


def limits_in_words(values: Mapping[str, float | None]) -> str:
    """Describe limits in a few words; None: no such limit."""
    return ", ".join(
        f"no limit of {unit}"
        if values[name] is None
        else f"{values[name]:,.10g} {_unit(unit, values[name])}"
        for name, unit in UNITS.items()
        if name in values
    )


def _unit(unit: str, n: float | None) -> str:
    """Return a unit, in the singular for one.

    >>> _unit("calls at a time", 1)
    'call at a time'
    """
    return unit.replace("s ", " ", 1) if n == 1 else unit


def model_limits_in_words(model: str | None, values: Mapping[str, float | None]) -> str:
    """Describe limits that are set, and their model; None: every model."""
    words = limits_in_words(values)
    most = "" if words.startswith("no ") else "at most "
    return f"{model or 'every model'}: {most}{words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLimits:
    """Last observed limits of one model, learned limits included."""

    model: str
    concurrency: int  #: calls at a time, which the endpoint's replies may lower
    rpm: float | None  #: requests a minute
    tpm: float | None  #: tokens a minute
    paused_until_us: int | None
    #: calls at a time that the user allows; None: an older version recorded none
    ceiling: int | None = None

    @property
    def is_lowered(self) -> bool:
        """Whether fewer calls are made at a time than the user allows."""
        return self.ceiling is not None and self.concurrency < self.ceiling

    def __str__(self) -> str:
        """Describe the limits in force."""
        calls = f"{self.concurrency:,}"
        if self.is_lowered:
            calls += f" of at most {self.ceiling:,}"
        rates = {"rpm": self.rpm, "tpm": self.tpm}
        rest = limits_in_words({k: v for k, v in rates.items() if v is not None})
        unit = _unit(UNITS["concurrency"], self.ceiling or self.concurrency)
        return ", ".join(filter(None, (f"{calls} {unit}", rest)))


def observed_limits(conn: sqlite3.Connection) -> tuple[ObservedLimits, ...]:
    """Return the limits in force by model, as last observed."""
    return tuple(
        ObservedLimits(
            model=model,
            concurrency=concurrency,
            rpm=rpm,
            tpm=tpm,
            paused_until_us=paused,
            ceiling=ceiling[0] if ceiling else None,
        )
        # projections that an older version wrote have no ceiling
        for model, concurrency, _, rpm, tpm, paused, _, *ceiling in conn.execute(
            SQL["rows_limiter"]
        )
    )
