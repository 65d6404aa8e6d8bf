"""Orders, vectors and scores in replies: a case a rule, and no reply that raises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.parsing import (
    EndpointScores,
    Ordering,
    PostVectors,
    parse_rerank,
    parse_scores,
    parse_vectors,
)
from runner.messages import RankedDocument, Ranking, Reply, Vectors
from tests.jobs.evidence_retrieval.asked import reason


def read(text: str, n: int = 4, finish_reason: str = "stop") -> Any:
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
    assert read(text) == Ordering(indices=(2, 0, 3, 1))


def test_unknown_repeated_and_missing_candidates_are_mended_and_counted() -> None:
    assert read('{"ranking": [3, 9, 3, 0, 1]}') == Ordering(
        indices=(2, 0, 1, 3),
        noted={
            "unknown_candidate": 2,
            "repeated_candidate": 1,
            "missing_candidate": 2,
        },
    )


def test_half_of_the_candidates_must_be_named() -> None:
    assert read('{"ranking": [4, 2]}').places == (3, 1, 0, 2)
    assert reason(read('{"ranking": [4]}')) == "incomplete_ranking"
    assert reason(read('{"ranking": [4, 2]}', n=5)) == "incomplete_ranking"
    assert reason(read('{"ranking": []}')) == "incomplete_ranking"


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
    assert reason(read(text, finish_reason=finish_reason)) == failure


@given(
    st.text()
    | st.text(alphabet='{}[]",: >0123456789\nranki')
    | st.lists(st.integers() | st.booleans() | st.text()).map(
        lambda named: f'{{"ranking": {named}}}'.replace("'", '"')
    ),
    st.integers(min_value=0, max_value=12),
)
def test_no_text_raises_and_every_order_is_a_permutation(text: str, n: int) -> None:
    found = read(text, n)
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
