"""Reads the limits of a run's models: those in force, and those that commands set.

A command sets the most calls at a time. The number in use is learned: it is lower while
the endpoint refuses calls.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from store.database import SQL
from store.events import CommandAccepted, CommandApplied
from store.tables import recorded_rows

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
    #: calls at a time that a command set since the last resume; None: none did
    ceiling: int | None = None

    @property
    def is_lowered(self) -> bool:
        """Whether fewer calls are made at a time than a command allowed."""
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
    ceilings = _ceilings(conn)
    return tuple(
        ObservedLimits(
            model=model,
            concurrency=concurrency,
            rpm=rpm,
            tpm=tpm,
            paused_until_us=paused,
            ceiling=ceilings.get(model, ceilings.get(None)),
        )
        for model, concurrency, _, rpm, tpm, paused, _ in conn.execute(
            SQL["rows_limiter"]
        )
    )


def _ceilings(conn: sqlite3.Connection) -> dict[str | None, int]:
    """Return the calls at a time that commands set, by model; None: every model.

    A resume may set its own, which the log does not have: earlier ones are left out.
    """
    resumed = recorded_rows(conn, SQL["last_marked"], ("run_resumed",))
    since = resumed[0].seq if resumed else 0
    after = (since, -1)
    applied = {
        row.event.command
        for row in recorded_rows(conn, SQL["marked"], ("command_applied", *after))
        if isinstance(row.event, CommandApplied)
    }
    ceilings: dict[str | None, int] = {}
    for row in recorded_rows(conn, SQL["marked"], ("command_accepted", *after)):
        event = row.event
        if (
            not isinstance(event, CommandAccepted)
            or event.kind != "limits"
            or event.command not in applied
        ):
            continue
        payload = json.loads(event.payload)
        if "concurrency" in payload:
            if payload.get("model") is None:
                ceilings.clear()
            ceilings[payload.get("model")] = payload["concurrency"]
    return ceilings
