"""An estimate against its run's course."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.events import ExpectedUsage
from store.read.forecast import UsageSoFar, estimate_accuracy
from store.task import TaskState

S = TaskState
EXPECTED = ExpectedUsage(
    tried=64,
    first=["read"],
    calls=(2.0, 3.0, 5.0),
    tokens_in=(100.0, 200.0, 300.0),
    tokens_out=(1.0, 2.0, 9.0),
    cost_usd=(0.1, 0.2, 0.5),
)


@dataclass(frozen=True)
class Lane:
    """Tasks of one stage, by state."""

    stage: str
    states: Mapping[TaskState, int]


def test_what_is_done_so_far_tells_what_it_comes_to() -> None:
    lanes = [
        Lane("read", {S.COMPLETED: 9, S.FAILED: 1, S.QUEUED: 30, S.SKIPPED: 10}),
        Lane("ask", {S.COMPLETED: 15, S.RUNNING: 5}),
    ]
    # 40 readings with two questions each: 120 tasks, of which 25 have ended
    found = estimate_accuracy(
        EXPECTED,
        50,
        lanes,
        UsageSoFar(calls=25, tokens_in=0, tokens_out=5, cost_usd=2.0),
    )
    assert found.done == pytest.approx(25 / 120)
    assert found.calls.low == 100
    assert found.calls.comes_to == pytest.approx(120)
    assert found.cost_usd is not None
    assert found.cost_usd.expected == pytest.approx(10.0)
    assert found.cost_usd.comes_to == pytest.approx(2.0 * 120 / 25)


def test_before_anything_has_ended_nothing_is_foretold() -> None:
    lanes = [Lane("read", {S.RUNNING: 8, S.QUEUED: 30})]
    found = estimate_accuracy(
        EXPECTED,
        38,
        lanes,
        UsageSoFar(calls=0, tokens_in=0, tokens_out=0, cost_usd=None),
    )
    assert found.done == 0
    assert found.calls.comes_to is None


def test_an_unknown_price_is_no_prospect() -> None:
    lanes = [Lane("read", {S.COMPLETED: 1})]
    so_far = UsageSoFar(calls=1, tokens_in=1, tokens_out=1, cost_usd=1.0)
    unpriced = replace(EXPECTED, cost_usd=None)
    assert estimate_accuracy(unpriced, 1, lanes, so_far).cost_usd is None
    unknown = replace(so_far, cost_usd=None)
    assert estimate_accuracy(EXPECTED, 1, lanes, unknown).cost_usd is None


counts = st.integers(0, 50)


@given(st.lists(st.tuples(st.sampled_from(["read", "ask"]), counts, counts, counts)))
def test_no_run_is_more_than_done_and_a_finished_one_is(
    rows: list[tuple[str, int, int, int]],
) -> None:
    lanes = [
        Lane(stage, {S.COMPLETED: done, S.QUEUED: queued, S.SKIPPED: skipped})
        for stage, done, queued, skipped in rows
    ]
    so_far = UsageSoFar(calls=7, tokens_in=0, tokens_out=0, cost_usd=None)
    found = estimate_accuracy(EXPECTED, 9, lanes, so_far)
    assert 0 <= found.done <= 1
    first = sum(done for stage, done, _, _ in rows if stage == "read")
    if first and not any(queued for _, _, queued, _ in rows):
        assert found.done == 1
        assert found.calls.comes_to == 7
