"""Replicates of one query made into one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.parsing import Assessment
from jobs.evidence_retrieval.predictions.rankings import merge, merged_order
from jobs.evidence_retrieval.predictions.stages import RRF, reciprocal_ranks
from jobs.metrics import fuse_rrf

LEXICAL = [0.0, 2.0, 1.0, 2.0]


def test_probability_and_relevance_are_means_and_unlisted_counts_zero() -> None:
    found, orders = merge(
        {
            2: Assessment(probability=0.5, relevance={0: 60}),
            1: Assessment(probability=0.9, relevance={0: 80, 2: 40}),
        },
        LEXICAL,
    )
    assert found.probability == pytest.approx(0.7)
    assert found.deviation == pytest.approx(np.std([0.9, 0.5], ddof=1))
    assert found.relevance.tolist() == [0.7, 0.0, 0.2, 0.0]
    assert (found.listed, found.largest, found.replicates) == (2, 0.7, 2)
    assert orders == [(0, 2, 1, 3), (0, 1, 3, 2)]


def test_one_replicate_orders_by_relevance_then_bm25_then_place() -> None:
    found, _ = merge({1: Assessment(probability=0.1, relevance={2: 5})}, LEXICAL)
    assert found.order == (2, 1, 3, 0)
    assert found.deviation is None


def test_orders_merge_by_mean_reciprocal_rank_with_ties_by_place() -> None:
    assert merged_order([(2, 1, 0), (0, 1, 2)]) == (0, 2, 1)
    assert merged_order([(1, 0), (0, 1)]) == (0, 1)


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=4))
def test_a_merge_is_a_permutation_that_agrees_with_reciprocal_rank_fusion(
    orders: list[list[int]],
) -> None:
    given_orders = [tuple(order) for order in orders]
    assert sorted(merged_order(given_orders)) == list(range(6))
    scores = reciprocal_ranks(given_orders, RRF)
    fused = fuse_rrf([[str(place) for place in order] for order in orders])
    assert [scores[int(name)] for name in fused] == sorted(scores, reverse=True)
