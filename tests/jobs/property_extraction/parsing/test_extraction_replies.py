"""What replies to stage `extract` are read as."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.parsing import (
    MOST_ROWS,
    ParsedExtraction,
    ReportedValue,
    parse_extraction,
)
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
