"""How many tasks remain: those that are planned, and the follow-ups to come."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.events import ExpectedUsage
from store.read.remaining import (
    Remaining,
    remaining_cost,
    remaining_tasks,
    set_apart,
)
from store.read.status import QueueCounts
from store.task import TaskState
from tests.replacing import replace

S = TaskState
ORDER = ("read", "ask", "sum")
EXPECTED = ExpectedUsage(
    tried=64,
    first=["read"],
    calls=(4.0, 6.0, 8.0),
    tokens_in=(0.0, 0.0, 0.0),
    tokens_out=(0.0, 0.0, 0.0),
    cost_usd=(0.3, 0.6, 0.9),
)
"""Five follow-ups of each item, a tenth of a dollar a task."""


def queue(
    stage: str, *, model: str = "m", done: int = 0, queued: int = 0, **more: int
) -> QueueCounts:
    states = {S.COMPLETED: done, S.QUEUED: queued}
    return QueueCounts(
        stage=stage,
        model=model,
        states=states | {S[name.upper()]: n for name, n in more.items()},
    )


def in_order(queue: QueueCounts, expected: ExpectedUsage, replicates: int) -> list[int]:
    """Ended tasks of each item if they end in the order of the plan."""
    done = queue.states[S.COMPLETED]
    return [
        min(replicates, max(0, done - at * replicates))
        for at in range(len(expected.follow_ups))
    ]


def of(*queues: QueueCounts, **changed: Any) -> Remaining:
    fields: dict[str, Any] = {
        "order": ORDER,
        "first": ("read",),
        "expected": None,
        "consumed": 0,
        "is_exhausted": True,
    }
    fields |= changed
    if fields["expected"] is not None and "ended_items" not in fields:
        fields["ended_items"] = {
            q.model: in_order(q, fields["expected"], fields.get("replicates", 1))
            for q in queues
            if q.stage == "read"
        }
    return remaining_tasks(queues, **fields)


def more(remaining: Remaining) -> Mapping[tuple[str, str], float]:
    return {(q.stage, q.model): q.more for q in remaining.queues}


def test_follow_ups_to_come_are_as_many_as_those_that_came() -> None:
    found = of(queue("read", done=100, queued=50), queue("ask", done=200, queued=100))
    assert more(found)["ask", "m"] == pytest.approx(150, rel=0.01)
    assert found.progress.done == 300
    assert found.progress.remaining.expected == pytest.approx(300, rel=0.01)
    assert found.progress.remaining.low < 300
    assert (found.progress.remaining.high or 0) > 300


def test_what_follows_a_follow_up_is_expected_too() -> None:
    found = of(
        queue("read", done=100, queued=100),
        queue("ask", done=100, queued=100),
        queue("sum", done=50),
    )
    # 200 of 400 asked are planned and 100 have ended, which half a sum follows each
    assert more(found)["sum", "m"] == pytest.approx(0.5 * 300, rel=0.01)


def test_skipped_tasks_are_no_work_and_failed_ones_are_done() -> None:
    found = of(queue("read", done=5, failed=5, skipped=90, queued=10), order=("read",))
    assert (found.progress.done, found.progress.share) == (10, 0.5)


def test_models_may_follow_up_differently() -> None:
    found = of(
        queue("read", model="a", done=100, queued=100),
        queue("read", model="b", done=100, queued=100),
        queue("ask", model="a", done=900),
        queue("ask", model="b", done=100),
    )
    assert more(found)["ask", "a"] > 8 * 100
    assert more(found)["ask", "b"] < 2 * 100


def test_a_model_that_has_ended_nothing_is_expected_to_be_as_the_others() -> None:
    found = of(
        queue("read", model="a", done=100),
        queue("read", model="b", queued=100),
        queue("ask", model="a", done=300),
    )
    assert more(found)["ask", "b"] == pytest.approx(300)


def test_a_judge_follows_all_models() -> None:
    found = of(
        queue("read", model="a", done=10, queued=30),
        queue("read", model="b", done=30, queued=10),
        queue("sum", model="judge", done=40, queued=40),
    )
    assert more(found) == {
        ("read", "a"): 0,
        ("read", "b"): 0,
        ("sum", "judge"): pytest.approx(80),
    }


def test_the_estimate_counts_until_the_run_has_items_of_its_own() -> None:
    young = of(queue("read", queued=100), expected=EXPECTED, consumed=100)
    assert young.unseen == {"m": pytest.approx(500)}
    assert young.progress.remaining.expected == pytest.approx(600)
    grown = of(
        queue("read", done=80, queued=20),
        queue("ask", done=80),
        expected=EXPECTED,
        consumed=100,
    )
    assert 20 < more(grown)["ask", "m"] < 60  # 20 by the run, 420 by the estimate


def test_replicates_of_an_item_show_no_more_than_it_does() -> None:
    queues = (queue("read", done=90, queued=90), queue("ask", done=180, queued=90))
    once, often = of(*queues), of(*queues, replicates=9)
    # ten items and ten to come, instead of ninety: and so few are no sample
    assert often.error == pytest.approx(once.error * 3 * (1 + 8 / 20) / (1 + 8 / 180))
    assert often.progress.remaining.low < once.progress.remaining.low
    told = {"expected": EXPECTED, "consumed": 180}
    # ten items of three follow-ups each, and an estimate of five
    weak, strong = of(*queues, **told), of(*queues, replicates=9, **told)
    assert strong.more > weak.more


def test_without_an_estimate_and_an_ended_item_there_is_no_upper_end() -> None:
    assert of(queue("read", queued=9)).progress.remaining.high is None
    assert of(queue("read", done=1, queued=8)).progress.remaining.high is not None


def test_a_plan_that_is_still_read_has_no_upper_end() -> None:
    found = of(queue("read", done=10, queued=90), is_exhausted=False)
    assert found.progress.remaining.high is None


def test_nothing_planned_is_no_progress() -> None:
    assert of(is_exhausted=False).progress.share == 0


def test_what_remains_costs_as_what_is_done() -> None:
    found = of(queue("read", done=100, queued=50), queue("ask", done=200, queued=100))
    costs = {("read", "m"): (10.0, 100), ("ask", "m"): (2.0, 200)}
    cost = remaining_cost(found, costs, None)
    assert cost is not None
    assert cost.usd.expected == pytest.approx(50 * 0.1 + 250 * 0.01, rel=0.02)
    assert cost.usd.low < cost.usd.expected < (cost.usd.high or 0)
    assert cost.models == {"m": pytest.approx(cost.usd.expected)}


def test_before_an_answer_the_estimate_tells_the_cost() -> None:
    young = of(queue("read", queued=100), expected=EXPECTED, consumed=100)
    cost = remaining_cost(young, {}, EXPECTED)
    assert cost is not None
    assert cost.usd.expected == pytest.approx(60.0)
    assert remaining_cost(young, {}, None) is None


counts = st.integers(0, 300)
runs = st.lists(
    st.builds(
        queue,
        st.sampled_from(ORDER),
        model=st.sampled_from("ab"),
        done=counts,
        queued=counts,
        skipped=counts,
        waiting=counts,
    ),
    unique_by=lambda each: each.key,
)


@given(runs, st.sampled_from((None, EXPECTED)), counts, st.booleans())
def test_every_estimate_lies_in_its_interval_and_repeats(
    queues: list[QueueCounts],
    expected: ExpectedUsage | None,
    consumed: int,
    is_exhausted: bool,
) -> None:
    given = {"expected": expected, "consumed": consumed, "is_exhausted": is_exhausted}
    found = of(*queues, **given)
    progress = found.progress
    assert progress == of(*queues, **given).progress
    assert 0 <= progress.share <= 1
    remaining = progress.remaining
    assert remaining.low <= remaining.expected
    assert remaining.high is None or remaining.expected <= remaining.high
    planned = sum(queue.states[S.QUEUED] + queue.states[S.WAITING] for queue in queues)
    assert remaining.low >= planned - 1e-6


@given(runs)
def test_a_run_with_nothing_open_is_done(queues: list[QueueCounts]) -> None:
    ended = [queue(q.stage, model=q.model, done=q.states[S.COMPLETED]) for q in queues]
    assert of(*ended).progress.share == 1


def test_the_interval_holds_when_few_papers_are_uneven() -> None:
    # eight papers in nine replicates: five with thirty questions, then three with five
    found = of(queue("read", done=45, queued=27), queue("ask", done=1350), replicates=9)
    left = found.progress.remaining
    assert left.high is not None
    assert left.low < 27 + 3 * 9 * 5 < left.high


LAST_PAPERS = replace(
    EXPECTED, tried=34, calls=(5.0, 11.0, 20.0), follow_ups=[0.0] * 24 + [34.0] * 10
)
"""A plan of 34 papers of which the last ten have all the questions."""


def test_papers_with_questions_may_come_last() -> None:
    named = {"expected": LAST_PAPERS, "consumed": 34}
    for ended, planned in ((2, 0), (20, 0), (29, 85), (32, 136)):
        found = of(
            queue("read", done=ended, queued=34 - ended),
            queue("ask", done=planned),
            **named,
        )
        # half as many as are expected of each, once the run shows it
        left = found.progress.remaining
        assert left.high is not None
        assert left.low < 34 - ended + 170 - planned < left.high


def test_papers_need_not_end_in_the_order_of_the_plan() -> None:
    # the ten with questions ended first, such as after a process was killed
    found = of(
        queue("read", done=10, queued=24),
        queue("ask", done=340),
        expected=LAST_PAPERS,
        consumed=34,
        ended_items={"m": [0] * 24 + [1] * 10},
    )
    assert found.progress.remaining.expected < 24 + 30


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=64), st.integers(1, 3), st.data()
)
def test_each_item_that_ends_leaves_fewer_follow_ups(
    each: list[int], replicates: int, data: st.DataObject
) -> None:
    tasks = len(each) * replicates
    ended = sorted(data.draw(st.lists(st.integers(0, tasks), min_size=2)))
    total = tasks + sum(each) * replicates
    plan = replace(
        EXPECTED,
        calls=(0.0, total / len(each), 0.0),
        follow_ups=[float(n) for n in each],
    )
    left = [
        of(
            queue("read", done=n, queued=tasks - n),
            expected=plan,
            consumed=len(each),
            replicates=replicates,
        ).more
        for n in (0, *ended, tasks)
    ]
    assert left[0] == pytest.approx(sum(each) * replicates)
    assert all(later <= before + 1e-9 for before, later in pairwise(left))
    assert left[-1] == pytest.approx(0)


def test_two_items_without_follow_ups_are_no_proof_that_there_are_none() -> None:
    none = replace(EXPECTED, tried=2, calls=(1.0, 1.0, 1.0))
    named = {"expected": none, "consumed": 34}
    few = of(queue("read", done=2, queued=32), **named)
    assert few.progress.remaining.high is None
    many = of(queue("read", done=9, queued=25), **named)
    assert many.progress.remaining.high == 25


def test_tasks_of_a_paused_model_are_set_apart_with_their_follow_ups() -> None:
    found = of(
        queue("read", model="a", done=50, queued=50),
        queue("read", model="b", done=50, queued=50),
        queue("ask", model="a", done=100),
        queue("ask", model="b", done=90, queued=10),
    )
    active, paused = set_apart(found, lambda _, model: model == "b")
    assert paused == pytest.approx(50 + 10 + more(found)["ask", "b"])
    assert active.left == pytest.approx(50 + more(found)["ask", "a"])


def test_open_follow_ups_of_a_paused_stage_go_on_and_expected_ones_wait() -> None:
    found = of(queue("read", done=50, queued=50), queue("ask", done=90, queued=10))
    active, paused = set_apart(found, lambda stage, _: stage == "read")
    assert active.left == pytest.approx(10)
    assert paused == pytest.approx(found.left - 10)


def test_without_a_pause_nothing_is_set_apart() -> None:
    found = of(queue("read", done=5, queued=50), queue("ask", done=9, queued=1))
    assert set_apart(found, lambda _stage, _model: False) == (found, 0.0)


def test_unknown_follow_ups_wait_with_the_first_stage() -> None:
    found = of(queue("read", queued=100), expected=EXPECTED, consumed=100)
    active, paused = set_apart(found, lambda _stage, _model: True)
    assert (active.left, paused) == (0.0, pytest.approx(600))
