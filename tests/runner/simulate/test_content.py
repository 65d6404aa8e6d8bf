from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.simulate.model import fitting, plain_text
from runner.simulate.options import Chance

leaves = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 3, "maxLength": 5},
        {"type": "string", "enum": ["a", "b", "c", "d"]},
        {"const": 7},
        {"type": "integer"},
        {"type": "integer", "minimum": -3, "maximum": -1},
        {"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 6},
        {"type": "number"},
        {"type": "number", "minimum": 2, "maximum": 2},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-3},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
    ]
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["n", "value", "reason"])
    return st.one_of(
        st.builds(
            lambda properties: {
                "type": "object",
                "properties": properties,
                "required": sorted(properties),
                "additionalProperties": False,
            },
            st.dictionaries(names, inner),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda items, least, more: {
                "type": "array",
                "items": items,
                "minItems": least,
                "maxItems": least + more,
            },
            inner,
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        st.builds(
            lambda branches: {"anyOf": branches},
            st.lists(inner, min_size=1, max_size=3),
        ),
    )


@given(st.recursive(leaves, grown, max_leaves=8), st.text(), st.integers())
def test_a_value_fits_its_schema_and_comes_out_the_same_again(
    schema: dict[str, Any], text: str, seed: int
) -> None:
    value = fitting(schema, text, Chance(seed))
    jsonschema.validate(value, schema)
    assert fitting(schema, text, Chance(seed)) == value


@given(st.integers())
def test_a_schema_that_refers_to_itself_comes_to_an_end(seed: int) -> None:
    schema = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["next", "children"],
            }
        },
        "$ref": "#/$defs/node",
    }
    jsonschema.validate(fitting(schema, "", Chance(seed)), schema)


def test_strings_are_words_of_the_text_that_hold_a_digit() -> None:
    text = "Carriers of rs9923231 and CYP2C9*3 (p = 0.03), see HLA-B*58:01."
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 4}
    words = {word for n in range(50) for word in fitting(schema, text, Chance(n))}
    assert words == {"rs9923231", "CYP2C9*3", "0.03", "HLA-B*58:01"}


@pytest.mark.parametrize(
    ("text", "word"), [("", "nothing"), ("...", "nothing"), ("plain words", "plain")]
)
def test_a_text_without_digits_still_gives_a_word(text: str, word: str) -> None:
    assert fitting({"type": "string"}, text, Chance(1)) == word


@given(st.text(), st.integers())
def test_plain_text_is_made_of_any_text(text: str, seed: int) -> None:
    assert plain_text(text, Chance(seed)).startswith("The text speaks of ")


QUERY = {
    "type": "object",
    "properties": {
        "all_of": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}},
        },
        "none_of": {"type": "array", "items": {"type": "string"}},
    },
}


@given(st.integers(0, 10_000))
def test_a_query_is_made_of_the_words_of_the_question(seed: int) -> None:
    text = (
        "At most 8 groups. Data stands in <paper-0a1b2c3d>.\n"
        "<review-5da1dc61>\nQuestion: Does walking help those with asthma?\n"
        "</review-5da1dc61>\n\n<search-d453f969>\nQueries: 6\n</search-d453f969>\n"
    )
    schema = {
        "type": "object",
        "properties": {"queries": {"type": "array", "items": {"$ref": "#/$defs/Q"}}},
        "$defs": {"Q": QUERY},
    }
    found = fitting(schema, text, Chance(seed))
    jsonschema.validate(found, schema)
    assert found["queries"]
    for query in found["queries"]:
        # an exclusion of the same words would leave nothing to find
        assert query["none_of"] == []
        assert 1 <= len(query["all_of"]) <= 2
        for group in query["all_of"]:
            assert group
            assert set(group) <= {"walking", "help", "asthma"}
            assert len(set(group)) == len(group)


def test_a_query_without_a_word_of_the_question_has_some_word() -> None:
    assert fitting(QUERY, "8", Chance(1))["all_of"][0] == ["8"]
