"""What is asked of a million papers reads no more than it needs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jobs.review_benchmark.database.reader import (
    SCHEMA,
    SQL,
    PaperDatabase,
    unreadable,
    writer,
)
from runner.errors import DatasetError


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


def test_a_database_without_an_index_is_made_anew_and_a_busy_one_awaited(
    tmp_path: Path,
) -> None:
    path = tmp_path / "papers.db"
    with closing(writer(path)) as connection, closing(sqlite3.connect(path, 0)) as late:
        connection.execute("DROP INDEX papers_years")
        with (
            closing(PaperDatabase(path)) as papers,
            pytest.raises(DatasetError, match=r"papers_years .* makes a new one"),
        ):
            papers.search('"x"', (1, 2), 1)
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as locked:
            late.execute(SQL["n_papers"])
        assert "wait until nobody imports" in str(unreadable(path, locked.value))
