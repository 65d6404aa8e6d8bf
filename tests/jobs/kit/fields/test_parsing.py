"""Replies: values of every type, not reported, unparsed, and their quotes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.fields.parsing import ParsedReply, read_check, read_fields
from jobs.kit.fields.prompts import reply_schema
from jobs.kit.fields.spec import FieldSpec
from runner.messages import ParseFailure, Reply

PARTS = {"name": {"ask": "?"}, "size": {"ask": "?", "type": "integer"}}


def spec(**keys: Any) -> FieldSpec:
    return FieldSpec.model_validate({"ask": "?", **keys})


def value(raw: object, **keys: Any) -> tuple[object, str]:
    reply = read_fields(Reply(text=json.dumps({"x": raw})), {"x": spec(**keys)})
    assert isinstance(reply, ParsedReply)
    return reply.fields["x"].value, reply.fields["x"].failure


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        ("string", " a ", "a"),
        ("string", "none", "none"),
        ("integer", 214, 214),
        ("integer", "1,204", 1204),
        ("integer", "12.0", 12),
        ("number", "1e-3", 0.001),
        ("number", 5, 5.0),
        ("boolean", "Yes.", True),
        ("boolean", False, False),
        ("date", "2021", "2021"),
        ("date", "2021-05", "2021-05"),
        ("date", "2021-05-17T00:00", "2021-05-17"),
        ("list", ["a", "b", "a"], ("a", "b")),
        ("list", [], None),
        ("list", None, None),
        ("integer", None, None),
        ("integer", "not reported", None),
        ("boolean", "unknown", None),
    ],
)
def test_a_value_is_read_by_its_type(kind: str, raw: object, expected: object) -> None:
    assert value(raw, type=kind) == (expected, "")


@pytest.mark.parametrize(
    ("kind", "raw", "failure"),
    [
        ("string", ["a"], "not_a_text"),
        ("string", True, "not_a_text"),
        ("integer", 2.5, "not_an_integer"),
        ("integer", "about 20", "not_an_integer"),
        ("number", "20 mg", "not_a_number"),
        ("number", "NaN", "not_a_number"),
        ("boolean", "partly", "not_a_boolean"),
        ("date", "2021-13", "not_a_date"),
        ("date", "May 2021", "not_a_date"),
        ("list", "a, b", "not_a_list"),
    ],
)
def test_what_does_not_fit_is_unparsed(kind: str, raw: object, failure: str) -> None:
    assert value(raw, type=kind) == (None, failure)


def test_options_come_before_words_for_null() -> None:
    options = {"type": "one-of", "options": ["RCT", "Non-RCT", "unknown"]}
    assert value("non rct", **options) == ("Non-RCT", "")
    assert value("unknown", **options) == ("unknown", "")
    assert value("n/a", **options) == (None, "")
    assert value("cohort", **options) == (None, "not_an_option")


def test_null_is_unparsed_where_a_value_is_required() -> None:
    assert value(None, type="integer", required=True) == (None, "required")
    assert value([], type="list", required=True) == (None, "required")
    reply = read_fields(Reply(text='{"y": 1}'), {"x": spec(), "y": spec()})
    assert isinstance(reply, ParsedReply)
    assert reply.fields["x"].failure == "missing"


def test_units_are_converted_or_reported() -> None:
    dose = {"type": "number", "unit": "mg"}
    assert value({"value": 5, "unit": "mg"}, **dose) == (5.0, "")
    assert value("5 mg", **dose) == (5.0, "")
    assert value({"value": 5, "unit": "parsec"}, **dose) == (None, "other_unit")
    pytest.importorskip("pint")
    assert value({"value": 0.3, "unit": "g"}, **dose) == (300.0, "")
    # symbols keep their case
    assert value({"value": 1, "unit": "Mg"}, **dose) == (1e9, "")


def test_objects_have_parts() -> None:
    arm = {"name": "A", "size": "12"}
    assert value(arm, type="object", fields=PARTS) == ({"name": "A", "size": 12}, "")
    assert value([arm], type="list of objects", fields=PARTS) == (
        ({"name": "A", "size": 12},),
        "",
    )
    assert value("A", type="object", fields=PARTS) == (None, "not_an_object")
    assert value({"size": "x"}, type="object", fields=PARTS)[1] == "not_an_integer"


def test_quotes_stay_with_their_values() -> None:
    text = json.dumps(
        {
            "n": {"quote": "12 men", "value": 12},
            "m": 7,
            "events": [{"quote": "q1", "value": "a"}, {"quote": "q2", "value": "b"}],
        }
    )
    specs = {
        "n": spec(type="integer", quote=True),
        "m": spec(type="integer", quote=True),
        "events": spec(type="list", quote=True),
    }
    reply = read_fields(Reply(text=f"Draft: {{}}\n```json\n{text}\n```"), specs)
    assert isinstance(reply, ParsedReply)
    assert [q.text for q in reply.fields["n"].quotes] == ["12 men"]
    assert reply.fields["m"].value == 7
    assert reply.fields["m"].is_grounded is None
    assert [q.text for q in reply.fields["events"].quotes] == ["q1", "q2"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(text=""), "empty"),
        (Reply(text="I cannot say."), "no_json"),
        (Reply(text='{"y": 1}'), "no_field"),
        (Reply(text='{"x": 1', finish_reason="length"), "truncated"),
        (Reply(text="{}", finish_reason="refusal"), "refusal"),
    ],
)
def test_a_reply_without_fields_has_a_reason(reply: Reply, reason: str) -> None:
    assert read_fields(reply, {"x": spec()}) == ParseFailure(reason=reason)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["value", "quote", "unit", "name", "size"]), inner
        )
    ),
    max_leaves=6,
)
SPECS = {
    "a": spec(),
    "b": spec(type="integer", quote=True, unit="mg"),
    "c": spec(type="boolean", required=True),
    "d": spec(type="date", quote=True),
    "e": spec(type="one-of", options=["x", "y"]),
    "f": spec(type="list", of="number", quote=True),
    "g": spec(type="object", fields=PARTS, quote=True),
    "h": spec(type="list of objects", fields=PARTS),
}


@given(st.dictionaries(st.sampled_from(sorted(SPECS)), JSON, min_size=1))
def test_no_reply_makes_the_parser_raise(content: dict[str, Any]) -> None:
    parsed = read_fields(Reply(text=json.dumps(content)), SPECS)
    assert isinstance(parsed, ParsedReply)
    assert list(parsed.fields) == list(SPECS)
    for answer in parsed.fields.values():
        assert not (answer.is_answered and answer.is_unparsed)
        assert answer.is_answered or not answer.quotes


def test_the_schema_is_strict_and_in_declared_order() -> None:
    schema = json.loads(reply_schema(SPECS, explain=True).json)
    assert list(schema["properties"]) == ["reasoning", *SPECS]
    assert schema["required"] == list(schema["properties"])
    assert list(schema["properties"]["b"]["properties"]) == ["quote", "value", "unit"]
    assert schema["properties"]["c"] == {"type": "boolean"}
    assert schema["properties"]["h"]["type"] == "array"


def test_a_check_has_a_verdict_for_each_field() -> None:
    text = '{"a": {"reason": "r", "verdict": "Not supported"}, "b": "supported"}'
    check = read_check(Reply(text=text), ("a", "b", "c"))
    assert not isinstance(check, ParseFailure)
    verdicts = {name: verdict.verdict for name, verdict in check.verdicts.items()}
    assert verdicts == {"a": "not_supported", "b": "supported"}
    failure = read_check(Reply(text='{"a": "maybe"}'), ("a",))
    assert failure == ParseFailure(reason="no_verdict")
