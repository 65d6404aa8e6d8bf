"""The bound on relevant records is wrong in few screenings, at any look."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.metrics.recall_bound import RelevantBound

PROVE = "SIFTLOG_PROVE" in os.environ
LIBRARIES = 4000 if PROVE else 80
ALPHA = 0.05

Order = Callable[[np.random.Generator, np.ndarray, int], bool]
"""Whether the next record is drawn at random, from what is unread and found."""


def ever_wrong(records: int, relevant: int, chooses_draw: Order, seed: int) -> bool:
    """Read a whole library; tell whether the truth was ever ruled out.

    Ranked reading is the worst there is for the bound: it knows the answers, and takes
    the irrelevant records first.
    """
    rng = np.random.default_rng(seed)
    bound = RelevantBound(records=records, target=0.9, alpha=ALPHA)
    unread = np.arange(records)  # the first ones are relevant
    found = 0
    while len(unread):
        is_draw = chooses_draw(rng, unread, found)
        at = int(rng.integers(len(unread))) if is_draw else len(unread) - 1
        is_relevant = bool(unread[at] < relevant)
        if is_draw:
            bound.draw(is_relevant=is_relevant, relevant=found, unread=len(unread))
            after = found + is_relevant
            if bound.upper(relevant=after, unread=len(unread) - 1) < relevant:
                return True
        unread = np.delete(unread, at)
        found += is_relevant
    return False


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "chooses_draw",
    [
        pytest.param(lambda _rng, _unread, _found: True, id="draws only"),
        pytest.param(lambda rng, _unread, _found: rng.random() < 0.5, id="mixed"),
        pytest.param(lambda _rng, _unread, found: found < 3, id="depends on hits"),
    ],
)
def test_the_truth_is_seldom_ruled_out(chooses_draw: Order) -> None:
    for records, relevant in ((60, 20), (40, 3)):
        wrong = np.mean(
            [
                ever_wrong(records, relevant, chooses_draw, seed)
                for seed in range(LIBRARIES)
            ]
        )
        assert wrong <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / LIBRARIES)


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n), st.integers(0, n), st.integers(0, n), st.floats(0.5, 0.99)
        )
    )
)
def test_the_expected_ratio_of_the_truth_is_never_above_one(
    case: tuple[int, int, int, float],
) -> None:
    """One draw from a library of n with r relevant, after f of them were found."""
    n, r, f, target = case
    found = min(f, r)
    unread = n - found
    if unread == 0:
        return
    expected = 0.0
    for is_relevant, ways in ((True, r - found), (False, unread - (r - found))):
        if ways:
            bound = RelevantBound(records=n, target=round(target, 2), alpha=0.05)
            bound.draw(is_relevant=is_relevant, relevant=found, unread=unread)
            expected += float(bound._ratios[r]) * float(Fraction(ways, unread))
    assert expected <= 1 + 1e-12


def test_without_a_hit_it_is_the_hypergeometric_chance() -> None:
    bound = RelevantBound(records=1000, target=0.95, alpha=0.05)
    found, unread = 95, 500
    needed = bound.draws_without_hit(relevant=found, unread=unread)
    for n in range(needed):
        assert not bound.reaches_target(relevant=found, unread=unread - n)
        bound.draw(is_relevant=False, relevant=found, unread=unread - n)
    assert bound.reaches_target(relevant=found, unread=unread - needed)
    left = 101 - 95  # the least number that would be below the target
    chances = [
        math.comb(unread - n, left) / math.comb(unread, left) for n in (0, needed)
    ]
    assert chances[1] <= 0.05
    assert math.comb(unread - needed + 1, left) / math.comb(unread, left) > 0.05


def test_reading_everything_proves_everything() -> None:
    bound = RelevantBound(records=10, target=0.95, alpha=0.05)
    assert bound.recall(relevant=4, unread=0) == 1
    assert bound.reaches_target(relevant=4, unread=0)
    assert bound.upper(relevant=4, unread=6) == 10
    assert not bound.reaches_target(relevant=0, unread=10)


def test_targets_are_compared_exactly() -> None:
    # in doubles 0.95 * 20 is above 19
    bound = RelevantBound(records=20, target=0.95, alpha=0.05)
    assert bound.reaches_target(relevant=19, unread=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"records": -1}, "records must be 0 or more"),
        ({"target": 1.0}, "target must lie between 0 and 1"),
        ({"alpha": 0.0}, "alpha must lie between 0 and 1"),
    ],
)
def test_impossible_aims_are_refused(changes: dict[str, float], message: str) -> None:
    aims: dict[str, float] = {"records": 10, "target": 0.95, "alpha": 0.05}
    with pytest.raises(ValueError, match=message):
        RelevantBound(**aims | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("found", "unread"), [(0, 0), (0, 11), (6, 5)])
def test_impossible_draws_are_refused(found: int, unread: int) -> None:
    bound = RelevantBound(records=10, target=0.95, alpha=0.05)
    with pytest.raises(ValueError, match="cannot be in a library of 10"):
        bound.draw(is_relevant=False, relevant=found, unread=unread)
