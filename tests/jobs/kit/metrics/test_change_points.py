"""The test for a change: no more false alarms than it promises, and found changes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln

from jobs.kit.metrics.change_points import (
    MOVES,
    VerdictSequence,
    _log_marginals,
    change_test,
)

ALPHA = 0.05
PROVES = bool(os.environ.get("SIFTLOG_PROVE"))
LOGS = 10_000 if PROVES else 12
"""Null logs a share."""
CALLS = 1000
AFTER = 400


def sequence(
    values: Sequence[bool] | np.ndarray,
    *,
    strata: Sequence[int] | None = None,
    named: Sequence[int] = (),
) -> VerdictSequence:
    n = len(values)
    return VerdictSequence(
        calls=np.arange(n),
        values=np.array(values, dtype=np.bool_),
        strata=np.array([0] * n if strata is None else strata),
        planned=n,
        named=named,
    )


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_false_alarms_are_no_more_than_alpha_over_all_looks(share: float) -> None:
    chance = np.random.default_rng(int(share * 100))
    alarms = 0
    for _ in range(LOGS):
        named = [int(chance.integers(1, CALLS))]
        values = chance.random(CALLS) < share
        alarms += change_test(sequence(values, named=named)).is_detected(ALPHA)
    # at most ALPHA, as far as this many logs can tell
    assert alarms <= ALPHA * LOGS + 3 * math.sqrt(LOGS * ALPHA * (1 - ALPHA))


@pytest.mark.parametrize(("before", "least"), [(0.95, 0.9), (0.9, 0.75)])
def test_a_named_change_of_8_points_is_detected_within_400_calls(
    before: float, least: float
) -> None:
    chance = np.random.default_rng(1)
    logs = 400 if PROVES else 12
    found = 0
    for _ in range(logs):
        call = int(chance.integers(800, 1500))
        share = np.where(np.arange(call + AFTER) < call, before, before - 0.08)
        values = chance.random(call + AFTER) < share
        test = change_test(sequence(values, named=[call]))
        found += test.is_detected(ALPHA)
    assert found >= least * logs


def test_a_change_without_a_name_is_detected_where_it_is() -> None:
    chance = np.random.default_rng(2)
    share = np.where(np.arange(1200) < 800, 0.9, 0.7)
    test = change_test(sequence(chance.random(1200) < share))
    assert test.is_detected(ALPHA)
    assert test.call is not None
    assert abs(test.call - 800) <= 50
    assert test.detected_at is not None
    assert test.detected_at > 800
    assert test.before.n + test.after.n == 1200


def test_items_of_other_difficulty_are_no_change_if_their_stratum_says_so() -> None:
    chance = np.random.default_rng(3)
    strata = (np.arange(1000) >= 500).astype(int)
    values = chance.random(1000) < np.where(strata == 0, 0.95, 0.6)
    assert change_test(sequence(values)).is_detected(ALPHA)
    assert not change_test(sequence(values, strata=strata)).is_detected(ALPHA)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_integral_without_a_change_is_the_beta_function(s: int, f: int) -> None:
    none = np.zeros(1)
    (found,) = _log_marginals(
        np.array([float(s)]), np.array([float(f)]), none, none, 0.0
    )
    assert found == pytest.approx(betaln(s + 0.5, f + 0.5), abs=0.004)


@settings(max_examples=6)
@given(st.lists(st.booleans(), max_size=6), st.integers(1, 7))
def test_evidence_of_all_sequences_has_the_mean_1(first: list[bool], call: int) -> None:
    """The e-value is a ratio of two probabilities: over all ends it averages to 1."""
    rest = 8 - len(first)
    total = 0.0
    for bits in range(2**rest):
        values = [*first, *(bool(bits >> i & 1) for i in range(rest))]
        ones = sum(values)
        weight = math.exp(betaln(ones + 0.5, 8 - ones + 0.5))
        total += weight * change_test(sequence(values, named=[call])).e_value
    begun = sum(first)
    whole = math.exp(betaln(begun + 0.5, len(first) - begun + 0.5))
    prefix = change_test(sequence(first, named=[call] if call < len(first) else []))
    if call < len(first):
        assert total / whole == pytest.approx(prefix.e_value, rel=0.01)
    else:
        assert total / whole == pytest.approx(1.0, rel=0.01)


def test_the_most_likely_change_is_within_the_calls_that_were_made() -> None:
    """A model has a part of a run's planned tasks: later points have no verdicts."""
    chance = np.random.default_rng(3)
    values = np.array([*([True] * 50), *(chance.random(50) < 0.5)])
    for n in (10, 40, 63, 100):
        made = replace(sequence(values[:n]), planned=2000)
        found = change_test(made)
        assert found.call is None or found.call < n
        assert found.before.n + found.after.n == n
    assert found.call is not None


def test_nothing_to_test_is_no_evidence() -> None:
    assert change_test(sequence([])).e_value == 1.0
    assert change_test(sequence([True])).call is None
    with pytest.raises(ValueError, match="not within 1 calls"):
        sequence([True], named=[1])
    assert len(set(MOVES)) == len(MOVES)
