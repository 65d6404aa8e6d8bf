"""SQL stands in `.sql` files, under names that are used."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

import store
from store.database import SQL, UNION
from store.statements import script, statements_by_name

STORE = Path(store.__file__).parent
SOURCES = {path: path.read_text("utf-8") for path in sorted(STORE.rglob("*.py"))}
_LITERAL = re.compile(
    r"""["'](SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA|BEGIN|COMMIT|WITH)\b"""
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(STORE)))
def test_python_holds_no_sql(path: Path) -> None:
    assert _LITERAL.findall(SOURCES[path]) == []


def test_every_statement_is_used() -> None:
    text = "\n".join(SOURCES.values())
    quoted = set(re.findall(r'"(\w+)"', text))
    made = re.findall(r'(?:SQL|UNION)\[f"(\w*)\{', text)
    unused = {
        name
        for name in (*SQL, *UNION)
        if name not in quoted and not any(name.startswith(prefix) for prefix in made)
    }
    assert unused == set()


def test_every_name_that_is_asked_for_is_there() -> None:
    asked = set(re.findall(r'(?<!_)SQL\["(\w+)"\]', "\n".join(SOURCES.values())))
    assert asked - set(SQL) == set()
    of_union = set(re.findall(r'UNION\["(\w+)"\]', "\n".join(SOURCES.values())))
    assert of_union - set(UNION) == set()


#: Parts of statements are run by `test_query`.
WHOLE = [n for n in sorted(SQL) if not n.startswith("where_") and "{}" not in SQL[n]]


@pytest.mark.parametrize("name", WHOLE)
def test_every_statement_fits_the_tables(name: str) -> None:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    for file in ("schema", "projections", "indexes"):
        for statement in script(file):
            conn.execute(statement)
    text = SQL[name]
    if not text.startswith(("PRAGMA", "BEGIN", "COMMIT", "ROLLBACK")):
        numbered = {int(n) for n in re.findall(r"\?(\d+)", text)}
        count = len(numbered) or text.count("?")
        named = dict.fromkeys(re.findall(r":(\w+)", text))
        conn.execute(f"EXPLAIN {text}", named or [None] * count)
    conn.close()


def test_statements_are_read_with_their_names_and_without_comments() -> None:
    text = (
        "-- a file\n\n-- name: one\nSELECT 1;\n-- why\n\n-- name: two\nSELECT\n  2;\n"
    )
    assert statements_by_name(text) == {"one": "SELECT 1", "two": "SELECT\n  2"}


def test_projections_can_be_made_again_over_old_ones() -> None:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    for file in ("schema", "projections", "indexes", "projections", "indexes"):
        for statement in script(file):
            conn.execute(statement)
    conn.close()
