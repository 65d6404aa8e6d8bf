"""The values of a forecast and their texts; an estimate against its run's course."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.events import ExpectedUsage
from store.read.forecast import (
    ForecastInterval,
    Progress,
    UsageSoFar,
    best_rate,
    estimate_accuracy,
    progress_text,
    time_left_text,
)
from tests.replacing import replace


@given(st.dictionaries(st.integers(0, 60), st.integers(0, 99)))
def test_the_best_minutes_are_those_of_every_window(by_minute: dict[int, int]) -> None:
    first, last = min(by_minute, default=0), max(by_minute, default=0)
    windows = [
        sum(by_minute.get(t, 0) for t in range(at, at + 10)) / 10
        for at in range(first, last - 8)
    ]
    assert best_rate(by_minute) == (max(windows) if windows and by_minute else None)


EXPECTED = ExpectedUsage(
    tried=64,
    first=["read"],
    calls=(2.0, 3.0, 5.0),
    tokens_in=(100.0, 200.0, 300.0),
    tokens_out=(1.0, 2.0, 9.0),
    cost_usd=(0.1, 0.2, 0.5),
)


def test_what_is_done_so_far_tells_what_it_comes_to() -> None:
    found = estimate_accuracy(
        EXPECTED,
        50,
        UsageSoFar(calls=25, tokens_in=0, tokens_out=5, cost_usd=2.0),
        done=25 / 120,
        projected_usd=9.0,
    )
    assert found.done == pytest.approx(25 / 120)
    assert found.calls.low == 100
    assert found.calls.comes_to == pytest.approx(120)
    assert found.cost_usd is not None
    assert found.cost_usd.expected == pytest.approx(10.0)
    # the same figure as everywhere else
    assert found.cost_usd.comes_to == 9.0


def test_before_anything_has_ended_nothing_is_foretold() -> None:
    so_far = UsageSoFar(calls=0, tokens_in=0, tokens_out=0, cost_usd=None)
    found = estimate_accuracy(EXPECTED, 38, so_far, done=0.0, projected_usd=None)
    assert found.done == 0
    assert found.calls.comes_to is None


def test_an_unknown_price_is_no_prospect() -> None:
    so_far = UsageSoFar(calls=1, tokens_in=1, tokens_out=1, cost_usd=1.0)
    unpriced = replace(EXPECTED, cost_usd=None)
    whole = {"done": 1.0, "projected_usd": None}
    assert estimate_accuracy(unpriced, 1, so_far, **whole).cost_usd is None
    unknown = replace(so_far, cost_usd=None)
    assert estimate_accuracy(EXPECTED, 1, unknown, **whole).cost_usd is None


def _of(done: int, low: float, expected: float, high: float | None) -> Progress:
    remaining = ForecastInterval(low=low, expected=expected, high=high)
    return Progress(done=done, remaining=remaining)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(0, 1e7))
def test_more_done_is_never_less_progress(
    done: int, further: int, remaining: float
) -> None:
    before = _of(done, remaining, remaining, remaining).share
    after = _of(done + further, remaining, remaining, remaining).share
    assert 0 <= before <= after <= 1


def test_nothing_planned_is_no_progress_and_nothing_left_is_all() -> None:
    assert _of(0, 0, 0, None).share == 0
    assert _of(0, 0, 0, 0).share == 1
    assert _of(9, 0, 0, 0).share == 1


def test_a_total_is_only_about_known_while_follow_ups_are() -> None:
    assert progress_text(_of(10, 90, 90, 90)) == "10 of 100 done"
    assert progress_text(_of(10, 80, 94.4, 120)) == "10 of about 100 done"
    assert progress_text(_of(0, 7, 7, None)) == "0 of about 7 done"


def test_a_time_without_an_upper_end_says_at_least() -> None:
    left = ForecastInterval(low=60, expected=90, high=None)
    assert time_left_text(left) == "90 s (at least 60 s)"
