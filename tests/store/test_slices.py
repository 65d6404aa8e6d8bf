"""The slices that a run's items are shared out by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.slices import ALL, SLICES, Slices, left_by, slice_of

numbers = st.sets(st.integers(0, SLICES - 1), max_size=40)


def test_an_item_stays_in_its_slice_for_ever() -> None:
    assert [slice_of(item) for item in ("PMC1", "PMC2", "ä")] == [71, 662, 57]


@given(st.integers(1, SLICES))
def test_every_slice_belongs_to_one_shard_and_shards_are_even(count: int) -> None:
    parts = [Slices.of(index, count) for index in range(count)]
    assert sorted(number for part in parts for number in part) == list(range(SLICES))
    assert {len(part) for part in parts} <= {SLICES // count, -(-SLICES // count)}


@given(numbers)
def test_a_set_is_read_as_it_is_written(chosen: set[int]) -> None:
    slices = Slices.holding(chosen)
    assert set(slices) == chosen
    assert len(slices) == len(chosen)
    assert Slices.parse(str(slices)) == slices
    assert all((number in slices) == (number in chosen) for number in range(SLICES))


@given(numbers, numbers)
def test_sets_join_and_meet(one: set[int], other: set[int]) -> None:
    assert set(Slices.holding(one) | Slices.holding(other)) == one | other
    assert set(Slices.holding(one) & Slices.holding(other)) == one & other


@given(st.lists(numbers, max_size=3))
def test_what_parts_leave_is_in_none_of_them(parts: list[set[int]]) -> None:
    left = left_by(map(Slices.holding, parts))
    assert set(left) == set(ALL).difference(*parts)


@pytest.mark.parametrize("text", ["1024", "5-3", "a", "1--2", "-1", "0-5000"])
def test_what_names_no_slices_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no slices"):
        Slices.parse(text)


@pytest.mark.parametrize(("index", "count"), [(1, 1), (-1, 2), (0, 0), (0, 1025)])
def test_there_are_only_so_many_shards(index: int, count: int) -> None:
    with pytest.raises(ValueError, match="there is no shard"):
        Slices.of(index, count)


def test_all_of_them_are_one_range() -> None:
    assert Slices.of(0, 1) == ALL
    assert str(ALL) == "0-1023"
