"""The pruned search of titles against plain difflib."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.lookup import ratio, similar_titles

GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron "
    "pi rho sigma tau upsilon phi chi psi omega"
)

titles = st.one_of(
    st.text(alphabet="abc ", max_size=40),
    st.text(alphabet="abcde ", min_size=190, max_size=260),
    st.text(max_size=30),
)


def test_the_ratio_depends_on_which_title_comes_first() -> None:
    one, other = (
        "effects of exercise on pain in adults",
        "exercise effects on adult pain",
    )
    assert ratio(one, other) == 0.47761194029850745
    assert ratio(other, one) == 0.5074626865671642


def test_long_titles_lose_their_likeness_to_the_shortcut_of_difflib() -> None:
    truth = f"{GREEK} {GREEK}"
    words = truth.split()
    record = " ".join([words[0], "changed", *words[2:]])
    assert len(truth) == 247
    assert ratio(truth, record) == 0.4949698189134809
    assert ratio(truth, record, autojunk=False) == 0.9818913480885312


@given(titles, st.lists(titles, max_size=6), st.floats(0.05, 1.0), st.booleans())
def test_pruning_finds_what_plain_difflib_finds(
    truth: str, records: list[str], cutoff: float, autojunk: bool
) -> None:
    plain = [
        (place, found)
        for place, record in enumerate(records)
        if truth
        and record
        and (found := SequenceMatcher(None, truth, record, autojunk=autojunk).ratio())
        >= cutoff
    ]
    assert list(similar_titles(truth, records, cutoff, autojunk=autojunk)) == plain


@given(titles, titles, st.booleans())
def test_a_ratio_that_is_the_cutoff_itself_reaches_it(
    truth: str, record: str, autojunk: bool
) -> None:
    exact = ratio(truth, record, autojunk=autojunk)
    if truth and record and exact:
        found = list(similar_titles(truth, [record], exact, autojunk=autojunk))
        assert found == [(0, exact)]


@pytest.mark.parametrize("truth", ["", "a title"])
def test_an_empty_title_is_alike_to_none(truth: str) -> None:
    assert list(similar_titles(truth, ["", ""], 0.0001)) == []
