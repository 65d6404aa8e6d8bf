"""Runs one bench module by its name, in whatever process it is called."""

from __future__ import annotations

import importlib

from tests.bench.row import Row


def measured(name: str, *, quick: bool) -> list[Row]:
    """The rows of `tests.bench.NAME`."""
    rows: list[Row] = importlib.import_module(f"tests.bench.{name}").measure(quick)
    return rows
