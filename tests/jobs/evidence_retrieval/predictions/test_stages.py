"""tests.jobs.evidence_retrieval.predictions.test_stages"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.predictions.stages import (
    POS,
    RULES,
    UNCERTAIN,
    cumulative_mass,
    edges,
    mass_k,
    selected_k,
    spread,
    start,
)
from jobs.evidence_retrieval.sentence_order import ranked, shuffled
from jobs.kit.lexical import Bm25, tokens


def near(expected: object) -> object:
    return pytest.approx(expected, rel=0, abs=1e-12)


def test_words_are_the_nfkc_lower_case_ones() -> None:
    assert tokens("Ｓleep, can't; Ångström ﬁne") == [
        *("sleep", "can", "t", "ångström", "fine")
    ]


def test_bm25_of_a_known_pool() -> None:
    pool = ["cannot sleep at night", "i feel sad sad", "sleep is bad", "fine"]
    assert Bm25(pool).scores("sleep sad sleep") == near(
        [0.2772588722239781, 0.6879844596148207, 0.31506690025452055, 0.0]
    )


def test_bm25_of_pools_without_words() -> None:
    assert Bm25([]).scores("sleep") == []
    assert Bm25(["...", "!"]).scores("sleep") == [0.0, 0.0]


WEIGHTS = np.zeros((4, 4))
for i, j, weight in ((0, 1, 0.5), (0, 3, 0.2), (1, 2, 0.7)):
    WEIGHTS[i, j] = WEIGHTS[j, i] = weight
SHARES = np.array([0.4, 0.3, 0.2, 0.1])


def test_a_known_graph_under_both_methods() -> None:
    assert spread(WEIGHTS, SHARES) == near(
        [
            *(0.3533190160093713, 0.3458693590673286),
            *(0.20052713783678253, 0.10028448708651755),
        ]
    )
    assert spread(WEIGHTS, SHARES, "label_propagation") == near(
        [
            *(0.3520443786847478, 0.316300597418692),
            *(0.21247357150154544, 0.1264526907133441),
        ]
    )


def test_a_sentence_without_an_edge_gives_its_share_back() -> None:
    weights = WEIGHTS.copy()
    weights[0, 3] = weights[3, 0] = 0.0
    found = spread(weights, SHARES)
    assert found == near(
        [
            *(0.3362410785091197, 0.380650277557494),
            *(0.21094369547977798, 0.07216494845360825),
        ]
    )
    assert found.sum() == near(1.0)


def test_many_criteria_are_solved_at_once() -> None:
    both = spread(WEIGHTS, np.stack([SHARES, SHARES[::-1]], axis=1))
    assert both[:, 0] == near(spread(WEIGHTS, SHARES))
    assert both[:, 1] == near(spread(WEIGHTS, SHARES[::-1].copy()))


def test_a_graph_too_large_to_factorise_gives_the_same() -> None:
    rng = np.random.default_rng(3)
    n = 520
    weights = edges(rng.uniform(size=(n, n)))
    shares = rng.uniform(size=n)
    shares /= shares.sum()
    transition = (weights / weights.sum(axis=1)[:, None]).T
    exact = 0.7 * np.linalg.solve(np.eye(n) - 0.3 * transition, shares)
    assert spread(weights, shares) == pytest.approx(exact, abs=1e-11)


def test_edges_keep_the_nearest_and_the_neighbours() -> None:
    likeness = np.full((8, 8), 0.05)
    likeness[0, 7] = likeness[7, 0] = 0.5
    weights = edges(likeness)
    assert weights[0, 7] == near(0.35)
    assert weights[0, 1] == near(0.3)
    assert weights[0, 2] == 0.0
    assert np.array_equal(weights, weights.T)
    assert not weights.diagonal().any()


def test_scores_that_are_all_alike_start_level() -> None:
    assert start([3.0, 3.0]) == near([0.5, 0.5])
    assert start([1e4, -1e4]).sum() == near(1.0)


@pytest.mark.parametrize(
    ("gamma", "k"), [(0.7, 5), (0.8, 7), (0.9, 9), (0.95, 12), (1.0, 20)]
)
def test_k_by_mass(gamma: float, k: int) -> None:
    scores = [-0.25 * r for r in range(20)]
    assert mass_k(cumulative_mass(scores, scale="raw"), gamma) == k


def test_k_of_level_scores_by_length_of_the_post() -> None:
    uncertain = [selected_k(cumulative_mass([1.0] * n), UNCERTAIN) for n in range(12)]
    alert = [selected_k(cumulative_mass([1.0] * n), POS) for n in range(12)]
    assert uncertain == [0, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8]
    assert alert == [0, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7]
    assert selected_k(cumulative_mass([1.0] * 9), RULES["NEG"]) == 0


def test_large_scores_do_not_overflow() -> None:
    assert mass_k(cumulative_mass([1e4, -1e4, 0.0], scale="raw"), 0.9) == 1
    assert mass_k(cumulative_mass([0.1] * 7), 1.0) == 7


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_a_gamma_of_one_takes_all_whatever_the_rounding(scores: list[float]) -> None:
    # the shares are rounded one by one, so that their sum may stay below 1 or pass it
    assert mass_k(cumulative_mass(scores, scale="raw"), 1.0) == len(scores)


@given(st.lists(st.floats(-5, 5), max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_more_mass_never_needs_fewer(
    scores: list[float], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    held = cumulative_mass(scores)
    assert mass_k(held, low) <= mass_k(held, high)


def test_ties_go_by_place_and_dust_does_not_count() -> None:
    assert ranked([0.3, 0.1 + 0.2, 0.5]) == [2, 0, 1]


def test_a_shuffle_depends_on_its_arguments_alone() -> None:
    assert shuffled(6, 1, "p/A", 2) == shuffled(6, 1, "p/A", 2)
    assert sorted(shuffled(6, 1, "p/A", 2)) == list(range(6))
    orders = {tuple(shuffled(6, 1, "p/A", r)) for r in range(20)}
    assert len(orders) > 10
