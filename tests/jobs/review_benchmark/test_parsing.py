"""What a reply plans, scores or concludes: the rules, and that none ever raises."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.data import (
    RATIONALE,
    Conclusion,
    JudgedSimilarity,
    Relevance,
    SearchPlan,
    expression,
)
from jobs.review_benchmark.parsing import (
    parse_conclusion,
    parse_plan,
    parse_score,
    parse_similarity,
)
from jobs.review_benchmark.settings import ENDS
from runner.messages import ParseFailure, Reply


def scored(text: str, finish_reason: str = "stop", *, is_share: bool = False) -> str:
    """The score and the rule, or the reason of the failure."""
    reply = Reply(text=text, finish_reason=finish_reason)
    found = parse_score(reply, ENDS["0-1" if is_share else "1-5"])
    if isinstance(found, ParseFailure):
        return found.reason
    return f"{found.score:g} by {found.rule}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"score": 4, "rationale": "fits"}', "4 by json"),
        ('```json\n{"score": 3.5}\n```', "3.5 by json"),
        ('I say {"score": "4"} at last', "4 by json"),
        ('{"score": "4/5"}', "4 by json"),
        ('{"score": "2 out of 5.0"}', "2 by json"),
        ('{"score": "3,5"}', "3.5 by json"),
        ('{"score": 4e0}', "4 by json"),
        ('{"score": "4/10"}', "bad_score"),
        ('{"score": "80%"}', "bad_score"),
        ('{"score": 0.9}', "bad_score"),
        ('{"score": 5.01}', "bad_score"),
        ('{"score": -4}', "bad_score"),
        ('{"score": 1e999}', "bad_score"),
        ('{"score": NaN}', "bad_score"),
        ('{"score": Infinity}', "bad_score"),
        ('{"score": true}', "bad_score"),
        ('{"score": null}', "bad_score"),
        ('{"score": [4]}', "bad_score"),
        ('{"score": 4} or {"score": 4.0}', "4 by json"),
        ('{"score": 4} or {"score": 2}', "ambiguous"),
        ('{"score": 4} or {"score": "high"}', "ambiguous"),
        ('{"score": 4, "was": {"score": 1}}', "4 by json"),
        ("It fits.\nScore: 4", "4 by line"),
        ("**Relevance score:** 4/5.", "4 by line"),
        ("Score: 4 out of 10", "bad_score"),
        ("Score: -4", "bad_score"),
        ("Score -4", "no_score"),
        ("Score - 4", "4 by line"),
        ("Score: 4\nScore: 2", "ambiguous"),
        ("4", "4 by number"),
        (" 4/5. ", "4 by number"),
        ("4/10", "bad_score"),
        ("-4", "bad_score"),
        ("7", "bad_score"),
        ("1-5", "no_score"),
        ("nan", "no_score"),
        ("four", "no_score"),
        ("I would say 4 or so", "no_score"),
        ("\ufeff \n", "empty"),
    ],
)
def test_a_score_is_read_as_it_was_meant_or_counted(text: str, expected: str) -> None:
    assert scored(text) == expected


def test_a_score_lies_on_the_scale_that_was_asked_for() -> None:
    assert scored('{"score": 0.25}', is_share=True) == "0.25 by json"
    assert scored('{"score": "1/1"}', is_share=True) == "1 by json"
    for other in ('{"score": 4}', '{"score": "0.5/5"}', '{"score": "1/5"}'):
        assert scored(other, is_share=True) == "bad_score"


def test_what_a_cut_reply_had_said_before_the_cut_counts() -> None:
    assert scored('{"score": 4} and', "length") == "4 by json"
    assert scored('{\n"score": 4,\n"rationale": "Wal', "length") == "4 by line"
    for cut in ('{"score": 4', "4", "Score: 4", '{"score": 4, "rationale": "', ""):
        assert scored(cut, "length") == "truncated"
    assert scored('{"score": 4}', "refusal") == scored("", "content_filter")
    assert scored("", "content_filter") == "refusal"


def test_a_rationale_is_kept_short_and_can_be_written() -> None:
    said = json.dumps({"score": 4, "rationale": " \ud83d" + "x" * 1000})
    found = parse_score(Reply(text=said), ENDS["1-5"])
    assert isinstance(found, Relevance)
    assert found.rationale == "?" + "x" * (RATIONALE - 1)


OBJECT = (
    '{"queries": [{"label": "a", "all_of": [["b", "c d"], ["e"]], "none_of": ["f"]}], '
    '"rationale": "r"}'
)


def planned(text: str, most: int = 6, finish_reason: str = "stop") -> list[str] | str:
    """The queries as they are asked, or the reason of the failure."""
    found = parse_plan(Reply(text=text, finish_reason=finish_reason), most)
    if isinstance(found, ParseFailure):
        return found.reason
    return [*map(expression, found.queries), f"dropped {found.dropped}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"So: ```json\n{OBJECT}\n``` Good luck.",
            ['((("b" OR "c d") AND ("e")) NOT ("f"))', "dropped 0"],
        ),
        # a text is a group of one
        (
            '{"queries": [{"all_of": ["b", ["c"]], "none_of": "d"}]}',
            ['((("b") AND ("c")) NOT ("d"))', "dropped 0"],
        ),
        (
            '["\\"once daily\\" oxybutynin", "?"]',
            ['(("once daily") AND ("oxybutynin"))', "dropped 1"],
        ),
        ('{"queries": ["walk*", null, {"all_of": 1}]}', ['(("walk"*))', "dropped 2"]),
        ('{"queries": [{"none_of": ["a"], "all_of": []}]}', "no_terms"),
        ('{"queries": [{"all_of": [["_", "?"]]}]}', "no_terms"),
        ('{"queries": []}', "no_queries"),
        ('{"queries": "walking"}', "no_queries"),
        ("[1, 2]", "no_queries"),
        ("Search for walking.", "no_queries"),
        ("", "empty"),
    ],
)
def test_a_plan_is_read_from_an_object_or_a_list(
    text: str, expected: list[str] | str
) -> None:
    assert planned(text) == expected


def test_too_many_queries_are_cut_and_counted() -> None:
    many = json.dumps({"queries": [{"all_of": [[str(n)]]} for n in range(5)] + [{}]})
    assert planned(many, most=2) == ['(("0"))', '(("1"))', "dropped 4"]
    assert planned(many[:40], finish_reason="length") == "truncated"
    assert planned(many, finish_reason="refusal") == "refusal"


def test_a_conclusion_is_an_object_or_prose() -> None:
    said = (
        '{"conclusion": " It helps. ", "direction": "No difference", "certainty": "LOW"'
    )
    assert parse_conclusion(Reply(text=f"{said}}}")) == Conclusion(
        text="It helps.", direction="no_difference", certainty="low"
    )
    assert parse_conclusion(Reply(text="It helps.")) == Conclusion(text="It helps.")
    for text, finish_reason, reason in (
        (said, "length", "truncated"),
        ("It he", "length", "truncated"),
        (said, "stop", "no_conclusion"),
        ('{"conclusion": ["It helps."]}', "stop", "no_conclusion"),
        ('{"conclusion": " "}', "stop", "no_conclusion"),
        (" ", "stop", "empty"),
    ):
        found = parse_conclusion(Reply(text=text, finish_reason=finish_reason))
        assert isinstance(found, ParseFailure)
        assert found.reason == reason


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('"similarity": 85, "direction": "Same"', (0.85, "same")),
        ('"similarity": "85%", "direction": "OPPOSITE"', (0.85, "opposite")),
        ('"similarity": "85 / 100"', (0.85, "unclear")),
        ('"similarity": 0, "direction": ["same"]', (0.0, "unclear")),
        ('"similarity": 8.5e1, "direction": "different"', (0.85, "different")),
        # a share on a scale of percents stays what it says
        ('"similarity": 0.85', (0.0085, "unclear")),
        ('"similarity": 101', "bad_similarity"),
        ('"similarity": -1', "bad_similarity"),
        ('"similarity": "1_0"', "bad_similarity"),
        ('"similarity": "4/5"', "bad_similarity"),
        ('"similarity": true', "bad_similarity"),
        ('"similarity": NaN', "bad_similarity"),
        ('"similarity": null', "bad_similarity"),
        ('"likeness": 85', "no_similarity"),
        ('"similarity": 85} or {"similarity": 85', (0.85, "unclear")),
        ('"similarity": 85} or {"similarity": 80', "ambiguous"),
        ('"similarity": 85} or {"similarity": 185', "ambiguous"),
    ],
)
def test_a_likeness_is_a_number_to_a_hundred_and_a_direction(
    said: str, expected: tuple[float, str] | str
) -> None:
    found = parse_similarity(Reply(text=f"Well: {{{said}}}"))
    if isinstance(found, ParseFailure):
        assert found.reason == expected
    else:
        assert (pytest.approx(found.similarity), found.direction) == expected
    cut = parse_similarity(Reply(text=f"{{{said}"[:14], finish_reason="length"))
    assert cut == ParseFailure(reason="truncated")


FRAGMENTS = st.sampled_from(
    [
        *('{"score":', '{"queries":', '{"conclusion":', '{"similarity":', '"all_of":'),
        *('"none_of":', '"rationale":', '"direction":', "[", "]", "{", "}", '"', ","),
        *("NaN", "-Infinity", "true", "null", "4", "/5", "out of", "1e999", "-", "."),
        *("score:", "\n", "```", "\\ud83d", "\\", "\0", "*", "walking", " ", "\x85"),
    ]
)


@given(
    st.one_of(st.text(), st.lists(FRAGMENTS, max_size=20).map("".join)),
    st.sampled_from(["stop", "length"]),
)
def test_no_reply_makes_a_parser_raise(text: str, finish_reason: str) -> None:
    reply = Reply(text=text, finish_reason=finish_reason)
    for ends in ENDS.values():
        relevance = parse_score(reply, ends)
        if isinstance(relevance, Relevance):
            assert ends[0] <= relevance.score <= ends[1]
            relevance.rationale.encode()
    plan = parse_plan(reply, 3)
    if isinstance(plan, SearchPlan):
        assert 1 <= len(plan.queries) <= 3
        for query in plan.queries:
            assert expression(query).encode()
    concluded = parse_conclusion(reply)
    if isinstance(concluded, Conclusion):
        assert concluded.text.strip().encode()
    likeness = parse_similarity(reply)
    if isinstance(likeness, JudgedSimilarity):
        assert 0 <= likeness.similarity <= 1


PLAIN = st.none() | st.booleans() | st.floats() | st.text(max_size=8)
LISTED = st.lists(PLAIN, max_size=3)


@given(PLAIN | LISTED | st.fixed_dictionaries({"all_of": LISTED}).map(lambda q: [q]))
def test_any_value_in_an_object_is_read_or_refused(value: object) -> None:
    names = ("score", "queries", "conclusion", "similarity", "rationale", "direction")
    reply = Reply(text=json.dumps(dict.fromkeys(names, value)))
    found = parse_score(reply, ENDS["1-5"])
    is_score = isinstance(value, float) and math.isfinite(value) and 1 <= value <= 5
    if isinstance(value, bool | float) or value is None:
        assert isinstance(found, Relevance) == is_score
    plan = parse_plan(reply, 3)
    if not isinstance(value, list):
        assert isinstance(plan, ParseFailure)
    parse_conclusion(reply)
    parse_similarity(reply)
