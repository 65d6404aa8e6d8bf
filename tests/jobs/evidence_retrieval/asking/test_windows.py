"""Windows over a pool: which, in what order, and what they leave behind."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.sentence_order import moved, spans


@pytest.mark.parametrize(
    ("n", "starts"),
    [
        (1, [0]),
        (19, [0]),
        (20, [0]),
        (21, [1, 0]),
        (30, [10, 0]),
        (35, [15, 5, 0]),
        (200, [*range(180, -1, -10)]),
    ],
)
def test_windows_go_from_the_end_to_the_front(n: int, starts: list[int]) -> None:
    found = spans(n, 20, 10)
    assert [span.start for span in found] == starts
    assert {len(span) for span in found} == {min(n, 20)}


sizes = st.integers(min_value=2, max_value=25)


@given(st.integers(min_value=1, max_value=250), sizes, st.data())
def test_windows_cover_the_pool_and_overlap(
    n: int, size: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(min_value=1, max_value=size))
    found = spans(n, size, stride)
    assert {place for span in found for place in span} == set(range(n))
    for later, sooner in pairwise(found):
        assert sooner.start < later.start <= sooner.start + stride


@given(st.permutations(range(12)), st.data())
def test_an_order_stays_a_permutation_and_moves_inside_the_window_only(
    order: list[int], data: st.DataObject
) -> None:
    span = data.draw(st.sampled_from(spans(12, 5, 3)))
    places = data.draw(st.permutations(range(len(span))))
    found = moved(order, span, places)
    assert sorted(found) == list(range(12))
    assert found[: span.start] == tuple(order[: span.start])
    assert found[span.stop :] == tuple(order[span.stop :])
    assert [found[span.start + i] for i in range(5)] == [
        order[span.start + place] for place in places
    ]


def test_the_best_of_the_end_arrives_at_the_front() -> None:
    """With a perfect reader, windows of 4 by 2 bring the two best to the top."""
    order: tuple[int, ...] = tuple(range(9))
    worth = {8: 100, 7: 99}
    for span in spans(9, 4, 2):
        window = order[span.start : span.stop]
        by_worth = sorted(range(4), key=lambda at: -worth.get(window[at], 0))
        order = moved(order, span, by_worth)
    assert order[:2] == (8, 7)
