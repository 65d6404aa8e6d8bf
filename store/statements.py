"""Reads SQL statements from files, where each has a name.

A `.sql` file holds statements under headings of the form `-- name: what_it_does`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


_HEADING = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def text(name: str) -> str:
    """The words of `store/sql/NAME.sql`."""
    return files("store").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def script(name: str) -> list[str]:
    """The statements of `store/sql/NAME.sql`, in order.

    They are run one by one, inside the caller's transaction; `executescript` would
    commit it first.
    """
    statements = []
    lines: list[str] = []
    for line in text(name).splitlines():
        lines.append(line)
        if sqlite3.complete_statement("\n".join(lines)):
            statements.append("\n".join(lines))
            lines.clear()
    return statements


@cache
def queries(name: str) -> Mapping[str, str]:
    """The named statements of `store/sql/NAME.sql`."""
    return statements_by_name(text(name))


def statements_by_name(text: str) -> dict[str, str]:
    """The statements of a file's *text* under their names."""
    _, *parts = _HEADING.split(text)
    return {
        name: _COMMENT.sub("", body).strip().rstrip(";")
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
