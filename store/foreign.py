"""Whether a log from a stranger holds nothing but tables, as siftlog makes them.

A view, a trigger or an index of another's making is code that SQLite runs when the log
is read: a view called `run` may never end. So the schema is read before anything else,
from the one table that cannot be replaced.
"""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from pathlib import Path

from store.connect import read_only, unreadable
from store.errors import CorruptLog
from store.statements import SQL, script

_SCRIPTS = ("schema", "projections", "indexes", "union")
_COMMENT = re.compile(r"--[^\n]*")
_MAKING = re.compile(r"\bCREATE\s.*", re.DOTALL)
_COMPUTED = re.compile(r"\bVIRTUAL\b|\bGENERATED\b|\bAS\s*\(|\bCHECK\b", re.IGNORECASE)
"""Words of a table that has code in it; an older siftlog's tables have none of them."""


def check_schema(path: Path) -> None:
    """Refuse a log with anything in its schema that siftlog does not make.

    Raises:
        CorruptLog: it has such a thing, or cannot be read.
    """
    conn = read_only(path)
    try:
        conn.execute(SQL["trusted_schema"])
        rows = conn.execute(SQL["schema"]).fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    finally:
        conn.close()
    for kind, name, sql in rows:
        if not _is_ours(kind, sql):
            raise CorruptLog(
                f"{path.name} holds the {kind} {name!r}, which siftlog does not make: "
                "it is not read any further, for such a thing can run code"
            )


def _is_ours(kind: str, sql: str | None) -> bool:
    if sql is None:
        return kind == "index"  # of a PRIMARY KEY or UNIQUE, made by SQLite
    if _plain(sql) in _known():
        return True
    # columns may be missing in an older siftlog's tables
    return kind == "table" and not _COMPUTED.search(_plain(sql))


@cache
def _known() -> frozenset[str]:
    """The statements that make the schema of a log, or of a union of logs."""
    statements = (each for name in _SCRIPTS for each in script(name))
    found = (_MAKING.search(_COMMENT.sub("", each)) for each in statements)
    return frozenset(_plain(match[0]) for match in found if match)


def _plain(sql: str) -> str:
    """A statement without comments, its blanks alike."""
    return " ".join(_COMMENT.sub("", sql).split()).rstrip("; ")
