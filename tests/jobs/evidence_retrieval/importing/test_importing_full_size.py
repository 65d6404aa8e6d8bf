"""The full-size set, written as predictions and rankings, comes back as it was made."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.evidence_retrieval.queries import ScoringInput
from jobs.metrics.classification import auroc
from jobs.metrics.ranking import evaluate, hits
from jobs.metrics.selective import assign, gate_metrics
from tests.jobs.evidence_retrieval.given_files import (
    codes,
    found,
    imported,
    set_a_rankings,
    set_a_rows,
    write_csv,
    write_jsonl,
)
from tests.jobs.metrics.set_a import set_a


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> ScoringInput:
    folder, a = tmp_path_factory.mktemp("full"), set_a()
    rows = write_csv(folder / "per_query.csv", set_a_rows(a))
    lists = write_jsonl(folder / "rankings.jsonl", set_a_rankings(a))
    return imported(per_query=rows, rankings=(str(lists),), model="first")


def test_columns_are_the_set(sheet: ScoringInput) -> None:
    a, queries = set_a(), sheet.queries
    first, second = sheet.predictions
    assert (first.model, second.model) == ("first", "second")
    assert first.prob is not None
    assert second.prob is not None
    np.testing.assert_array_equal(first.prob, a.p)
    np.testing.assert_array_equal(second.prob, a.p2)
    np.testing.assert_array_equal(queries.y == 1, a.y)
    np.testing.assert_array_equal(queries.fold, a.fold)
    np.testing.assert_array_equal(queries.pool, a.pool)
    assert len(queries.posts) == 1477
    assert queries.criteria == tuple(f"A.{c}" for c in range(1, 11))
    assert [queries.posts[i] for i in queries.post] == a.post


def test_metrics_of_the_columns_are_the_check_numbers(sheet: ScoringInput) -> None:
    first, second = sheet.predictions
    queries, truth = sheet.queries, sheet.queries.y == 1
    assert first.prob is not None
    assert second.prob is not None
    assert first.tau_neg is not None
    assert first.tau_pos is not None
    assert queries.gold is not None
    assert auroc(truth, first.prob) == pytest.approx(0.8109338369709094, abs=1e-12)
    assert auroc(truth, second.prob) == pytest.approx(0.7247741263776732, abs=1e-12)
    states = assign(first.prob, first.tau_neg, first.tau_pos)
    gate = gate_metrics(truth, states)
    assert gate.counts == {"NEG": 1350, "UNCERTAIN": 12431, "POS": 989}
    at = np.flatnonzero(truth)
    measured = evaluate(
        hits([queries.gold[i] for i in at], [first.lists["ranking"][i] for i in at]),
        (10,),
    )
    mean = float(np.mean(measured["ndcg@10"]))
    assert mean == pytest.approx(0.3985402149582905, abs=1e-12)


def test_nothing_contradicts_itself_in_it(sheet: ScoringInput) -> None:
    assert codes([*sheet.findings, *found(sheet)]) == {}
