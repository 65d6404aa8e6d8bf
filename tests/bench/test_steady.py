"""The rule by which rates at a latency are measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.steady import steady_per_s


@given(st.integers(1, 50), st.integers(20, 60), st.floats(0.05, 3.0))
def test_full_waves_are_the_ideal_wherever_they_stand(
    slots: int, waves: int, latency_s: float
) -> None:
    answered = [latency_s * (1 + wave) for wave in range(waves) for _ in range(slots)]
    assert steady_per_s(answered, slots) == pytest.approx(slots / latency_s)


@given(st.lists(st.floats(0, 0.2), min_size=10, max_size=10))
def test_calls_that_come_when_they_like_are_the_same(offsets: list[float]) -> None:
    answered = sorted(0.2 * wave + at for wave in range(50) for at in offsets)
    assert steady_per_s(answered, 10) == pytest.approx(50)


def test_a_slow_start_and_stragglers_do_not_count() -> None:
    start = [0.2 * n for n in range(1, 21)]
    full = [5.0 + 0.01 * n for n in range(1000)]
    assert steady_per_s([*start, *full, 20.0, 25.0], 20) == pytest.approx(100)


def test_slots_that_stand_idle_do_count() -> None:
    lazy = [0.25 * wave for wave in range(100) for _ in range(7)]
    assert steady_per_s(lazy, 10) == pytest.approx(28, rel=0.01)


def test_a_run_of_a_few_waves_is_too_short() -> None:
    with pytest.raises(ValueError, match="too short"):
        steady_per_s([0.2] * 250, 100)
