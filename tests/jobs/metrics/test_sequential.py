"""The sequential look: right at all looks together, where a fixed interval is not."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.metrics import ConfidenceSequence
from jobs.metrics.columns import Floats

ALPHA = 0.05
WORLDS = 2000 if os.environ.get("SIFTLOG_PROVE") else 150
UNITS = 500

Draw = Callable[[np.random.Generator], Floats]


def _clustered(chance: np.random.Generator) -> Floats:
    """Papers of 1 to 12 questions that share a difficulty, each the mean of its own."""
    sizes = chance.integers(1, 13, UNITS)
    lean = chance.choice([-0.6, 0.6], UNITS)
    return np.array(
        [
            chance.choice([-1, 0, 1], size, p=_leaning(at)).mean()
            for size, at in zip(sizes, lean, strict=True)
        ]
    )


def _leaning(at: float) -> list[float]:
    return [0.4 - at / 2, 0.2, 0.4 + at / 2]


NULLS: dict[str, Draw] = {
    "symmetric": lambda chance: chance.choice([-1.0, 0.0, 1.0], UNITS),
    "mostly ties": lambda chance: chance.choice(
        [-1.0, 0.0, 1.0], UNITS, p=[0.02, 0.96, 0.02]
    ),
    "skewed": lambda chance: np.where(chance.random(UNITS) < 0.9, -0.1, 0.9),
    "uniform": lambda chance: chance.uniform(-1, 1, UNITS),
    "clustered": _clustered,
}


@pytest.mark.parametrize("null", NULLS)
def test_looking_after_every_unit_is_wrong_no_more_often_than_alpha(null: str) -> None:
    chance = np.random.default_rng(20260118)
    wrong = sum(_is_decided(NULLS[null](chance)) for _ in range(WORLDS))
    assert wrong / WORLDS <= ALPHA


def test_an_interval_of_one_look_is_wrong_far_more_often_when_looked_at_often() -> None:
    chance = np.random.default_rng(20260118)
    wrong = sum(_is_naively_decided(NULLS["symmetric"](chance)) for _ in range(WORLDS))
    assert wrong / WORLDS > 4 * ALPHA


def test_a_difference_is_found_and_a_large_one_soon() -> None:
    chance = np.random.default_rng(20260118)
    needed = []
    for gain in (0.25, 0.5):
        shares = [(0.6 - gain) / 2, 0.4, (0.6 + gain) / 2]
        found = [
            ConfidenceSequence(
                values=chance.choice([-1.0, 0.0, 1.0], UNITS, p=shares).tolist()
            )
            for _ in range(60)
        ]
        at = [each.first_above(0) for each in found]
        needed.append(float(np.median([UNITS if n is None else n for n in at])))
        assert all(n is not None for n in at)
        assert all(each.first_below(0) is None for each in found)
    assert needed[1] < needed[0] < UNITS / 2


def test_the_mean_is_missed_at_some_look_no_more_often_than_alpha() -> None:
    chance = np.random.default_rng(20260118)
    missed = 0
    for _ in range(WORLDS):
        values = chance.choice([-1.0, 0.0, 1.0], UNITS, p=[0.1, 0.5, 0.4]).tolist()
        interval = ConfidenceSequence(values=values).interval
        assert interval.lo is not None
        assert interval.hi is not None
        # ends only ever come nearer, so that the last interval tells of all looks
        missed += not interval.lo < 0.3 < interval.hi
    assert missed / WORLDS <= ALPHA


def test_capital_is_what_the_formula_says_in_exact_numbers() -> None:
    """Theorem 3, its bets as floats and everything else as fractions."""
    values = [1.0, -0.5, 1.0, 0.25, 1.0, 1.0]
    seen = ConfidenceSequence(values=values, alpha=0.9)
    xs = [(Fraction(value) + 1) / 2 for value in values]
    m, capital, exact = Fraction(1, 2), Fraction(1), []
    total, squares = Fraction(1, 2), Fraction(1, 4)
    for t, x in enumerate(xs, 1):
        variance = squares / t
        spread = float(variance) * t * math.log(t + 1)
        stake = min(math.sqrt(2 * math.log(2 / 0.9) / spread), 0.5 / float(m))
        capital *= 1 + Fraction(stake) * (x - m)
        exact.append(float(capital))
        total += x
        squares += (x - total / (t + 1)) ** 2
    rich = next(i for i, each in enumerate(exact, 1) if each >= 2 / 0.9)
    assert seen.first_above(0) == rich


VALUES = st.lists(st.floats(-1, 1), max_size=40)


@given(VALUES)
def test_turned_around_everything_is(values: list[float]) -> None:
    seen = ConfidenceSequence(values=values, alpha=0.5)
    turned = ConfidenceSequence(values=[-value for value in values], alpha=0.5)
    assert seen.first_above(0.125) == turned.first_below(-0.125)
    lo, hi = seen.interval.lo, seen.interval.hi
    assert lo is not None
    assert hi is not None
    assert (turned.interval.lo, turned.interval.hi) == (-hi, -lo)


@given(VALUES, VALUES)
def test_what_follows_changes_no_decision_and_never_widens(
    values: list[float], more: list[float]
) -> None:
    before = ConfidenceSequence(values=values, alpha=0.5)
    after = ConfidenceSequence(values=[*values, *more], alpha=0.5)
    if before.first_above(0) is not None:
        assert after.first_above(0) == before.first_above(0)
    assert after.after(len(values)) == before
    was, is_now = before.interval, after.interval
    assert None not in {was.lo, was.hi, is_now.lo, is_now.hi}
    assert (was.lo or 0.0) <= (is_now.lo or 0.0)
    assert (is_now.hi or 0.0) <= (was.hi or 0.0)


@given(VALUES.filter(bool), st.floats(-1, 1), st.floats(-1, 1))
def test_a_higher_bound_is_never_passed_sooner(
    values: list[float], one: float, other: float
) -> None:
    seen = ConfidenceSequence(values=values, alpha=0.5)
    low, high = sorted((one, other))
    of_high = seen.first_above(high)
    of_low = seen.first_above(low)
    assert of_high is None or (of_low is not None and of_low <= of_high)


def test_nothing_is_known_of_no_units_and_little_of_ties() -> None:
    nothing = ConfidenceSequence(values=[])
    assert (nothing.mean, nothing.interval.lo, nothing.interval.hi) == (None, -1, 1)
    ties = ConfidenceSequence(values=[0.0] * 400)
    assert ties.first_above(0) is None
    assert ties.first_above(-0.05) is not None
    assert ties.first_below(0.05) == ties.first_above(-0.05)


def test_long_runs_of_wins_are_no_error() -> None:
    assert ConfidenceSequence(values=[1.0] * 5000).interval.hi == 1


@pytest.mark.parametrize("values", [[1.5], [-1.01], [math.nan]])
def test_values_beyond_a_difference_of_shares_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="from -1 to 1"):
        ConfidenceSequence(values=values)


@pytest.mark.parametrize("alpha", [0, 1, -0.1])
def test_alpha_is_a_chance(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        ConfidenceSequence(values=[], alpha=alpha)


def _is_decided(values: Floats) -> bool:
    seen = ConfidenceSequence(values=values.tolist(), alpha=ALPHA)
    return seen.first_above(0) is not None or seen.first_below(0) is not None


def _is_naively_decided(values: Sequence[float] | Floats) -> bool:
    """Whether the usual 95 % interval leaves 0 out at any look from the 20th on."""
    xs = np.asarray(values, dtype=np.float64)
    n = np.arange(1, len(xs) + 1)
    means = np.cumsum(xs) / n
    spread = np.sqrt(np.maximum(np.cumsum(xs**2) / n - means**2, 0) / n)
    return bool((np.abs(means) > 1.96 * spread)[19:].any())
