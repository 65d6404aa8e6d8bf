"""Which refusals are one prompt's own, and which concern all tasks of a model."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from runner import errors as e
from runner.clients.client import Call
from runner.engine.failure_policy import (
    NOT_SERVED,
    SAME_REFUSALS,
    SAME_REFUSALS_AT_FIRST,
    SUSPECT_ATTEMPTS,
    Refusals,
)
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits
from runner.messages import Reply
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import ToySettings, run_virtual

UNKNOWN = e.NotServed("h answered 404: The model `x` does not exist.", status=404)


def refused(request_id: str) -> e.BadRequest:
    return e.BadRequest(f"h answered 400: no such option ({request_id})", status=400)


def test_an_unknown_model_stops_it_at_the_first_reply() -> None:
    assert Refusals().stops(UNKNOWN, 1) == str(UNKNOWN)


def test_a_model_that_has_answered_may_be_lost_for_a_moment() -> None:
    refusals = Refusals()
    refusals.answered()
    found = [refusals.stops(UNKNOWN, task) for task in range(NOT_SERVED)]
    assert found == [*[None] * (NOT_SERVED - 1), str(UNKNOWN)]
    refusals.answered()
    assert refusals.stops(UNKNOWN, 9) is None


def test_the_same_words_to_a_few_different_tasks_stop_the_model() -> None:
    refusals = Refusals()
    # a task that is refused again and again proves nothing about others
    assert [refusals.stops(refused("req_1"), 1) for _ in range(9)] == [None] * 9
    found = [
        refusals.stops(refused(f"req_{n}f3a9bc00{n}"), n)
        for n in range(2, SAME_REFUSALS_AT_FIRST + 1)
    ]
    assert found[:-1] == [None] * (SAME_REFUSALS_AT_FIRST - 2)
    assert "all refused alike: h answered 400" in (found[-1] or "")


def test_different_words_or_a_reply_between_stop_nothing() -> None:
    refusals = Refusals()
    for n in range(50):
        # as where each prompt is wrong in its own way
        wrong = e.BadRequest(f"field {'abcdefghij'[n % 10] * 3} is wrong", status=400)
        assert refusals.stops(wrong, n % 4) is None
    refusals.answered()
    for n in range(SAME_REFUSALS - 1):
        assert refusals.stops(refused("x"), n) is None
    refusals.answered()
    for n in range(SAME_REFUSALS - 1):
        assert refusals.stops(refused("x"), n) is None
    assert refusals.stops(refused("x"), SAME_REFUSALS) is not None


def test_a_gap_in_a_recording_stops_nothing() -> None:
    refusals = Refusals()
    gap = e.BadRequest("the recording has no such reply")
    assert not any(refusals.stops(gap, n) for n in range(50))
    assert not refusals.is_suspect(gap)


@pytest.mark.parametrize(
    "error",
    [UNKNOWN, refused("a"), e.Unavailable("there are no batches", status=404)],
    ids=["unknown model", "the same words", "a missing service"],
)
def test_what_all_tasks_share_leaves_them_open(error: e.AttemptError) -> None:
    async def main() -> None:
        async def answer(_: Call) -> Reply:
            raise type(error)(str(error), status=error.status)

        bench = Bench(answer, ToySettings(items=200))
        driver = await bench.driver()
        began = asyncio.get_running_loop().time()
        assert await driver.run() == "endpoint"
        assert str(error) in (driver.stopped or "")
        assert asyncio.get_running_loop().time() - began < 5
        states = await bench.states()
        assert not states["read FAILED"]
        assert sum(states.values()) == 200
        assert len(await bench.sent()) <= 2 * SAME_REFUSALS_AT_FIRST
        bench.answer = honest
        assert await bench.run() == "finished"
        assert (await bench.states())["read COMPLETED"] == 200

    run_virtual(main())


def test_one_bad_prompt_fails_by_itself_wherever_it_comes() -> None:
    async def main() -> None:
        for bad in ("i0", "i7"):

            def answer(call: Call, bad: str = bad) -> Reply:
                if call.task.key == bad:
                    raise refused("a")
                return honest(call)

            bench = Bench(answer, ToySettings(items=12, words=0))
            assert await bench.run() == "finished"
            assert await bench.states() == {"read COMPLETED": 11, "read FAILED": 1}
            tries = Counter(task for task, _ in await bench.sent())
            assert max(tries.values()) <= SUSPECT_ATTEMPTS

    run_virtual(main())


def test_prompts_that_are_all_bad_in_their_own_way_fail() -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            words = {"i0": "one", "i1": "two", "i2": "three"}
            raise e.BadRequest(f"field {words[call.task.key]}", status=400)

        bench = Bench(answer, ToySettings(items=3))
        assert await bench.run() == "finished"
        assert await bench.states() == {"read FAILED": 3}
        assert len(await bench.sent()) == 3 * SUSPECT_ATTEMPTS

    run_virtual(main())


def test_a_stopped_model_holds_no_other_up() -> None:
    endpoint = Endpoint("x")
    limits = Limits(concurrency=2)
    scheduler = Scheduler(
        [(model, ["s"], limits, endpoint) for model in ("a", "b")], deadline_s=60
    )
    scheduler.stop_model("a", "a is of no use")
    step = scheduler.step(0.0)
    assert {load.model for load in step.load} == {"b"}
    assert scheduler.futile is None  # the other one has yet to end
    assert not scheduler.is_out
    scheduler.stop_model("b", "b too")
    assert scheduler.is_out
    assert scheduler.futile == "a is of no use. b too"
    assert scheduler.stopped is None
