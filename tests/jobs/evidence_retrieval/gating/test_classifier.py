"""The classifier: at the optimum, by one class refused, and the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from jobs.evidence_retrieval.predictions.classifier import (
    CannotFitError,
    choose_c,
    fit_calibrator,
    fit_classifier,
    out_of_fold,
)
from jobs.evidence_retrieval.predictions.fitted_gate import (
    calibrator_json,
    calibrator_of,
)
from jobs.metrics import auprc
from jobs.metrics.columns import Bools, Floats


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
