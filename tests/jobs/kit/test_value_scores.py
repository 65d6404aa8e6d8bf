"""Values of every type against their gold values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.value_scores import (
    ValueRule,
    compare_values,
    folded_text,
    matching_size,
    similarity,
)

TOLERANCE = ValueRule(method="tolerance", absolute=1, relative=0.01)
FUZZY = ValueRule(method="fuzzy")

scalars = st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8)
lists = st.lists(scalars.filter(lambda value: value is not None), max_size=6).map(tuple)


@pytest.mark.parametrize(
    ("value", "gold", "rule", "is_right"),
    [
        (5, 5.0, ValueRule(), True),
        (True, 1, ValueRule(), False),
        ("COVID-19", "covid 19", ValueRule(), True),
        ("-1.5", "1.5", ValueRule(), False),
        (101, 100, TOLERANCE, True),
        (1010, 1000, TOLERANCE, True),
        (1011, 1000, TOLERANCE, False),
        ("Acetylsalicylic acid", "acetylsalicylc acid", FUZZY, True),
        ("acid, acetylsalicylic", "acetylsalicylic acid", FUZZY, True),
        ("ibuprofen", "aspirin", FUZZY, False),
        (None, None, ValueRule(), True),
        (None, 3, ValueRule(), False),
        (3, None, ValueRule(), False),
    ],
)
def test_single_values(
    value: Any, gold: Any, rule: ValueRule, *, is_right: bool
) -> None:
    assert compare_values(value, gold, rule).is_right is is_right


@pytest.mark.parametrize(
    ("value", "gold", "is_right"),
    [
        ("2021-05-17", "2021-05", True),
        ("2021", "2021-05", False),
        ("2021-05", "2021-06", False),
        ("2021", "202", False),
    ],
)
def test_a_date_may_be_more_precise_than_its_gold_value(
    value: str, gold: str, *, is_right: bool
) -> None:
    assert compare_values(value, gold, kind="date").is_right is is_right


def test_objects_are_compared_by_the_parts_that_gold_has() -> None:
    gold = {"arm": "A", "n": 12}
    assert compare_values({"arm": "a", "n": 12, "note": "x"}, gold).is_right
    assert compare_values({"arm": "a", "n": 13}, gold).hits == 1
    assert compare_values(None, gold).expected == 2


def test_objects_of_a_list_are_matched_by_a_key_or_by_all_parts() -> None:
    gold = ({"arm": "A", "n": 12}, {"arm": "B", "n": 14})
    values = ({"arm": "b", "n": 14}, {"arm": "a", "n": 99})
    assert compare_values(values, gold).hits == 1
    assert compare_values(values, gold, ValueRule(key="arm")).is_right


def test_an_element_is_matched_once() -> None:
    score = compare_values(("rash", "Rash"), ("rash",))
    assert (score.hits, score.predicted, score.expected) == (1, 2, 1)


@given(lists, lists)
def test_hits_are_never_more_than_either_side_has(
    value: tuple[Any, ...], gold: tuple[Any, ...]
) -> None:
    score = compare_values(value, gold)
    assert 0 <= score.hits <= min(score.predicted, score.expected)
    assert 0 <= score.f1 <= 1
    assert score.is_right == (score.f1 == 1)


@given(scalars | lists)
def test_every_value_equals_itself(value: Any) -> None:
    assert compare_values(value, value).is_right


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6))
def test_the_matching_is_a_largest_one(candidates: list[list[int]]) -> None:
    def best(at: int, free: frozenset[int]) -> int:
        if at == len(candidates):
            return 0
        choices = (1 + best(at + 1, free - {n}) for n in set(candidates[at]) & free)
        return max((best(at + 1, free), *choices))

    assert matching_size(candidates) == best(0, frozenset(range(6)))


@given(st.text(max_size=20))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert folded_text(folded_text(text)) == folded_text(text)


def test_one_wrong_letter_in_ten_reaches_the_threshold() -> None:
    assert similarity("metoprolol", "metopralol") == 90
    assert similarity("atenolol", "atenalol") < 90
