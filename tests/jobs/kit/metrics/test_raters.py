"""Agreement of several raters against published examples, and truth found again."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.kit.metrics import agreement, alpha, fleiss_kappa
from jobs.kit.metrics.raters import Ratings, dawid_skene, rater_agreement


def random_ratings(seed: int, raters: int, missing: float = 0.2) -> Ratings:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 150)
    noise = rng.integers(0, 3, (150, raters))
    ratings = np.where(rng.random((150, raters)) < 0.7, truth[:, None], noise)
    ratings[rng.random((150, raters)) < missing] = -1
    return ratings.astype(np.int64)


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_are_those_of_the_other_module(seed: int) -> None:
    ratings = random_ratings(seed, raters=2)
    both = ratings[(ratings >= 0).all(axis=1)]
    pair = agreement(both[:, 0].tolist(), both[:, 1].tolist(), range(3))
    found = rater_agreement(ratings, 3, replicates=0)
    assert found.items == len(both)
    assert found.cohen is not None
    assert found.cohen.value == pytest.approx(pair.kappa, abs=1e-12)
    assert found.percent.value == pytest.approx(pair.percent, abs=1e-12)
    assert found.gwet.value == pytest.approx(pair.ac, abs=1e-12)
    many = random_ratings(seed, raters=4)
    counts = np.stack([(many == k).sum(axis=1) for k in range(3)], axis=1)
    found = rater_agreement(many, 3, replicates=0)
    units = [[None if r < 0 else int(r) for r in row] for row in many]
    assert found.cohen is None
    assert found.fleiss.value == pytest.approx(fleiss_kappa(counts), abs=1e-12)
    assert found.krippendorff.value == pytest.approx(alpha(units, range(3)), abs=1e-12)


def test_gwets_coefficient_stays_high_where_one_category_dominates() -> None:
    # Gwet (2008): 118 both yes, 5 and 2 apart, 0 both no
    ratings = np.array([[0, 0]] * 118 + [[0, 1]] * 5 + [[1, 0]] * 2, dtype=np.int64)
    found = rater_agreement(ratings, 2, replicates=200)
    assert found.cohen is not None
    assert found.cohen.value == pytest.approx(-0.0234, abs=5e-4)
    assert found.gwet.value == pytest.approx(0.9408, abs=5e-4)
    assert found.gwet.lo is not None
    assert found.gwet.hi is not None
    assert found.gwet.lo < found.gwet.value < found.gwet.hi


def test_intervals_of_kappa_cover_its_value() -> None:
    # two raters who are right with probability 0.85, of two even categories
    value = (2 * 0.85 - 1) ** 2
    rng = np.random.default_rng(3)
    covered = 0
    for round_ in range(60):
        truth = rng.integers(0, 2, 120)
        is_right = rng.random((120, 2)) < 0.85
        ratings = np.where(is_right, truth[:, None], 1 - truth[:, None])
        found = rater_agreement(
            ratings.astype(np.int64), 2, replicates=200, seed=round_
        ).cohen
        assert found is not None
        assert found.lo is not None
        assert found.hi is not None
        covered += found.lo <= value <= found.hi
    assert covered >= 51  # a binomial of 60 and 0.95 falls below with p < 0.001


def test_no_common_items_have_no_agreement() -> None:
    found = rater_agreement(np.array([[0, -1], [-1, 1]], dtype=np.int64), 2)
    assert (found.items, found.percent.value, found.fleiss.value) == (0, None, None)
    with pytest.raises(ValueError, match="between"):
        rater_agreement(np.array([[0, 2]], dtype=np.int64), 2)


def test_latent_classes_are_the_simulated_truth() -> None:
    rng = np.random.default_rng(5)
    truth = rng.choice(3, 1500, p=[0.6, 0.3, 0.1])
    accuracies = [0.95, 0.8, 0.7, 0.6]
    columns = []
    for accuracy in accuracies:
        wrong = (truth + rng.integers(1, 3, len(truth))) % 3
        columns.append(np.where(rng.random(len(truth)) < accuracy, truth, wrong))
    ratings = np.stack(columns, axis=1).astype(np.int64)
    ratings[rng.random(ratings.shape) < 0.1] = -1
    found = dawid_skene(ratings, 3)
    assert found.has_converged
    shares = np.bincount(truth) / len(truth)
    assert found.prevalence == pytest.approx(shares, abs=0.03)
    assert found.accuracy == pytest.approx(accuracies, abs=0.05)
    votes = np.stack([(ratings == k).sum(axis=1) for k in range(3)], axis=1)
    by_vote = float((votes.argmax(axis=1) == truth).mean())
    by_model = float((found.posterior.argmax(axis=1) == truth).mean())
    assert by_model >= by_vote
    assert by_model > 0.93
    assert found.posterior.sum(axis=1) == pytest.approx(np.ones(len(truth)))


def test_an_item_without_a_rating_gets_the_prevalence() -> None:
    ratings = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]], dtype=np.int64)
    found = dawid_skene(ratings, 2)
    assert found.posterior[3] == pytest.approx(found.prevalence, abs=0.05)
