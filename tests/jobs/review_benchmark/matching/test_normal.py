"""Normal forms of identifiers and titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.matching import Normaliser, pmid_of


@pytest.mark.parametrize(
    ("text", "pmid"),
    [
        ("12345678", "12345678"),
        (" PMID:00012 ", "12"),
        ("PMID: 00123", "123"),
        ("123.0", "123"),
        ("0", ""),
        ("000", ""),
        ("PMC123", ""),
        (" pmc99", ""),
        ("none", ""),
        ("", ""),
        ("٣٤", ""),  # digits, but not ASCII ones
    ],
)
def test_a_pmid_is_the_first_run_of_ascii_digits(text: str, pmid: str) -> None:
    assert pmid_of(text) == pmid


@pytest.mark.parametrize(
    "text",
    [
        "10.1000/ABC",
        "  10.1000/abc ",
        "https://doi.org/10.1000/abc",
        "HTTP://DOI.ORG/10.1000/abc",
        "https://dx.doi.org/10.1000/abc",
        "dx.doi.org/10.1000/abc",
        "doi.org/ 10.1000/abc",
        "DOI: 10.1000/abc",
        "doi:10.1000/abc",
    ],
)
def test_a_doi_loses_its_resolver_and_its_capitals(text: str) -> None:
    assert Normaliser().doi(text) == "10.1000/abc"


def test_what_follows_a_doi_belongs_to_it() -> None:
    assert Normaliser().doi("10.1000/abc.") == "10.1000/abc."


def test_only_one_prefix_is_taken_from_a_doi() -> None:
    assert Normaliser().doi("doi:https://doi.org/10.1/x") == "https://doi.org/10.1/x"


def test_the_old_resolver_stays_where_it_is_asked_to() -> None:
    kept = Normaliser(strip_dx=False)
    assert kept.doi("https://dx.doi.org/10.1/X") == "https://dx.doi.org/10.1/x"
    assert kept.doi("https://doi.org/10.1/X") == "10.1/x"


@pytest.mark.parametrize(
    ("text", "blank", "deleted"),
    [
        ("Once-daily  Dosing:\ta trial.", "once daily dosing a trial", None),
        ("Élan in the élite", "élan in the élite", None),
        ("...?!", "", ""),
        ("IL-6/TNF", "il 6 tnf", "il6tnf"),
        ("snake_case stays", "snake_case stays", "snake_case stays"),
    ],
)
def test_marks_in_a_title_become_blanks_or_go(
    text: str, blank: str, deleted: str | None
) -> None:
    assert Normaliser().title(text) == blank
    if deleted is not None:
        assert Normaliser(punctuation="delete").title(text) == deleted


@given(st.text(), st.sampled_from(["blank", "delete"]))
def test_a_normal_title_is_normal_already(text: str, mark: str) -> None:
    normal = Normaliser(punctuation="blank" if mark == "blank" else "delete")
    # some letters have a lower case of two characters, one of them a mark
    once = normal.title(normal.title(text))
    assert normal.title(once) == once
