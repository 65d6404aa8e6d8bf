"""What replies to stage `extract` are read as.

From the replies about a paper's pieces to its rows. What replies about names are read
as, and those about quotes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.grounding import PaperText
from jobs.property_extraction.parsing import (
    MOST_ROWS,
    ParsedChoice,
    ParsedExtraction,
    ParsedQuotes,
    ParsedVerdict,
    ReportedValue,
    letter,
    parse_choice,
    parse_extraction,
    parse_requote,
    parse_verdict,
)
from jobs.property_extraction.rows import count_mentions, rows_of_paper, ungrounded
from jobs.property_extraction.values.units import is_unit
from runner.messages import ParseFailure, Reply

ROW = {"property": "Tc", "value": "2.8", "unit": "K", "quote": "Tc = 2.8 K"}
FOUND = ReportedValue(name="Tc", value="2.8", unit="K", quote="Tc = 2.8 K")


def read(text: str, finish: str = "stop", *, keep: bool = False) -> Any:
    reply = Reply(text=text, finish_reason=finish)
    return parse_extraction(reply, partial="keep" if keep else "fail")


def rows(*entries: dict[str, Any]) -> tuple[ReportedValue, ...]:
    read_as = read(json.dumps({"properties": entries}))
    assert isinstance(read_as, ParsedExtraction)
    return read_as.rows


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"properties": [ROW]}),
        "Of [12] I say:\n```json\n"
        + json.dumps({"properties": [ROW]})
        + "\n```\nDone.",
        "```\n" + json.dumps([ROW]) + "\n```",
        "The list [1] is " + json.dumps({"properties": [ROW]}) + " as asked.",
        json.dumps({"results": [ROW]}),
        "\ufeff" + json.dumps([ROW], indent=2),
    ],
)
def test_the_object_is_found_in_fences_and_prose_or_a_bare_list_instead(
    text: str,
) -> None:
    assert read(text) == ParsedExtraction(rows=(FOUND,))


@pytest.mark.parametrize(
    "text", ["[]", '{"properties": []}', "Nothing: []", "```\n[]\n```"]
)
def test_an_empty_list_is_a_valid_answer(text: str) -> None:
    assert read(text) == ParsedExtraction(rows=())


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        (" ", "stop", "empty"),
        ("", "length", "truncated"),
        ("I cannot help.", "refusal", "refusal"),
        ("There are values in [3] and [4].", "stop", "no_properties"),
        ('{"properties": null}', "stop", "no_properties"),
        ("{'properties': []}", "stop", "no_properties"),
        ('{"properties": [{"property": "Tc"},]}', "stop", "no_properties"),
        ('{"properties": [{"property": "Tc"', "stop", "truncated"),
        ('See [2]. [{"property": "Tc", "value": [', "stop", "truncated"),
        ("Let me think about", "length", "truncated"),
    ],
)
def test_what_cannot_be_read_is_a_failure_with_its_reason(
    text: str, finish: str, reason: str
) -> None:
    assert read(text, finish).reason == reason


def test_a_reply_cut_short_tells_its_whole_objects_and_gives_them_if_asked_to() -> None:
    text = '{"properties": [' + json.dumps(ROW) + ', {"property": "gap", "val'
    for finish in ("stop", "length"):
        assert read(text, finish) == ParseFailure(
            reason="truncated", detail="1 whole object"
        )
        assert read(text, finish, keep=True) == ParsedExtraction(
            rows=(FOUND,), is_partial=True
        )


def test_a_whole_object_that_the_limit_ends_is_not_cut_and_one_before_prose_is() -> (
    None
):
    text = json.dumps({"properties": [ROW]})
    assert read(text, "length") == ParsedExtraction(rows=(FOUND,))
    assert read(f"{text} and then there is", "length").reason == "truncated"


def test_numbers_keep_their_digits_and_true_is_a_word() -> None:
    text = (
        '{"properties": [{"property": "a", "value": 2.80}, {"property": "b", '
        '"value": 1e-5}, {"property": "c", "value": 00.5}]}'
    )
    assert read(text).reason == "no_properties"
    assert read(text.replace("00.5", "true")).rows == (
        ReportedValue(name="a", value="2.80"),
        ReportedValue(name="b", value="1e-5"),
        ReportedValue(name="c", value="true"),
    )


def test_a_list_of_values_is_a_row_each_and_fields_of_a_condition_are_joined() -> None:
    assert rows(
        {
            "property": " gap ",
            "value": ["1", 2, None, {"a": 1}],
            "condition": {"T": "4 K", "p": None, "B": 2.5, "deep": {"x": [1]}},
            "material": ["A", "B"],
        }
    ) == tuple(
        ReportedValue(
            name="gap", value=value, condition="T=4 K; B=2.5", material="A; B"
        )
        for value in ("1", "2")
    )


def test_entries_without_a_name_or_a_value_are_counted_and_not_kept() -> None:
    found = read(
        json.dumps(
            [
                ROW,
                {"property": "x", "value": None},
                {"value": "3"},
                {"property": "y"},
                {"property": "z", "value": " "},
                {"property": "z", "value": []},
            ]
        )
    )
    assert found == ParsedExtraction(rows=(FOUND,), dropped=5)


def test_a_property_that_is_not_listed_has_its_label_for_a_name() -> None:
    assert [
        row.name
        for row in rows(
            {"property": "other", "label": "kink", "value": "1"},
            {"property": "Other", "label": None, "value": "2"},
            {"property": "gap", "label": "kink", "value": "3"},
        )
    ] == ["kink", "Other", "gap"]


@pytest.mark.parametrize(
    ("given", "value", "unit"),
    [
        ("2.8 K", "2.8", "K"),
        ("15kOe", "15", "kOe"),
        ("2.80(5) mJ/mol K2", "2.80(5)", "mJ/mol K2"),
        ("5 \u00d7 10^19 cm^-3", "5 \u00d7 10^19", "cm^-3"),
        ("3.1 \u00b1 0.2 \u00b5\u03a9 cm", "3.1 \u00b1 0.2", "\u00b5\u03a9 cm"),
        ("10-20 K", "10-20", "K"),
        ("below 4.2 K", "below 4.2", "K"),
        ("12%", "12", "%"),
        # these are words
        ("3D", "3D", ""),
        ("6H", "6H", ""),
        ("2 phases", "2 phases", ""),
        ("P63/mmc", "P63/mmc", ""),
        ("186 (P6)", "186 (P6)", ""),
        ("5 -", "5 -", ""),
        ("well above 10 K", "well above 10 K", ""),
        ("Th7Fe3", "Th7Fe3", ""),
    ],
)
def test_a_unit_at_the_end_of_a_value_is_parted_from_it(
    given: str, value: str, unit: str
) -> None:
    assert rows({"property": "x", "value": given, "unit": ""}) == (
        ReportedValue(name="x", value=value, unit=unit),
    )
    stated = rows({"property": "x", "value": given, "unit": "T"})
    assert stated == (ReportedValue(name="x", value=given, unit="T"),)


def test_no_more_rows_are_kept_than_two_thousand_and_the_others_are_counted() -> None:
    found = read(json.dumps([{"property": "x", "value": [1] * (MOST_ROWS + 7)}]))
    assert len(found.rows) == MOST_ROWS
    assert found.cut == 7


@pytest.mark.parametrize(
    "text", ["-", "none", "", "x", "single crystal", "T K m" * 100]
)
def test_what_is_no_unit_is_none(text: str) -> None:
    assert not is_unit(text)


def test_text_that_utf8_cannot_write_is_replaced() -> None:
    (row,) = rows({"property": "T\ud83dc", "value": "1"})
    assert row.name == "T?c"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["properties", "property", "value", "unit", "quote", "label"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.text(max_size=80) | JSON.map(json.dumps), st.integers(0, 200), st.booleans())
def test_no_reply_and_no_cut_of_one_ever_raises(
    text: str, end: int, keep: bool
) -> None:
    for finish in ("stop", "length", "refusal"):
        read_as = read(text[:end], finish, keep=keep)
        assert isinstance(read_as, ParsedExtraction | ParseFailure)


@pytest.mark.parametrize(
    "text", ["[" * 50_000, '{"properties":' * 50_000, "{" * 50_000]
)
def test_brackets_without_end_neither_raise_nor_take_long(text: str) -> None:
    assert read(text).reason in {"truncated", "no_properties"}


PAPER = PaperText("The gap is 1.02 meV.\n\nTc = 2.8 K was found.")
GAP = ReportedValue(name="gap", value="1.02", unit="meV", quote="gap is 1.02 meV")
TC = ReportedValue(name="Tc", value="2.8", unit="K", quote="Tc is 2,800 mK in total")
MUTE = ReportedValue(name="Tc", value="3")


def test_rows_equal_in_all_fields_are_one_and_those_of_an_overlap_count_once() -> None:
    first = ParsedExtraction(rows=(GAP, TC, GAP))
    second = ParsedExtraction(rows=(GAP, MUTE))
    assert count_mentions([first, second]) == {GAP: 2, TC: 1, MUTE: 1}
    other = replace(GAP, quote="another")
    assert count_mentions([ParsedExtraction(rows=(GAP, other))]) == {GAP: 1, other: 1}


def test_rows_are_numbered_over_all_papers() -> None:
    found = rows_of_paper("P", [ParsedExtraction(rows=(GAP, TC, GAP))], first=7)
    assert [(row.row, row.name, row.mentions, row.flag) for row in found] == [
        (7, "gap", 2, ""),
        (8, "Tc", 1, ""),
    ]


def test_missing_and_absent_quotes_are_asked_for_again() -> None:
    assert ungrounded(PAPER, (GAP, TC, MUTE)) == (TC, MUTE)


def test_a_second_look_gives_a_quote_or_a_flag_and_drops_nothing() -> None:
    again = replace(TC, value="2.9")
    found = rows_of_paper(
        "P",
        [ParsedExtraction(rows=(GAP, TC, MUTE, again))],
        requote_rows=(TC, MUTE, again),
        requoted=ParsedQuotes(
            quotes={1: "Tc = 2.8 K", 3: "Tc is invented at 2.9 K here"},
            withdrawn=frozenset({2}),
        ),
        paper=PAPER,
    )
    assert [(row.value, row.quote, row.flag) for row in found] == [
        ("1.02", GAP.quote, ""),
        ("2.8", "Tc = 2.8 K", ""),
        ("3", "", "withdrawn"),
        ("2.9", TC.quote, "absent"),
    ]


def test_a_row_that_the_second_reply_passes_over_is_absent() -> None:
    (row,) = rows_of_paper(
        "P",
        [ParsedExtraction(rows=(MUTE,))],
        requote_rows=(MUTE,),
        requoted=ParsedQuotes(quotes={}),
        paper=PAPER,
    )
    assert row.flag == "absent"


TARGETS = ("Tc onset", "Tc zero", "B")


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ('{"is_match": true, "reason": "same"}', True),
        ('{"is_match": "false", "reason": "same"}', False),
        ('{"is_match": "Yes.", "reason": "same"}', True),
        ('I say ```json\n{"is_match": "NO", "reason": "same"}\n``` and no more', False),
        ('{"is_match": true} {"is_match": "true", "reason": "same"}', True),
    ],
)
def test_a_verdict_is_a_truth_value_or_its_word(text: str, is_match: bool) -> None:
    assert parse_verdict(Reply(text=text)) == ParsedVerdict(
        is_match=is_match, reason="same"
    )


@pytest.mark.parametrize(
    ("text", "is_match"), [("Yes, they are.", True), ("**False**", False)]
)
def test_a_word_alone_is_a_verdict_too(text: str, is_match: bool) -> None:
    assert parse_verdict(Reply(text=text)) == ParsedVerdict(is_match=is_match)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("true and false", "ambiguous"),
        ('{"is_match": true} or {"is_match": false}', "ambiguous"),
        ('{"is_match": true} or {"is_match": "perhaps"}', "ambiguous"),
        ('{"is_match": "perhaps"}', "bad_verdict"),
        ('{"is_match": 1}', "bad_verdict"),
        ('{"is_match": null}', "bad_verdict"),
        ("There is no difference between them.", "no_verdict"),
        ("It is not true that they are one.", "no_verdict"),
        ("This isn\u2019t false.", "no_verdict"),
        ("The two are alike.", "no_verdict"),
    ],
)
def test_a_reply_that_says_both_or_nothing_is_a_failure_and_never_a_no(
    text: str, reason: str
) -> None:
    found = parse_verdict(Reply(text=text))
    assert isinstance(found, ParseFailure)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ('{"target": "A", "reason": "r"}', 0),
        ('{"target": "(b)", "reason": "r"}', 1),
        ('{"target": "Tc zero", "reason": "r"}', 1),
        # a letter before a name that is one
        ('{"target": "B", "reason": "r"}', 1),
        ('{"target": "none", "reason": "r"}', None),
        ('{"target": null, "reason": "r"}', None),
    ],
)
def test_a_choice_is_a_letter_a_name_or_none(text: str, target: int | None) -> None:
    assert parse_choice(Reply(text=text), TARGETS) == ParsedChoice(
        target=target, reason="r"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"target": "D"}', "bad_target"),
        ('{"target": ""}', "bad_target"),
        ('{"target": "A"} {"target": "B"}', "ambiguous"),
        ('{"answer": "A"}', "no_target"),
        ("Either A or B.", "no_target"),
    ],
)
def test_a_choice_of_two_or_of_nothing_offered_is_a_failure(
    text: str, reason: str
) -> None:
    found = parse_choice(Reply(text=text), TARGETS)
    assert isinstance(found, ParseFailure)
    assert found.reason == reason


def test_letters_go_on_after_z() -> None:
    assert [letter(place) for place in (0, 25, 26, 27, 52, 702)] == [
        *("A", "Z", "AA", "AB", "BA", "AAA")
    ]


def test_rows_get_quotes_or_are_withdrawn_and_the_first_entry_counts() -> None:
    text = json.dumps(
        {
            "rows": [
                {"id": 1, "quote": "at 3 K", "withdraw": False},
                {"id": "2", "quote": None, "withdraw": "true"},
                {"id": 1, "quote": "other", "withdraw": True},
                {"id": 3, "quote": "", "withdraw": "no"},
                {"id": None, "quote": "lost"},
                "text",
            ]
        }
    )
    found = ParsedQuotes(quotes={1: "at 3 K"}, withdrawn=frozenset({2}))
    assert parse_requote(Reply(text=text)) == found
    assert parse_requote(Reply(text=text[9:-1].replace(', "text"', ""))) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty"), ("none", "no_rows"), ('{"rows": 3}', "no_rows")],
)
def test_a_reply_without_rows_is_a_failure(text: str, reason: str) -> None:
    found = parse_requote(Reply(text=text))
    assert isinstance(found, ParseFailure)
    assert found.reason == reason


@given(st.text(max_size=60) | st.lists(st.text(max_size=5)).map(json.dumps))
def test_no_reply_about_names_or_quotes_raises(text: str) -> None:
    for finish in ("stop", "length"):
        reply = Reply(text=text, finish_reason=finish)
        assert parse_verdict(reply) is not None
        assert parse_choice(reply, TARGETS) is not None
        assert parse_requote(reply) is not None
