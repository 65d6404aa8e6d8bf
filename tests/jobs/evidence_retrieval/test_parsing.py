"""What replies say of a criterion: a case a rule, and no text that raises.

Orders, vectors and scores in replies: a case a rule, and no reply that raises.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.parsing import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
    parse_assess,
    parse_assessments,
    parse_rerank,
    parse_scores,
    parse_vectors,
)
from runner.messages import RankedDocument, Ranking, Reply, Vectors
from tests.jobs.evidence_retrieval.asked import reason

N = 5


def read(text: str, finish_reason: str = "stop") -> Any:
    return parse_assess(Reply(text=text, finish_reason=finish_reason), N)


def stated(probability: str, sentences: str = "[]") -> Any:
    return read(f'{{"evidence_probability": {probability}, "sentences": {sentences}}}')


def relevance(sentences: str, probability: str = "90") -> Mapping[int, int]:
    found = stated(probability, sentences)
    assert isinstance(found, Assessment)
    return found.relevance


ANSWER = '{"evidence_probability": 80, "sentences": [{"n": 2, "relevance": 70}]}'
OTHER = '{"evidence_probability": 1, "sentences": []}'


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"\ufeff\n {ANSWER} \n",
        f"Sure.\n```json\n{ANSWER}\n```\nDone.",
        f'In prose: {{"why": "a \\" and a }} in it", {ANSWER[1:]} as asked.',
        f"{{not json {ANSWER}}}",
        f'{{"reply": {ANSWER}}}',
        f'{{"other": 1}} {ANSWER} {OTHER}',
        f"{OTHER} is the form:\n```\n{ANSWER}\n```",
        f"```\n{OTHER[:20]}\n```\n{ANSWER}",
        ANSWER.replace("80", '"80%"').replace("2", '"S2"').replace("70", '"70"'),
        "Evidence_probability aside.\nProbability: 80%\nSentences: 2 (70)",
        "- **probability:** 80\n- **EVIDENCE:** [2] (70).",
    ],
)
def test_the_answer_is_found_wherever_it_stands(text: str) -> None:
    assert read(text) == Assessment(probability=0.8, relevance={1: 70})


def test_a_whole_object_wins_over_a_block_inside_one_of_its_texts() -> None:
    inner = '```\n{"evidence_probability": 1, "sentences": []}\n```'
    whole = {"evidence_probability": 0, "sentences": [], "note": inner}
    assert read(json.dumps(whole)).probability == 0


@pytest.mark.parametrize(
    ("written", "probability", "is_guessed"),
    [
        ("85", 0.85, False),
        ('"85"', 0.85, False),
        ('"85%"', 0.85, False),
        ('" 85 % "', 0.85, False),
        ('"0.5%"', 0.005, False),
        ('"85.5"', 0.855, False),
        ("85.0", 0.85, False),
        ("0", 0.0, False),
        ("0.0", 0.0, False),
        ("100", 1.0, False),
        ("1", 0.01, False),
        ('"1"', 0.01, False),
        ("1.0", 1.0, True),
        ('"1.0"', 1.0, True),
        ("0.85", 0.85, True),
        ('"0,85"', 0.85, True),
        ("8.5e-1", 0.85, True),
    ],
)
def test_a_probability_is_percent_unless_it_can_only_be_a_fraction(
    written: str, probability: float, is_guessed: bool
) -> None:
    found = stated(written)
    assert found.probability == pytest.approx(probability, abs=1e-15)
    assert found.noted.get("scale_guessed", 0) == is_guessed


@pytest.mark.parametrize(
    ("written", "failure"),
    [
        *((each, "probability_out_of_range") for each in ("true", "false", "NaN")),
        *((each, "probability_out_of_range") for each in ("101", "-1", "1e9999")),
        *((each, "probability_out_of_range") for each in ("Infinity", '"100.5"')),
        *((each, "probability_out_of_range") for each in ('"high"', "[80]", "{}")),
        ("null", "no_probability"),
        ('""', "no_probability"),
    ],
)
def test_a_probability_that_is_none(written: str, failure: str) -> None:
    assert reason(stated(written)) == failure


def test_sentences_without_a_probability() -> None:
    assert reason(read('{"sentences": [1]}')) == "no_probability"


@pytest.mark.parametrize("text", ["", "No evidence.", "[]", "probability: 80", "{}"])
def test_a_reply_without_an_answer(text: str) -> None:
    assert reason(read(text)) == "no_json"


def test_both_lines_are_needed_where_there_is_no_object() -> None:
    assert reason(read("Probability: 80\nSentences:")) == "no_json"
    assert read("Probability: 2 %\nSentences: none").relevance == {}
    assert read("probability: 80\nevidence: 3 (80), 5").relevance == {2: 80, 4: 79}


def test_a_cut_reply_is_not_repaired() -> None:
    cut = '{"evidence_probability": 80, "sentences": [{"n": 1, "relevance": 9'
    assert reason(read(cut, "length")) == "truncated"
    assert reason(read("probability: 80\nsentences: 3", "length")) == "truncated"
    whole = '{"evidence_probability": 0, "sentences": []} and the'
    assert read(whole, "length").probability == 0


@pytest.mark.parametrize(
    ("sentences", "found"),
    [
        ("[3, 5]", {2: 100, 4: 99}),
        ("[[3]]", {2: 100}),
        ('["[3]", "S5", "sentence 1"]', {2: 100, 4: 99, 0: 98}),
        ('[{"n": "[3]", "relevance": 60}, 5]', {2: 60, 4: 59}),
        ('[{"n": 3}]', {2: 100}),
        ('[{"n": 3, "relevance": 40}, {"n": 3, "relevance": 60}, 3]', {2: 60}),
        ('[{"n": 3, "relevance": 79.5}]', {2: 80}),
        ('"3 (80), 5"', {2: 80, 4: 79}),
        ('"none"', {}),
    ],
)
def test_sentences_are_listed_in_several_ways(
    sentences: str, found: dict[int, int]
) -> None:
    assert relevance(sentences) == found


@pytest.mark.parametrize(
    ("sentences", "noted"),
    [
        ("[0]", {"unknown_sentence": 1}),
        ("[99, 6]", {"unknown_sentence": 2}),
        ("[-3]", {"unknown_sentence": 1}),
        ("[true, null, 2.5]", {"unknown_sentence": 3}),
        ('["3 and 4", "three"]', {"unknown_sentence": 2}),
        ('[{"relevance": 50}]', {"unknown_sentence": 1}),
        (f"[{'9' * 5000}]", {"unknown_sentence": 1}),
        ("null", {"no_list": 1}),
        ("{}", {"no_list": 1}),
    ],
)
def test_what_names_no_sentence_is_dropped_and_counted(
    sentences: str, noted: dict[str, int]
) -> None:
    found = stated("10", sentences)
    assert (found.relevance, found.noted) == ({}, noted)


def test_relevance_is_clipped_and_counted() -> None:
    listed = '[{"n": 1, "relevance": 140}, {"n": 2, "relevance": -3}, '
    found = stated("90", listed + '{"n": 3, "relevance": "high"}]')
    assert found.relevance == {0: 100, 1: 0, 2: 1}
    assert found.noted == {"relevance_clipped": 2, "relevance_unread": 1}


def test_a_missing_list_is_empty_and_counted() -> None:
    assert read('{"evidence_probability": 3}').noted == {"no_list": 1}


def test_probability_and_list_that_contradict_each_other_are_kept_and_counted() -> None:
    assert stated("49", "[1]").noted == {"inconsistent": 1}
    assert stated("50", "[]").noted == {"inconsistent": 1}
    assert stated("50", "[1]").noted == stated("49", "[]").noted == {}
    assert stated("90", '[{"n": 1, "relevance": 0}]').noted == {"inconsistent": 1}


BATCH = json.dumps(
    {
        "criteria": [
            {"id": "A.1", "evidence_probability": 80, "sentences": [1]},
            {"id": "A.2", "evidence_probability": 800, "sentences": [1]},
            {"id": "A.1", "evidence_probability": 10, "sentences": []},
            {"id": "A.9", "evidence_probability": 80, "sentences": [1]},
            "A.3",
        ]
    }
)


def test_a_batch_may_miss_repeat_and_invent_criteria() -> None:
    read = parse_assessments(Reply(text=BATCH), N, ["A.1", "A.2", "A.3"])
    assert isinstance(read, PostAssessment)
    assert read.criteria["A.1"] == Assessment(probability=0.8, relevance={0: 100})
    assert reason(read.criteria["A.2"]) == "probability_out_of_range"
    assert "A.3" not in read.criteria
    assert read.noted == {"unknown_criterion": 2, "repeated_criterion": 1}


@pytest.mark.parametrize(
    ("text", "finish_reason", "failure"),
    [
        (BATCH[:-20], "length", "truncated"),
        (BATCH[:-20], "stop", "no_json"),
        ("probability: 80\nsentences: none", "stop", "no_json"),
        ('{"criteria": "A.1"}', "stop", "no_criteria"),
    ],
)
def test_a_batch_that_cannot_be_read(
    text: str, finish_reason: str, failure: str
) -> None:
    reply = Reply(text=text, finish_reason=finish_reason)
    assert reason(parse_assessments(reply, N, ["A.1"])) == failure


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["n", "relevance", "id"]), inner, max_size=3)
    ),
    max_leaves=8,
)
entry = st.fixed_dictionaries(
    {},
    optional={"id": values, "evidence_probability": values, "sentences": values},
)
replies = st.builds(
    Reply,
    text=st.text()
    | st.text(alphabet='{}[]",:`\\ n1.%\n-(>)')
    | st.lists(entry).map(lambda all_of: json.dumps({"criteria": all_of}))
    | entry.map(json.dumps),
    finish_reason=st.sampled_from(["stop", "length"]),
)


@given(replies, st.integers(min_value=0, max_value=30))
def test_no_reply_raises_and_what_is_read_lies_in_its_range(
    reply: Reply, n: int
) -> None:
    batch = parse_assessments(reply, n, ["", "0"])
    of_batch = batch.criteria.values() if isinstance(batch, PostAssessment) else ()
    for found in (parse_assess(reply, n), *of_batch):
        if isinstance(found, Assessment):
            assert 0 <= found.probability <= 1
            assert all(0 <= place < n for place in found.relevance)
            assert all(0 <= each <= 100 for each in found.relevance.values())
            assert all(count > 0 for count in found.noted.values())


def orders_read(text: str, n: int = 4, finish_reason: str = "stop") -> Any:
    return parse_rerank(Reply(text=text, finish_reason=finish_reason), n)


@pytest.mark.parametrize(
    "text",
    [
        '{"ranking": [3, 1, 4, 2]}',
        '{"ranking": ["[3]", "S1", "4", [2]]}',
        '{"ranking": [{"n": 3}, {"n": 1}, {"n": 4}, {"n": 2}]}',
        '{"ranking": "3 > 1 > 4 > 2"}',
        '```json\n{"ranking": [3, 1, 4, 2]}\n```',
        "[3] > [1] > [4] > [2]",
        "The order is 3>1>4>2.",
        "The order is [3, 1, 4, 2].",
    ],
)
def test_an_order_is_read_in_several_forms(text: str) -> None:
    assert orders_read(text) == Ordering(indices=(2, 0, 3, 1))


def test_unknown_repeated_and_missing_candidates_are_mended_and_counted() -> None:
    assert orders_read('{"ranking": [3, 9, 3, 0, 1]}') == Ordering(
        indices=(2, 0, 1, 3),
        noted={
            "unknown_candidate": 2,
            "repeated_candidate": 1,
            "missing_candidate": 2,
        },
    )


def test_half_of_the_candidates_must_be_named() -> None:
    assert orders_read('{"ranking": [4, 2]}').indices == (3, 1, 0, 2)
    assert reason(orders_read('{"ranking": [4]}')) == "incomplete_ranking"
    assert reason(orders_read('{"ranking": [4, 2]}', n=5)) == "incomplete_ranking"
    assert reason(orders_read('{"ranking": []}')) == "incomplete_ranking"


@pytest.mark.parametrize(
    ("text", "finish_reason", "failure"),
    [
        ("", "stop", "no_json"),
        ("They are all the same.", "stop", "no_json"),
        ('{"ranking": [3, 1, 4', "length", "truncated"),
        ("3 > 1 > 4", "length", "truncated"),
        ('{"ranking": null}', "stop", "no_ranking"),
        ('{"ranking": "all the same"}', "stop", "no_ranking"),
    ],
)
def test_an_order_that_cannot_be_read(
    text: str, finish_reason: str, failure: str
) -> None:
    assert reason(orders_read(text, finish_reason=finish_reason)) == failure


@given(
    st.text()
    | st.text(alphabet='{}[]",: >0123456789\nranki')
    | st.lists(st.integers() | st.booleans() | st.text()).map(
        lambda named: f'{{"ranking": {named}}}'.replace("'", '"')
    ),
    st.integers(min_value=0, max_value=12),
)
def test_no_text_raises_and_every_order_is_a_permutation(text: str, n: int) -> None:
    found = orders_read(text, n)
    if isinstance(found, Ordering):
        assert sorted(found.indices) == list(range(n))


def vectors(*rows: list[float]) -> Any:
    return parse_vectors(Vectors.of(rows), criteria=1, sentences=len(rows) - 1)


def test_vectors_are_told_apart_by_their_place() -> None:
    found = vectors([1.0, 0.5], [0.0, 2.0], [-3.0, 0.0])
    assert isinstance(found, PostVectors)
    assert found.criteria.tolist() == [[1.0, 0.5]]
    assert found.sentences.tolist() == [[0.0, 2.0], [-3.0, 0.0]]
    assert found.sentences.dtype == np.float64


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2.0], [1.0]],
        [[1.0], [math.nan]],
        [[1.0], [math.inf]],
        [[1.0, 1.0], [0.0, 0.0]],
        [[], []],
    ],
)
def test_vectors_that_nothing_can_be_compared_with(rows: list[list[float]]) -> None:
    assert reason(vectors(*rows)) == "bad_vectors"


def test_another_number_of_vectors_than_was_asked_for() -> None:
    reply = Vectors.of([[1.0], [2.0]])
    assert reason(parse_vectors(reply, criteria=1, sentences=2)) == "bad_vectors"
    assert reason(parse_vectors(reply, criteria=1, sentences=0)) == "bad_vectors"


def test_vectors_recorded_with_a_broken_length() -> None:
    reply = Vectors(packed=(b"12345", b"12345"))
    assert reason(parse_vectors(reply, criteria=1, sentences=1)) == "bad_vectors"


def scores(*pairs: tuple[int, float], n: int = 3) -> Any:
    results = tuple(RankedDocument(index=index, score=score) for index, score in pairs)
    return parse_scores(Ranking(results=results), n)


def test_scores_come_in_the_order_of_the_pool() -> None:
    found = scores((2, 0.9), (0, 0.1))
    assert found == EndpointScores(scores=(0.1, None, 0.9), noted={"missing_score": 1})
    assert scores((2, 3.0), (0, 2.0), (1, 1.0)).noted == {}


@pytest.mark.parametrize(
    ("pairs", "failure"),
    [
        ([(0, 0.5), (0, 0.4)], "bad_indices"),
        ([(3, 0.5)], "bad_indices"),
        ([(-1, 0.5)], "bad_indices"),
        ([(0, math.nan)], "bad_scores"),
        ([], "no_scores"),
    ],
)
def test_scores_that_cannot_be_read(
    pairs: list[tuple[int, float]], failure: str
) -> None:
    assert reason(scores(*pairs)) == failure
