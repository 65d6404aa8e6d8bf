"""How alike names are: the ratio of python-Levenshtein, of many at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.aliases import candidates
from jobs.property_extraction.aliases.candidates import (
    blocks,
    contains,
    count_contained,
)

NAMES = st.lists(st.text(alphabet="abAB İ-é", max_size=8), max_size=12, unique=True)


def by_definition(a: str, b: str) -> float:
    """2 LCS / (length a + length b) of lower-cased names, by the textbook's table."""
    a, b = a.lower(), b.lower()
    line = [0] * (len(b) + 1)
    for left in a:
        before = line[:]
        for at, right in enumerate(b, start=1):
            line[at] = (
                before[at - 1] + 1 if left == right else max(before[at], line[at - 1])
            )
    return 2 * line[-1] / (len(a) + len(b)) if a or b else 1.0


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        ("hc2", "upper critical field hc2", 0.2222222222222222),
        ("Debye temperature ΘD", "Debye temperature", 0.9189189189189189),
        ("normal temperature", "common name of structure", 0.47619047619047616),
        ("ABC", "abc", 1.0),
        ("İ", "i", 1 - 1 / 3),
        ("", "", 1.0),
    ],
)
def test_similarity_is_that_of_the_lower_cased_names_to_the_last_digit(
    a: str, b: str, alike: float
) -> None:
    assert candidates.similarity(a, b) == alike


@given(NAMES, NAMES)
def test_blocks_hold_the_similarity_of_every_pair_whatever_their_size(
    rows: list[str], columns: list[str]
) -> None:
    whole = np.full((len(rows), len(columns)), np.nan)
    cells, candidates.CELLS = candidates.CELLS, 7
    try:
        for start, block in blocks(rows, columns):
            assert block.dtype == np.float64
            assert len(block) == 1 or block.size <= 7
            whole[start : start + len(block)] = block
    finally:
        candidates.CELLS = cells
    for at, a in enumerate(rows):
        for other, b in enumerate(columns):
            assert whole[at, other] == candidates.similarity(a, b)
            assert whole[at, other] == pytest.approx(by_definition(a, b), abs=1e-12)


@given(NAMES, NAMES)
def test_names_within_others_are_counted_as_if_each_pair_was_looked_at(
    rows: list[str], columns: list[str]
) -> None:
    each = sum(contains(a, b) for a in rows for b in columns)
    assert count_contained(rows, columns) == each


def test_an_empty_name_is_no_part_of_any() -> None:
    assert contains("Hc2", "upper critical field hc2(0)")
    assert not contains("", "a")
    assert not contains("", "")
