"""The offline answers, which see nothing but the prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.grounding import GroundingLevel, PaperText, ground
from jobs.property_extraction import plan as asking
from jobs.property_extraction.baseline import (
    baseline,
    choose_target,
    extract_values,
    find_quotes,
    sentences,
    shorten_quote,
    verify_names,
)
from jobs.property_extraction.name_pairs import NamePair
from jobs.property_extraction.parsing import (
    ParsedExtraction,
    ReportedValue,
    parse_choice,
    parse_extraction,
    parse_verdict,
)
from jobs.property_extraction.plan import plan
from runner.messages import ChatRequest, Reply
from tests.jobs.property_extraction.property_runs import dataset, task, verifying

TEXT = (
    "Properties of Lu5Os9Sb4\n\nWe obtain a Debye temperature of 214(3) K from heat "
    "capacity. The upper critical field at 4.2 K is 2.07 T for H // c. Tc = 6.2 K.\n"
    "Fig. 3 shows no unit, and there were 12 samples. It is 3 m wide."
)


def found(text: str, *names: str) -> list[dict[str, Any]]:
    return extract_values(text, names)["properties"]


def test_a_number_with_a_unit_is_a_value_of_the_nearest_words_before_it() -> None:
    values = [(each["property"], each["value"], each["unit"]) for each in found(TEXT)]
    assert values == [
        ("Debye temperature", "214(3)", "K"),
        ("upper critical field", "2.07", "T"),
        ("Tc", "6.2", "K"),
    ]


def test_what_it_holds_at_is_a_condition_unless_nothing_else_is_a_value() -> None:
    (field,) = (each for each in found(TEXT) if each["unit"] == "T")
    assert field["condition"] == "at 4.2 K; for H // c"
    (lone,) = found("The transition at 4.2 K is sharp.")
    assert (lone["property"], lone["condition"]) == ("transition", None)


def test_quotes_are_verbatim_and_no_longer_than_three_hundred_characters() -> None:
    text = f"{'so and ' * 90}the gap is 1.02 meV {'and more ' * 90}."
    (value,) = found(text)
    assert len(value["quote"]) <= 300
    assert "gap is 1.02 meV" in value["quote"]
    for each in (*found(TEXT), value):
        level = ground(PaperText(TEXT + text), each["quote"]).level
        assert level is GroundingLevel.EXACT


def test_a_listed_name_is_the_one_that_shares_most_words_with_the_sentence() -> None:
    names = ("Debye temperature", "upper critical field, H // c", "space group")
    assert [each["property"] for each in found(TEXT, *names)] == [
        *names[:2],
        "other",
    ]
    assert found(TEXT, *names)[2]["label"] == "Tc"


def test_a_sentence_ends_with_its_mark_and_not_with_an_abbreviation() -> None:
    text = "Head\n\nSee Fig. 3 and Smith et al. Next one! (A third.)"
    assert [each.text for each in sentences(text)] == [
        "Head",
        "See Fig. 3 and Smith et al. Next one!",
        "(A third.)",
    ]
    for each in sentences(text):
        assert text.startswith(each.text, each.start)


@given(st.text(alphabet="ab .", max_size=700), st.data())
def test_a_cut_quote_is_a_piece_around_its_place(
    text: str, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(text)))
    quote = shorten_quote(text, place)
    assert len(quote) <= max(300, 0)
    assert quote in text


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("Tc", "critical temperature"),
        ("Debye temperature", "Debye temperature \u0398D"),
        ("upper critical field Hc2(0)", "upper critical field"),
        ("lattice parameter a", "lattice constant a"),
        ("resistivity at RT", "resistivity at 300 K"),
    ],
)
def test_names_with_the_same_words_written_out_are_one(name: str, target: str) -> None:
    assert verify_names(name, target)["is_match"]
    assert verify_names(target, name)["is_match"]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("Tc onset", "Tc zero resistance"),
        ("lattice constant a", "lattice constant c"),
        ("Hc1 at 0 K", "Hc2 at 0 K"),
        ("Hc2 for H // ab-plane", "Hc2 for H // c-axis"),
        ("resistivity at 4.2 K", "resistivity at 300 K"),
        ("resistivity, polycrystal", "resistivity, single crystal"),
        ("Tc", "method of Tc"),
        ("space group", "Debye temperature"),
        ("\u2606", "\u2606"),
    ],
)
def test_names_that_differ_in_what_tells_them_apart_are_two(
    name: str, target: str
) -> None:
    assert not verify_names(name, target)["is_match"]
    assert not verify_names(target, name)["is_match"]


def test_of_several_targets_the_likest_is_chosen_or_none() -> None:
    targets = {"A": "Tc zero", "B": "Tc onset (midpoint)", "C": "Tc onset"}
    assert choose_target("onset Tc", targets)["target"] == "C"
    assert choose_target("space group", targets)["target"] == "none"


def test_a_value_is_quoted_where_it_stands_with_most_words_or_withdrawn() -> None:
    rows = [
        {"id": 1, "property": "upper critical field", "value": "2.07", "unit": "T"},
        {"id": 2, "property": "gap", "value": "2.0", "unit": "meV"},
        {"id": 3, "property": "transition", "value": "4.2", "unit": "K"},
    ]
    first, second, third = find_quotes(TEXT, rows)["rows"]
    assert first["quote"].startswith("The upper critical field")
    assert second == {"id": 2, "quote": None, "withdraw": True}
    assert "4.2 K" in third["quote"]


def replied(request: ChatRequest) -> Reply:
    return Reply(text=baseline(request))


def test_every_prompt_has_an_answer_that_its_parser_reads(tmp_path: Path) -> None:
    for names in ("free", "listed"):
        data = dataset(tmp_path, {"P1": TEXT}, names=names)
        reply = replied(asking.request(data, task(next(iter(plan(data))))))
        read = parse_extraction(reply, partial="fail")
        assert isinstance(read, ParsedExtraction)
        assert len(read.rows) == 3
    again = asking.requote_request(data, TEXT, [ReportedValue(name="x", value="6.2")])
    assert "Tc = 6.2 K" in replied(again).text
    pairs = [
        NamePair(pred_name="energy gap", gt_name=name) for name in ("Tc onset", "gap")
    ]
    data = verifying(*pairs)
    said = [
        parse_verdict(replied(asking.request(data, task(spec)))) for spec in plan(data)
    ]
    assert [getattr(each, "is_match", None) for each in said] == [False, True]
    data = verifying(*pairs, verify="choice")
    (spec,) = plan(data)
    choice = parse_choice(
        replied(asking.request(data, task(spec))), ("Tc onset", "gap")
    )
    assert getattr(choice, "target", None) == 1


@given(st.text(max_size=80))
def test_any_text_and_any_names_have_an_answer(text: str) -> None:
    assert json.dumps(extract_values(text))
    assert json.dumps(extract_values(f"{text} is 3 K {text}", ["a b", text]))
    assert isinstance(verify_names(text, "Tc")["is_match"], bool)
