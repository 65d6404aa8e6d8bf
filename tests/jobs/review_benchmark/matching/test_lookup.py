"""Truth papers in a database: what is ruled out in bulk could not have matched."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.lookup import CharacterBags, DatabaseLookup, look_up
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
