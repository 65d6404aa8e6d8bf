"""Limits in the words that people read."""

from __future__ import annotations

from collections.abc import Mapping

UNITS: Mapping[str, str] = {
    "concurrency": "calls at a time",
    "rpm": "requests a minute",
    "tpm": "tokens a minute",
}
"""Of what a person may limit, by its name in `runner.limits.limiter.Limits`."""


def words_of(values: Mapping[str, float | None]) -> str:
    """Limits by their names, in a few words; None: no such limit."""
    return ", ".join(
        f"no limit of {unit}"
        if values[name] is None
        else f"{values[name]:,.10g} {unit}"
        for name, unit in UNITS.items()
        if name in values
    )


def of_model(model: str | None, values: Mapping[str, float | None]) -> str:
    """Limits with the model that they are for; None: every model."""
    return f"{model or 'every model'}: {words_of(values)}"
