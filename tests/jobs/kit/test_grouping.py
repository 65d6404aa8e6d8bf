"""Values are grouped by a key, and no value is lost or moved."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.grouping import grouped


@given(st.lists(st.tuples(st.integers(0, 3), st.integers())))
def test_keys_and_values_keep_their_order(pairs: list[tuple[int, int]]) -> None:
    groups = grouped(pairs)
    assert [*groups] == [*dict.fromkeys(key for key, _ in pairs)]
    for key, values in groups.items():
        assert values == [value for own, value in pairs if own == key]
