"""The features of a query: what they say, and that they cannot hold gold."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.predictions.classifier import (
    FARTHEST,
    SHAPE,
    Features,
    features,
    score_shape,
)


def made(criteria: tuple[str, ...] = ("A.2", "A.10")) -> Features:
    return features(
        probability=np.array([0.0, 0.5, np.nan]),
        deviation=np.full(3, np.nan),
        shape=np.full((len(SHAPE), 3), np.nan),
        listed=np.array([0.0, 3.0, np.nan]),
        relevance=np.array([0.0, 0.9, np.nan]),
        pool=np.array([1, 5, 5]),
        criterion=np.array([0, 1, 1]),
        criteria=criteria,
    )


def column(found: Features, name: str) -> list[float]:
    values: list[float] = found.values[:, found.names.index(name)].tolist()
    return values


def test_no_argument_of_the_builder_holds_gold() -> None:
    assert set(inspect.signature(features).parameters) == {
        *("probability", "deviation", "shape", "listed", "relevance"),
        *("pool", "criterion", "criteria"),
    }


def test_a_missing_value_is_zero_with_an_indicator() -> None:
    found = made()
    assert np.isfinite(found.values).all()
    assert column(found, "log_odds") == [
        pytest.approx(np.log(FARTHEST / (1 - FARTHEST))),
        0.0,
        0.0,
    ]
    assert column(found, "no_log_odds") == [0.0, 0.0, 1.0]
    assert column(found, "no_replicate_sd") == [1.0, 1.0, 1.0]


def test_criteria_stand_in_an_order_of_their_own_whatever_the_file_says() -> None:
    found = made()
    assert found.names[-2:] == ("criterion:A.10", "criterion:A.2")
    assert column(found, "criterion:A.10") == [0.0, 1.0, 1.0]


def test_the_shape_of_known_scores() -> None:
    shape = dict(zip(SHAPE, score_shape(np.array([[1.0], [3.0], [2.0]])), strict=True))
    assert shape["max"] == [3.0]
    assert shape["second"] == [2.0]
    assert shape["mean"] == [2.0]
    assert shape["gap"] == [1.0]
    assert shape["sd"] == pytest.approx([np.sqrt(2 / 3)])
    share = np.exp([3.0, 2.0, 1.0]) / np.exp([3.0, 2.0, 1.0]).sum()
    assert shape["entropy"] == pytest.approx([-(share * np.log(share)).sum()])


def test_a_pool_of_one_has_no_second_score_and_an_empty_one_none() -> None:
    shape = dict(zip(SHAPE, score_shape(np.array([[0.7]])), strict=True))
    assert np.isnan(shape["second"]).all()
    assert np.isnan(shape["gap"]).all()
    assert shape["entropy"] == [0.0]
    assert np.isnan(score_shape(np.empty((0, 2)))).all()


def test_scores_of_ten_thousand_do_not_overflow() -> None:
    assert np.isfinite(score_shape(np.array([[1e4], [-1e4], [0.0]]))).all()


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=25), st.integers(1, 4))
def test_a_query_has_one_shape_whatever_stands_beside_it(
    scores: list[float], others: int
) -> None:
    alone = score_shape(np.array([scores]).T)
    table = np.column_stack(
        [scores, *np.random.default_rng(0).random((others, len(scores)))]
    )
    assert score_shape(table)[:, :1].tobytes() == alone.tobytes()
