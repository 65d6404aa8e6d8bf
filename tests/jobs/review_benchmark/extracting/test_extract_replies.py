"""What replies of an extraction say; nothing a model writes makes a reader fail."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.data import QuestionParts
from jobs.review_benchmark.extraction.parsing import (
    References,
    ReviewMeta,
    SectionPlaces,
    parse_meta,
    parse_places,
    parse_references,
)
from runner.messages import ParseFailure, Reply

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["title", "references", "places", "pico", "section", "begin"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES | st.text())
def test_any_reply_is_read_or_refused_with_a_reason(value: object) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    for parse, kind in (
        (parse_places, SectionPlaces),
        (parse_meta, ReviewMeta),
        (parse_references, References),
    ):
        assert isinstance(parse(Reply(text=text)), kind | ParseFailure)


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("", "stop", "empty"),
        ("I cannot.", "refusal", "refusal"),
        ('{"references": [{"title": "a"', "length", "truncated"),
        ('{"references": "none"}', "stop", "no_references"),
        ("There are none.", "stop", "no_references"),
    ],
)
def test_a_list_that_cannot_be_read_says_why(
    text: str, finish: str, reason: str
) -> None:
    found = parse_references(Reply(text=text, finish_reason=finish))
    assert found == ParseFailure(reason=reason)


def test_references_are_read_from_prose_and_fences_with_numbers_as_written() -> None:
    text = (
        'Here:\n```json\n{"references": [{"title": "One\\n two", "pmid": 99000001, '
        '"year": 2008, "authors": "Alder AB", "doi": null}, "what?"]}\n```'
    )
    found = parse_references(Reply(text=text))
    assert isinstance(found, References)
    (own,) = found.read
    assert (own.title, own.pmid, own.year) == ("One two", "99000001", "2008")
    assert (own.authors, own.doi) == (("Alder AB",), "")
    assert found.unusable == 1


def test_a_record_is_read_and_what_is_no_text_is_empty() -> None:
    value = {
        "cochrane_id": "CD1",
        "title": ["no text"],
        "pico": {"population": "adults", "outcome": ["x"]},
        "inclusion_criteria": ["a", None, " b "],
        "date_range": [2020, 1990],
    }
    assert parse_meta(Reply(text=json.dumps(value))) == ReviewMeta(
        id="CD1", pico=QuestionParts(population="adults"), inclusion=("a", "b")
    )
    assert parse_meta(Reply(text='{"titel": 1}')) == ParseFailure(reason="no_review")


def test_places_are_whole_numbers_of_known_sections_the_first_of_each() -> None:
    value = {
        "places": [
            {"section": "included", "begin": 4, "end": None},
            {"section": "included", "begin": 9, "end": None},
            {"section": "objectives", "begin": 1.5, "end": 2},
            {"section": "weather", "begin": 1, "end": 2},
            "none",
        ]
    }
    found = parse_places(Reply(text=json.dumps(value)))
    assert found == SectionPlaces(lines={"included": (4, None)})
