"""The classifier: at the optimum, by one class refused, and the same everywhere.

The features of a query: what they say, and that they cannot hold gold. Which posts fit,
tune and test.
"""

from __future__ import annotations

import hashlib
import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from jobs.evidence_retrieval.predictions.classifier import (
    FARTHEST,
    INNER_FOLDS,
    SHAPE,
    CannotFitError,
    choose_c,
    features,
    fit_calibrator,
    fit_classifier,
    inner_folds,
    out_of_fold,
    score_shape,
    split,
)
from jobs.evidence_retrieval.predictions.fitted_gate import (
    FeatureRows,
    calibrator_json,
    calibrator_of,
)
from jobs.kit.metrics import auprc
from jobs.kit.metrics.columns import Bools, Floats


def rows(n: int = 300) -> tuple[Floats, Bools, list[str]]:
    chance = np.random.default_rng(3)
    values = chance.normal(size=(n, 4))
    y = chance.random(n) < 1 / (1 + np.exp(1 - values[:, 0] - 0.5 * values[:, 1]))
    return values, y, [f"p{place // 5:03}" for place in range(n)]


def test_it_is_the_optimum_that_scikit_learn_comes_near_to() -> None:
    values, y, _ = rows()
    found = fit_classifier(values, y)
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    exact = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(scaled, y)
    assert found.coefficients == pytest.approx(exact.coef_[0], abs=1e-10)
    near = LogisticRegression(tol=1e-10).fit(scaled, y)
    assert found.coefficients == pytest.approx(near.coef_[0], abs=1e-4)


def test_log_odds_have_nine_decimals_and_do_not_depend_on_other_rows() -> None:
    values, y, _ = rows()
    found = fit_classifier(values, y)
    whole = found.log_odds(values)
    assert whole.tolist() == [round(x, 9) for x in whole.tolist()]
    assert found.log_odds(values[7:8]).tobytes() == whole[7:8].tobytes()


def test_a_feature_that_never_changes_counts_nothing() -> None:
    values, y, _ = rows()
    values[:, 2] = 0.3
    found = fit_classifier(values, y)
    assert found.coefficients[2] == 0.0
    assert found.scale[2] == 1.0


def test_any_number_of_threads_gives_the_same_coefficients() -> None:
    values, y, _ = rows()
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            found.append(fit_classifier(values, y))
    assert found[0] == found[1]


@pytest.mark.parametrize("own", [True, False])
def test_one_class_is_refused_with_a_reason(own: bool) -> None:
    values, _, posts = rows(20)
    y = np.full(20, own)
    with pytest.raises(CannotFitError, match="20 queries to learn from"):
        fit_classifier(values, y)
    with pytest.raises(CannotFitError):
        fit_calibrator("isotonic", np.linspace(0, 1, 20), y)
    y[:5] = not own  # all of the other class in one post, so one fold lacks it
    with pytest.raises(CannotFitError):
        out_of_fold(values, y, posts, 1.0)


def test_an_out_of_fold_score_comes_from_other_posts() -> None:
    values, y, posts = rows(60)
    before = out_of_fold(values, y, posts, 1.0)
    own = np.array([post == "p004" for post in posts])
    changed = y.copy()
    changed[own] = ~changed[own]
    after = out_of_fold(values, changed, posts, 1.0)
    assert before[own].tobytes() == after[own].tobytes()
    assert before.tobytes() != after.tobytes()


def test_c_is_the_best_of_the_grid_and_the_first_of_equals() -> None:
    values, y, posts = rows(120)
    grid = (1e-4, 0.01, 1.0)
    chosen = choose_c(values, y, posts, grid)
    quality = [auprc(y, out_of_fold(values, y, posts, c)) for c in grid]
    assert quality[grid.index(chosen)] == max(q for q in quality if q is not None)
    assert choose_c(values, y, posts, (0.5, 0.5)) == 0.5
    assert choose_c(values, y, posts, ()) == 1.0


@pytest.mark.parametrize("kind", ["none", "isotonic", "platt"])
def test_a_calibrator_comes_back_out_of_its_json(kind: str) -> None:
    chance = np.random.default_rng(1)
    p = chance.random(80)
    y = chance.random(80) < p
    named = {"isotonic": "isotonic", "platt": "platt"}.get(kind, "none")
    made = fit_calibrator(named, p, y)  # type: ignore[arg-type] - a Literal
    assert calibrator_of(calibrator_json(made)) == made


