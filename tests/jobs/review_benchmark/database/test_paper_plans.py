"""What is asked of a million papers reads no more than it needs."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from jobs.review_benchmark.database.statements import SCHEMA, SQL


@pytest.mark.parametrize(
    ("name", "values", "plan"),
    [
        (
            "search",
            ('"x"', 0, 1, 2, False),
            "SEARCH papers USING COVERING INDEX papers_years",
        ),
        (
            "titles_within",
            (1, 2),
            "SEARCH paper_titles USING COVERING INDEX paper_titles_by_length",
        ),
        ("id_by_doi", ("x",), "SEARCH papers USING COVERING INDEX"),
        ("kept_by_ids", ("[]", "[]"), "MULTI-INDEX OR"),
        (
            "kept_by_title",
            ("x", 1, "s", "1"),
            "SEARCH paper_titles USING COVERING INDEX paper_titles_by_title",
        ),
    ],
)
def test_each_statement_has_its_index(
    name: str, values: tuple[object, ...], plan: str
) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", values).fetchall()
    steps = [step for *_, step in rows]
    assert any(step.startswith(plan) for step in steps), steps
    assert not any(
        step.startswith("SCAN paper") for step in steps if "VIRTUAL" not in step
    )
    if name == "titles_within":
        assert len(steps) == 1  # nothing is sorted
