"""The next match is the nearest one in the direction that was asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.task_list import next_match


@given(
    st.lists(st.integers(1, 40), unique=True, min_size=1),
    st.sets(st.integers(1, 40)),
    st.data(),
    st.sampled_from([1, -1]),
)
def test_nothing_that_fits_is_passed_over(
    numbers: list[int], fitting: set[int], data: st.DataObject, step: int
) -> None:
    at = data.draw(st.integers(0, len(numbers) - 1))
    found = next_match(numbers, sorted(fitting), at, step)
    ahead = numbers[at + 1 :] if step > 0 else numbers[:at][::-1]
    first = next((number for number in ahead if number in fitting), None)
    assert (found is None and first is None) or numbers[found or 0] == first
