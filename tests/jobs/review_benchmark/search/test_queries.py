"""What a model plans becomes words to search, never syntax."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.data import SearchQuery, expression
from jobs.review_benchmark.database.reader import SCHEMA, SQL
from jobs.review_benchmark.search import fuse_rankings

terms = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            [
                '"',
                "*",
                "a*",
                "NEAR(a b)",
                "title: x",
                "-x",
                'un"balanced',
                "^a",
                "(",
                "+",
            ]
        ),
    ),
    max_size=4,
)


def test_groups_are_joined_by_and_synonyms_by_or() -> None:
    query = SearchQuery(
        label="x",
        all_of=(("oxybutynin",), ("once daily", "controlled release")),
        none_of=("children",),
    )
    assert expression(query) == (
        '((("oxybutynin") AND ("once daily" OR "controlled release")) NOT ("children"))'
    )


@pytest.mark.parametrize(
    ("term", "quoted"),
    [
        ('the "best" care', '"the ""best"" care"'),
        ("randomi*", '"randomi"*'),
        ("*", ""),
        ("- ?", ""),
        ("one two three four five six seven eight nine", None),
    ],
)
def test_a_term_is_a_phrase_of_at_most_eight_words(
    term: str, quoted: str | None
) -> None:
    found = expression(SearchQuery(label="x", all_of=((term,),)))
    if quoted is None:
        assert "eight" in found
        assert "nine" not in found
    else:
        assert found == (f"(({quoted}))" if quoted else "")


@given(st.lists(terms, max_size=10), terms)
def test_whatever_a_model_says_can_be_searched(
    groups: list[list[str]], none_of: list[str]
) -> None:
    query = SearchQuery(
        label="x", all_of=tuple(map(tuple, groups)), none_of=tuple(none_of)
    )
    asked = expression(query)
    if asked:
        connection = sqlite3.connect(":memory:")
        connection.executescript(SCHEMA)
        assert connection.execute(SQL["n_hits"], (asked,)).fetchone() == (0,)
        connection.close()


def test_ranks_are_fused_and_ties_go_by_id() -> None:
    assert fuse_rankings([[5, 3], [3, 5], [9]]) == [3, 5, 9]
    assert fuse_rankings([[9], [5, 3], [3, 5]]) == [3, 5, 9]
    assert fuse_rankings([]) == []
