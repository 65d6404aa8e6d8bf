"""The pairs of names that a person is to look at, by the profile of a scoring."""

from __future__ import annotations

from typing import Any

from jobs.property_extraction.tables import ModelFolders, candidate_tables
from tests.jobs.property_extraction.scored_rows import scored, stated, truth

TRUTH = (
    truth("P1", "gap", "1"),
    truth("P2", "gap", "2"),
    truth("P1", "length", "3"),
)
STATED = (
    stated("P1", "the gap", "7"),
    stated("P2", "the gap", "7"),
    stated("P1", "a length", "7"),
)


def reviewed(**settings: Any) -> list[tuple[object, ...]]:
    results = scored(STATED, rows=TRUTH, **settings)
    tables = {own.name: own for own in candidate_tables(results, ModelFolders(["m1"]))}
    return [row[:3] for row in tables["alias_candidates_review"].rows]


def test_the_first_pairs_by_count_are_reviewed() -> None:
    assert reviewed(top=2) == [("the gap", "gap", 2), ("a length", "length", 1)]


def test_the_published_file_has_all_pairs_by_name_and_then_by_count() -> None:
    assert reviewed(top=2, profile="published") == [
        ("a length", "length", 1),
        ("a length", "gap", 1),
        ("the gap", "gap", 2),
        ("the gap", "length", 1),
    ]
