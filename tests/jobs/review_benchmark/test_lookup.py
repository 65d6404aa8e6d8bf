"""Truth papers in a database: what is ruled out in bulk could not have matched.

The pruned search of titles against plain difflib.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.lookup import (
    CharacterBags,
    DatabaseLookup,
    look_up,
    ratio,
    similar_titles,
)
from jobs.review_benchmark.matching import LookupKeys

# few letters, so that titles are often near, and some that share a column with others
titles = st.text("ab \u00e9\u4e00\U0001f600c\u00c3", max_size=14)


class Stock:
    """A database of titles, one or more a paper."""

    def __init__(self, stocked: list[str]) -> None:
        self.titles = [(number // 2 + 1, title) for number, title in enumerate(stocked)]

    @staticmethod
    def by_pmid(pmid: str) -> int | None:
        return {"7": 3}.get(pmid)

    @staticmethod
    def by_doi(doi: str) -> int | None:
        return {"10.1/a": 4}.get(doi)

    def titles_within(
        self, shortest: int, longest: int, at_once: int
    ) -> Iterator[list[tuple[int, str]]]:
        fits = [pair for pair in self.titles if shortest <= len(pair[1]) <= longest]
        for start in range(0, len(fits), min(at_once, 3)):
            yield fits[start : start + min(at_once, 3)]


@given(
    st.lists(titles, max_size=4),
    st.lists(titles.filter(bool), max_size=8),
    st.sampled_from([0.3, 0.6, 0.85, 1.0]),
    st.booleans(),
)
def test_titles_are_found_as_difflib_alone_would_find_them(
    truth: list[str], stocked: list[str], cutoff: float, autojunk: bool
) -> None:
    stock = Stock(stocked)
    wanted = [LookupKeys(pmid="", doi="", title=title) for title in truth]
    expected = []
    for title in truth:
        best: dict[int, float] = {}
        for paper, other in stock.titles if title else ():
            ratio = SequenceMatcher(None, title, other, autojunk=autojunk).ratio()
            if ratio >= cutoff:
                best[paper] = max(best.get(paper, 0.0), ratio)
        expected.append(DatabaseLookup(by_title=best))
    found = look_up(wanted, stock, cutoff=cutoff, autojunk=autojunk)  # type: ignore[arg-type]
    assert list(found) == expected


def test_no_title_is_asked_for_where_an_identifier_is_found() -> None:
    wanted = [
        LookupKeys(pmid="7", doi="10.1/a", title="one"),
        LookupKeys(pmid="8", doi="10.1/b", title="one"),
    ]
    found = look_up(wanted, Stock(["one"]), cutoff=0.85, autojunk=True)  # type: ignore[arg-type]
    assert found == (
        DatabaseLookup(by_pmid=3, by_doi=4),
        DatabaseLookup(by_title={1: 1.0}),
    )


def test_bags_count_what_is_common_whatever_its_order() -> None:
    bags = CharacterBags(["aab c", "b"])
    assert bags.common(["baa", "cccc", " "]).tolist() == [[3, 1, 1], [1, 0, 0]]


GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron "
    "pi rho sigma tau upsilon phi chi psi omega"
)

ratio_titles = st.one_of(
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


@given(
    ratio_titles,
    st.lists(ratio_titles, max_size=6),
    st.floats(0.05, 1.0),
    st.booleans(),
)
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


@given(ratio_titles, ratio_titles, st.booleans())
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
