"""The SQL of the union, by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from store.statements import named, text

UNION: Final[Mapping[str, str]] = named(text("union"))
"""Every statement about the tables that only a union has."""

FACTS = ("merged", "opening", "origin", "numbered", "identity")
"""Tables that say where the events came from."""
DERIVED = ("claim", "reopened", "part", "place")
"""Tables that are folded from the events."""


def is_union(conn: sqlite3.Connection) -> bool:
    """Whether a log is the union of others."""
    return bool(conn.execute(UNION["is_union"]).fetchone()[0])


def has_places(conn: sqlite3.Connection) -> bool:
    """Whether the order of the plan is told apart from the numbers of its tasks."""
    return bool(conn.execute(UNION["has_places"]).fetchone()[0])
