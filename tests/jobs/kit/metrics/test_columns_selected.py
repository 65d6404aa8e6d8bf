"""Lists cut at a K of their own, and draws of clusters that some rows do not touch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.metrics.areas import auroc_of
from jobs.kit.metrics.calibration import ece_of
from jobs.kit.metrics.checks import check_metrics
from jobs.kit.metrics.columns import aggregate, std
from jobs.kit.metrics.ranking import hits, select
from jobs.kit.metrics.resampling import Resamples
from runner.scorecard import Metric

LISTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abcdef"), unique=True),
        st.sets(st.sampled_from("abcdef")),
        st.integers(0, 9),
    ),
    min_size=1,
)


@given(LISTS)
def test_selecting_is_counting_by_hand(
    queries: list[tuple[list[str], set[str], int]],
) -> None:
    ranked, gold, ks = zip(*queries, strict=True)
    found = select(hits(gold, ranked), np.array(ks))
    for i, (items, wanted, k) in enumerate(queries):
        taken = items[:k]
        right = len(wanted.intersection(taken))
        assert found.k_cut[i] == len(taken)
        assert found.precision[i] == (right / len(taken) if taken else 0.0)
        if wanted:
            assert found.recall[i] == right / len(wanted)
            assert found.f1[i] == 2 * right / (len(taken) + len(wanted))
        else:
            assert np.isnan([found.recall[i], found.f1[i]]).all()


def test_a_negative_k_is_refused_by_its_place() -> None:
    with pytest.raises(ValueError, match=r"k holds -1 at index 1"):
        select(hits([{"a"}] * 2, [["a"]] * 2), np.array([1, -1]))


def test_curves_of_rows_that_leave_the_last_cluster_empty() -> None:
    draws = Resamples(["a", "b", "c"], b=50)
    y, p, cluster = [1, 0, 1, 0], [0.9, 0.1, 0.8, 0.3], np.array([0, 0, 1, 1])
    error, area = draws.intervals([ece_of(y, p, cluster), auroc_of(y, p, cluster)])
    assert error.lo is not None
    assert error.b_used == area.b_used < 50
    assert draws.interval_of(ece_of(y, p, cluster)) == error


def test_a_sensitivity_that_falls_with_a_larger_target_is_found() -> None:
    metrics = [
        Metric(path="fold.0.tpr_at_fpr@0.01", value=0.5, n=10),
        Metric(path="fold.0.tpr_at_fpr@0.05", value=0.4, n=10),
        Metric(path="fold.1.tpr_at_fpr@0.1", value=0.3, n=10),
    ]
    (found,) = check_metrics(metrics)
    assert (found.code, found.where) == ("tpr_at_fpr_falls", "fold.0.tpr_at_fpr@0.01")


@pytest.mark.parametrize(("later", "codes"), [(0.2, []), (0.1, ["hits_fall"])])
def test_hits_that_become_fewer_with_a_larger_cut_off_are_named(
    later: float, codes: list[str]
) -> None:
    metrics = [
        Metric(path="precision@5", value=0.4, n=10),
        Metric(path="precision@10", value=later, n=10),
    ]
    assert [finding.code for finding in check_metrics(metrics)] == codes


def test_a_spread_can_be_that_of_a_whole_population() -> None:
    assert std([1.0, 3.0], ddof=0) == 1.0
    assert aggregate([2.0], ddof=0).std == 0.0
    assert aggregate([2.0]).std is None