def made(criteria: tuple[str, ...] = ("A.2", "A.10")) -> FeatureRows:
    return features(
        probability=np.array([0.0, 0.5, np.nan]),
        deviation=np.full(3, np.nan),
        shape=np.full((len(SHAPE), 3), np.nan),
        listed=np.array([0.0, 3.0, np.nan]),
        relevance=np.array([0.0, 0.9, np.nan]),
        pool=np.array([1, 5, 5]),
        criterion=np.array([0, 1, 1]),
        criteria=criteria,
        posts=("a", "b", "b"),
    )


def column(found: FeatureRows, name: str) -> list[float]:
    values: list[float] = found.values[:, found.names.index(name)].tolist()
    return values


def test_no_argument_of_the_builder_holds_gold() -> None:
    assert set(inspect.signature(features).parameters) == {
        *("probability", "deviation", "shape", "listed", "relevance"),
        *("pool", "criterion", "criteria", "posts"),
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


POSTS = [f"p{number}" for number in range(10)]
FOLDS = {post: str(number % 5) for number, post in enumerate(POSTS)}


def test_the_other_posts_are_ordered_by_their_hash_and_the_first_share_tunes() -> None:
    own = split("2", FOLDS, POSTS, seed=7, tune_fraction=0.3)
    rest = sorted(
        (post for post in POSTS if FOLDS[post] != "2"),
        key=lambda post: hashlib.sha256(f"7:2:{post}".encode()).hexdigest(),
    )
    assert own.test == ("p2", "p7")
    assert own.tune == tuple(rest[:2])  # 2.4 of eight posts
    assert own.fit == tuple(rest[2:])


@pytest.mark.parametrize(
    ("posts", "fraction", "tuning"),
    [(5, 0.3, 2), (5, 0.1, 1), (15, 0.3, 5), (3, 0.01, 1), (1, 0.3, 1)],
)
def test_a_half_post_counts_up_and_one_post_always_tunes(
    posts: int, fraction: float, tuning: int
) -> None:
    fold_of = {"t": "0", **{f"p{number}": "1" for number in range(posts)}}
    own = split("0", fold_of, fold_of, seed=1, tune_fraction=fraction)
    assert len(own.tune) == tuning
    assert len(own.fit) == posts - tuning


@given(
    st.dictionaries(st.text(min_size=1), st.sampled_from("01234"), min_size=2),
    st.integers(0, 99),
)
def test_no_post_is_in_two_parts_and_every_judged_one_in_some(
    fold_of: dict[str, str], seed: int
) -> None:
    for fold in sorted(set(fold_of.values())):
        own = split(fold, fold_of, fold_of, seed=seed, tune_fraction=0.3)
        parts = [*own.test, *own.tune, *own.fit]
        assert sorted(parts) == sorted(fold_of)
        assert {fold_of[post] for post in own.test} == {fold}


def test_tuning_posts_are_others_than_test_posts_with_two_posts_a_fold() -> None:
    for fold in "01234":
        own = split(fold, FOLDS, POSTS, seed=20260118, tune_fraction=0.3)
        assert not {*own.tune} & {*own.test}
        assert all(FOLDS[post] != fold for post in (*own.tune, *own.fit))


def test_posts_without_gold_are_tested_and_teach_nothing() -> None:
    own = split("0", FOLDS, POSTS[:8], seed=1, tune_fraction=0.3)
    assert not {"p8", "p9"} & {*own.tune, *own.fit}
    assert "p5" in own.test


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30))
def test_inner_folds_keep_a_post_together_and_stay_level(sizes: list[int]) -> None:
    posts = [f"p{n:02}" for n, size in enumerate(sizes) for _ in range(size)]
    folds = inner_folds(posts)
    of: dict[str, set[int]] = {}
    for post, fold in zip(posts, folds.tolist(), strict=True):
        of.setdefault(post, set()).add(fold)
    assert all(len(own) == 1 for own in of.values())
    count = min(INNER_FOLDS, len(sizes))
    loads = [int((folds == fold).sum()) for fold in range(count)]
    assert min(loads) > 0
    assert max(loads) - min(loads) <= max(sizes)
