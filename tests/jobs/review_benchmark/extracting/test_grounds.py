"""A text stands in the source or it does not; identifiers do to the character."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.inputs.documents import Document, TextSpan
from jobs.review_benchmark.extraction.checks import (
    LEAST,
    SourceText,
    doi_in,
    issued,
    pmid_in,
    stated_count,
    year_in,
)

WORDS = st.lists(st.text(alphabet="abcdé1", min_size=1, max_size=6), min_size=1)


def _document(text: str) -> Document:
    return Document(name="a.txt", text=text, starts=(0,))


@given(WORDS, WORDS, WORDS, st.sampled_from([" ", "\n", ", ", " - "]))
def test_words_of_the_source_are_found_however_they_are_parted(
    before: list[str], words: list[str], after: list[str], between: str
) -> None:
    assume(any(each.isalpha() for each in "".join(words)))
    document = _document(between.join((*before, *words, *after)))
    found = SourceText.of(document).find(" ".join(words).upper(), document.whole)
    assert found is not None
    assert found.ratio == 1.0
    quoted = document.piece(found.span).lower().split()
    assert all(word in between.join(quoted) for word in words)


def test_one_letter_off_is_found_and_another_sentence_is_not() -> None:
    text = "Alder AB. Bright light before the night shift. Spring 2008. Oak C. Naps."
    document = _document(text)
    grounds = SourceText.of(document)
    near = grounds.find("Bright lights before the night shift", document.whole)
    assert near is not None
    assert LEAST <= near.ratio < 1.0
    assert "light before the night shift" in document.piece(near.span)
    others = ("Dark rooms after the day shift", "", "...", text + " and more")
    for other in (*others, "2008", "9", "ring", "al"):
        assert grounds.find(other, document.whole) is None


def test_only_the_span_that_was_asked_about_counts() -> None:
    document = _document("one two three four five")
    grounds = SourceText.of(document)
    half = TextSpan(start=0, end=document.text.index("four"))
    assert grounds.find("two three", half) is not None
    assert grounds.find("four five", half) is None
    assert grounds.find("one", TextSpan(start=3, end=3)) is None


@pytest.mark.parametrize(
    ("doi", "text", "stands"),
    [
        ("10.5555/ab.1", "doi:10.5555/AB.1.", True),
        ("https://doi.org/10.5555/ab.1", "[DOI: 10.5555/ab.1]", True),
        ("10.5555/ab.1", "10.5555/ab.12", False),
        ("10.5555/ab", "10.5555/ab-2", False),
        ("10.5555/ab.12", "10.5555/\n ab.12", True),
        ("10.5555/ab.12", "10.5555/ ab.12", False),
        ("10.5555/ab.12", "110.5555/ab.12", False),
        ("10.55/ab", "10.55/ab", False),
        ("10.5555/" + "a" * 300, "10.5555/" + "a" * 300, False),
        ("ab.12", "ab.12", False),
        ("", "anything", False),
    ],
)
def test_a_doi_stands_whole_or_not_at_all(doi: str, text: str, stands: bool) -> None:
    assert doi_in(doi, text) is stands


@pytest.mark.parametrize(
    ("pmid", "text", "stands"),
    [
        ("99000001", "PMID: 99000001]", True),
        ("PMID 99000001", "PMID: 99000001]", True),
        ("9900000", "PMID: 99000001]", False),
        ("99000002", "PMID: 99000001]", False),
        ("990000012", "990000012", False),
        ("PMC12", "PMC12", False),
    ],
)
def test_a_pmid_stands_as_a_number_by_itself(
    pmid: str, text: str, stands: bool
) -> None:
    assert pmid_in(pmid, text) is stands


def test_a_year_is_possible_and_stands_in_the_text() -> None:
    assert year_in("2008", "Journal 2008;12", 2024) == 2008
    assert year_in("2009", "Journal 2008;12", 2024) is None
    assert year_in("2030", "Journal 2030;12", 2024) is None
    assert year_in("2030", "Journal 2030;12", None) == 2030
    assert year_in("1799", "Journal 1799", 2024) is None
    assert year_in("200", "200", 2024) is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Main results (12 studies, 80 participants)", 12),
        ("We included twelve randomised controlled trials with", 12),
        ("The review includes 3 RCTs.", 3),
        ("We searched 4 databases.", None),
    ],
)
def test_the_abstracts_count_of_studies_is_read(text: str, count: int | None) -> None:
    assert stated_count(_document(text)) == count


def test_the_year_of_the_review_is_its_own() -> None:
    text = "Cochrane Database of Systematic Reviews 2024, Issue 3"
    assert issued(_document(text)) == 2024
    assert issued(_document("Copyright \u00a9 2019 Someone")) == 2019
    assert issued(_document("Alder 2008")) is None
