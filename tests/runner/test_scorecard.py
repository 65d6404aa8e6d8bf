"""A metric against its target."""

from __future__ import annotations

import pytest

from runner.scorecard import Metric, Target


@pytest.mark.parametrize(
    ("target", "value", "interval", "verdict"),
    [
        (Target(sense=">=", bound=0.85), 0.9, (0.86, 0.95), "pass"),
        (Target(sense=">=", bound=0.85), 0.85, (0.85, 0.85), "pass"),
        (Target(sense=">=", bound=0.85), 0.9, (0.8, 0.95), "undecided"),
        (Target(sense=">=", bound=0.85), 0.8, (0.7, 0.84), "fail"),
        (Target(sense=">=", bound=0.85), 0.8, (0.7, 0.85), "undecided"),
        (Target(sense="<", bound=0.05), 0.04, (0.01, 0.049), "pass"),
        (Target(sense="<", bound=0.05), 0.05, (0.05, 0.05), "fail"),
        (Target(sense="<=", bound=5), 5, (None, None), "undecided"),
        (Target(sense=">", bound=5), 5, (4, None), "undecided"),
        (Target(sense=">=", bound=0.85), None, (None, None), None),
    ],
)
def test_a_target_is_met_or_missed_where_the_whole_interval_says_so(
    target: Target,
    value: float | None,
    interval: tuple[float | None, float | None],
    verdict: str | None,
) -> None:
    lo, hi = interval
    metric = Metric(path="x", value=value, n=1, lo=lo, hi=hi, target=target)
    assert metric.verdict == verdict


def test_a_target_is_written_as_its_bound() -> None:
    assert str(Target(sense=">=", bound=0.85)) == ">= 0.85"
    assert str(Target(sense="<=", bound=5)) == "<= 5"


def test_a_metric_without_a_target_has_no_verdict() -> None:
    assert Metric(path="x", value=1.0, n=1).verdict is None
