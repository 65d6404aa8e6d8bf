"""The most similar title of a paper that has no record."""

from __future__ import annotations

from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.lookup import FLOOR, NearestTitle, nearest_titles

titles = st.text(alphabet="abc ", max_size=12)


@given(titles, st.lists(titles, max_size=12), st.integers(1, 12))
def test_it_is_the_first_of_the_likest_by_plain_difflib(
    truth: str, records: list[str], size: int
) -> None:
    rows = [(str(at), title) for at, title in enumerate(records)]
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    (found,) = nearest_titles([truth], blocks, autojunk=True)
    ratios = [
        SequenceMatcher(None, truth, title).ratio() if truth and title else 0.0
        for title in records
    ]
    best = max(ratios, default=0.0)
    if best < FLOOR:
        assert found is None
    else:
        at = ratios.index(best)
        assert found == NearestTitle(document=str(at), title=records[at], ratio=best)


def test_a_title_is_a_near_miss_from_five_hundredths_below_the_cutoff() -> None:
    told = [
        NearestTitle(document="1", title="", ratio=ratio).is_near_miss(0.85)
        for ratio in (0.79, 0.80, 0.84)
    ]
    assert told == [False, True, True]
