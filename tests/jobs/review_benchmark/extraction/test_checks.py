"""A text stands in the source or it does not; identifiers do to the character.

What models read is held against the text: kept, corrected, or dropped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.kit.inputs.documents import Document, TextSpan
from jobs.review_benchmark.data import QuestionParts, TruthPaper
from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.extraction.checks import (
    LEAST,
    SourceText,
    checked_record,
    doi_in,
    issue_year,
    other_titles,
    pmid_in,
    stated_count,
    year_in,
)
from jobs.review_benchmark.extraction.parsing import Reference, ReviewMeta
from jobs.review_benchmark.extraction.references import (
    CheckedReferences,
    ReferenceChecker,
)
from jobs.review_benchmark.extraction.review_text import entries, sections
from jobs.review_benchmark.matching import MatchingRules

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
    assert issue_year(_document(text)) == 2024
    assert issue_year(_document("Copyright \u00a9 2019 Someone")) == 2019
    assert issue_year(_document("Alder 2008")) is None


TEXT = """\
Alder 2008 {published data only}
Alder AB. Bright light before the night shift. Journal 2008;12:1-9. [DOI:
10.5555/a.1; PMID: 99000001]
Alder AB. Bright light before the night shift. Later Journal 2010;1:3. [PMID: 99000002]
Birch 2011 {published data only}
Birch CD. Lamps in a paper mill. Journal 2011;4:22-31. [DOI: 10.5555/b.2]
"""
ALDER = Reference(
    ref_id="Alder 2008",
    title="Bright light before the night shift",
    year="2008",
    doi="10.5555/A.1",
    pmid="99000001",
    quote="Alder AB. Bright light before the night shift. Journal 2008;12:1-9.",
)
LATER = replace(
    ALDER,
    year="2010",
    doi="",
    pmid="99000002",
    quote="Alder AB. Bright light before the night shift. Later Journal 2010",
)
BIRCH = Reference(
    ref_id="Birch 2011",
    title="Lamps in a paper mill",
    year="2011",
    doi="10.5555/b.2",
    quote="Birch CD. Lamps in a paper mill.",
)


def _checked(*references: Reference, text: str = TEXT) -> CheckedReferences:
    document = Document(name="a.txt", text=text, starts=(0, text.index("Birch 2011")))
    checker = ReferenceChecker(
        document=document, grounds=SourceText.of(document), latest=2024
    )
    return checker.check(
        [(document.whole, references)], entries(document, document.whole)
    )


def test_what_stands_in_the_text_is_kept_with_its_page_and_quote() -> None:
    found = _checked(ALDER, LATER, BIRCH)
    assert not found.flags
    assert [own.paper.pmid for own in found.references] == ["99000001", "99000002", ""]
    assert [own.paper.doi for own in found.references] == [
        "10.5555/a.1",
        "",
        "10.5555/b.2",
    ]
    assert [own.page for own in found.references] == [1, 1, 2]
    assert found.references[2].quote == "Birch CD. Lamps in a paper mill"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"doi": "10.5555/a.12"}, "doi_removed"),
        ({"doi": "10.5555/b.2"}, "doi_removed"),  # another study's
        ({"doi": "none"}, "doi_removed"),
        ({"pmid": "99000003"}, "pmid_removed"),
        ({"year": "2007"}, "year_removed"),
        ({"year": "about 2008"}, "year_removed"),
        ({"ref_id": "Birch 2011"}, "id_removed"),
    ],
)
def test_an_invented_identifier_is_removed_and_never_guessed(
    changed: dict[str, str], code: str
) -> None:
    found = _checked(replace(ALDER, **changed), LATER, BIRCH)
    assert [flag.code for flag in found.flags] == [code]
    paper = found.references[0].paper
    (name,) = changed
    assert getattr(paper, name) in {"", None}
    assert paper.title == ALDER.title


@pytest.mark.parametrize(
    "changed",
    [
        {"quote": "Oak UV. Morning light in winter. Journal 2016."},
        {"quote": ""},
        {"title": "Evening naps of air traffic controllers"},
        # the title of another study is not this one's
        {"title": "Lamps in a paper mill"},
    ],
)
def test_what_does_not_stand_in_the_text_is_dropped_and_its_entry_is_unread(
    changed: dict[str, str],
) -> None:
    found = _checked(replace(ALDER, **changed), BIRCH)
    assert [flag.code for flag in found.flags] == ["not_grounded", "unread"]
    assert found.flags[1].where.startswith("Alder 2008")
    assert [own.paper.ref_id for own in found.references] == ["Birch 2011"]
    assert found.dropped[0].reference.ref_id == "Alder 2008"


def test_a_quote_of_the_whole_list_lends_nobody_the_identifiers_of_another() -> None:
    found = _checked(replace(BIRCH, quote=TEXT, doi="10.5555/a.1", pmid="99000001"))
    codes = [flag.code for flag in found.flags]
    assert codes == ["doi_removed", "pmid_removed", "unread"]


def test_a_reference_without_title_needs_an_identifier() -> None:
    untitled = replace(BIRCH, title="")
    assert not _checked(ALDER, untitled).flags
    found = _checked(ALDER, replace(untitled, doi=""))
    assert found.flags[0].code == "no_title"


def test_references_that_chunks_share_are_one_and_blanks_are_filled() -> None:
    found = _checked(
        replace(ALDER, doi=""), BIRCH, replace(ALDER, pmid=""), ALDER, LATER
    )
    assert found.repeated == 2
    assert [own.paper.pmid for own in found.references] == ["99000001", "99000002", ""]
    assert found.references[0].paper.doi == "10.5555/a.1"


def test_a_paper_that_the_review_lists_under_two_studies_is_listed_twice() -> None:
    again = TEXT[TEXT.index("Birch 2011") :].replace("Birch 2011", "Birch 2011b")
    second = replace(BIRCH, ref_id="Birch 2011b")
    found = _checked(ALDER, BIRCH, second, second, text=TEXT + again)
    assert not found.flags
    assert [own.paper.ref_id for own in found.references] == [
        "Alder 2008",
        "Birch 2011",
        "Birch 2011b",
    ]
    assert found.repeated == 1
    same = _checked(ALDER, BIRCH, BIRCH, text=TEXT + TEXT[TEXT.index("Birch 2011") :])
    assert not same.flags
    assert len(same.references) == 3


def test_a_record_keeps_what_stands_in_the_text_and_its_question_falls_back() -> None:
    text = (
        "Evening light (CD900001)\nCochrane Database of Systematic Reviews 2024\n"
        "Objectives\nTo assess evening light for sleep.\nMethods\n"
        "Adults who work at night. Trials from 1990 to 2020."
    )
    document = Document(name="a.txt", text=text, starts=(0,))
    found = checked_record(
        ReviewMeta(
            id="CD900002",
            title="Evening light",
            question="Does evening light help people who cannot sleep at all?",
            pico=QuestionParts(
                population="Adults who work at night", outcome="Happiness"
            ),
            inclusion=("Trials from 1990 to 2020", "Only double-blind ones"),
            date_range=(1990, 2020),
        ),
        document,
        SourceText.of(document),
        sections(document),
    )
    assert found.meta == ReviewMeta(
        id="CD900001",
        title="Evening light",
        question="To assess evening light for sleep.",
        pico=QuestionParts(population="Adults who work at night"),
        inclusion=("Trials from 1990 to 2020",),
        date_range=(1990, 2020),
    )
    assert [flag.where for flag in found.flags] == [
        "research_question",
        "cochrane_id",
        "pico.outcome",
        "inclusion",
    ]
    years = checked_record(
        ReviewMeta(date_range=(1990, 2030)), document, SourceText.of(document), {}
    )
    assert [flag.where for flag in years.flags] == ["date_range"]


def test_a_pmid_that_the_database_knows_by_another_title_is_flagged() -> None:
    papers = [
        TruthPaper(pmid="1", title="Bright light before the night shift!"),
        TruthPaper(pmid="2", title="Lamps in a paper mill"),
        TruthPaper(pmid="3", title="Not in the database"),
        TruthPaper(title="Without a PMID"),
    ]
    (flag,) = other_titles(papers, _Known(), MatchingRules())
    assert (flag.code, flag.where) == ("pmid_other_title", "Lamps in a paper mill")
    assert flag.detail == "2 is 'Naps of pilots'"


class _Known:
    """Two papers, as a database tells of them."""

    titles: ClassVar = {1: "Bright light before the night shift", 2: "Naps of pilots"}

    def by_pmid(self, pmid: str) -> int | None:
        return int(pmid) if int(pmid) in self.titles else None

    def paper(self, number: int) -> DatabasePaper | None:
        return DatabasePaper(id=number, title=self.titles[number])
