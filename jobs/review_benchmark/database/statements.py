"""The SQL of the paper database, by name: Python holds none of its own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from store.database import named

_FOLDER = files("jobs.review_benchmark.database").joinpath("sql")

SCHEMA: Final = _FOLDER.joinpath("schema.sql").read_text(encoding="utf-8")

SQL: Final[Mapping[str, str]] = named(
    _FOLDER.joinpath("queries.sql").read_text(encoding="utf-8")
)
