"""When a model is stopped because its replies are of no use.

Which refusals are one prompt's own, and which concern all tasks of a model. The retry
table: every class of failure has one bounded decision.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import errors as e
from runner.clients.client import Call
from runner.engine.failure_policy import (
    ALPHA,
    LEAST_OUTCOMES,
    MAX_ATTEMPTS,
    NOT_SERVED,
    RETRY_RULES,
    SAME_REFUSALS,
    SAME_REFUSALS_AT_FIRST,
    SUSPECT_ATTEMPTS,
    Flaw,
    FutilityMonitor,
    Refusals,
    ShareEvidence,
    StopRule,
    decide_retry,
    flaws_of,
    rules_of,
)
from runner.engine.model_queue import ModelQueue
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits
from runner.messages import ParseFailure, Reply, Vectors
from runner.money.budget import Budget
from store.events import TaskCompleted
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import ToySettings, run_virtual

CUT = Reply(text="", finish_reason="length")
CLEAN: frozenset[Flaw] = frozenset()


@pytest.mark.parametrize(
    ("typed", "flaw", "share"),
    [
        ("unparsed>50%", Flaw.UNPARSED, 0.5),
        (" truncated > 30 % ", Flaw.TRUNCATED, 0.3),
        ("failed>2.5%", Flaw.FAILED, 0.025),
    ],
)
def test_a_rule_is_read_as_it_is_typed(typed: str, flaw: Flaw, share: float) -> None:
    rule = StopRule.of(typed)
    assert (rule.flaw, rule.share) == (flaw, pytest.approx(share))
    assert StopRule.of(str(rule)) == rule


@pytest.mark.parametrize(
    "typed", ["unparsed", "unparsed>0%", "unparsed>100%", "late>5%", "unparsed<5%", ""]
)
def test_what_is_no_rule_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match="is not a rule"):
        StopRule.of(typed)


def test_rules_come_by_commas_or_one_by_one_and_off_alone() -> None:
    assert rules_of(["unparsed>5%,failed>6%"]) == rules_of(["unparsed>5%", "failed>6%"])
    assert rules_of(["off"]) == ()
    with pytest.raises(ValueError, match="off"):
        rules_of(["off", "failed>6%"])


def test_flaws_of_a_reply() -> None:
    unread = ParseFailure(reason="no_list")
    assert flaws_of(CUT, unread) == {Flaw.TRUNCATED, Flaw.EMPTY, Flaw.UNPARSED}
    assert flaws_of(Reply(text="a"), "a") == frozenset()
    assert flaws_of(Reply(text="no", finish_reason="refusal"), "no") == {Flaw.REFUSED}
    assert flaws_of(Reply(text="x", finish_reason="content_filter"), unread) == {
        Flaw.FILTERED,
        Flaw.UNPARSED,
    }
    assert flaws_of(Vectors(packed=()), ()) == frozenset()


def fires_after(share: float, limit: float, most: int, seed: int) -> int | None:
    """Outcomes until the gate fires, looked at after each; None: it never did."""
    chance = random.Random(seed)
    gate = FutilityMonitor([StopRule(flaw=Flaw.UNPARSED, share=limit)], ["m"])
    for n in range(1, most + 1):
        bad = frozenset({Flaw.UNPARSED}) if chance.random() < share else CLEAN
        if gate.judge("m", bad) is not None:
            return n
    return None


@pytest.mark.parametrize("limit", [0.05, 0.5, 0.9])
def test_a_share_at_the_limit_stops_no_more_runs_than_stated(limit: float) -> None:
    """The error rate of the docstring, at a level that few enough runs can show."""
    alpha, runs, length = 0.05, 1000, 400
    evidence = ShareEvidence(limit)
    fired = 0
    for seed in range(runs):
        chance = random.Random(f"{limit} {seed}")
        hits = 0
        for n in range(1, length + 1):
            hits += chance.random() < limit
            if evidence.log(hits, n - hits) >= -math.log(alpha):
                fired += 1
                break
    # not merely never: the test has power at its own limit
    assert 0 < fired <= alpha * runs


def test_the_gate_itself_is_not_fired_by_chance() -> None:
    # 1,000 runs of 300 outcomes at the limit: 1 expected at most, 6 would be a
    # mistake (a Poisson variable of mean 1 reaches 6 in 0.06 % of cases)
    fired = [fires_after(0.5, 0.5, 300, seed) for seed in range(1000)]
    assert sum(n is not None for n in fired) < 6
    assert ALPHA == 0.001


def test_evidence_has_mean_one_at_the_limit_and_less_below_it() -> None:
    """E is a likelihood ratio: exact over all outcomes of a fixed length."""
    evidence, n = ShareEvidence(0.3), 12

    def mean(share: float) -> float:
        return sum(
            math.comb(n, k)
            * share**k
            * (1 - share) ** (n - k)
            * math.exp(_log(evidence, k, n - k))
            for k in range(n + 1)
        )

    assert mean(0.3) == pytest.approx(1, abs=1e-9)
    assert mean(0.2) < 1 < mean(0.5)


def _log(evidence: ShareEvidence, hits: int, others: int) -> float:
    """The logarithm without the shortcut for healthy runs."""
    terms = [
        hits * gain + others * loss
        for gain, loss in zip(evidence._gains, evidence._losses, strict=True)
    ]
    return math.log(sum(map(math.exp, terms)) / len(terms))


def test_the_shortcut_hides_no_evidence() -> None:
    evidence = ShareEvidence(0.3)
    for n in range(1, 60):
        for hits in range(n + 1):
            exact, quick = _log(evidence, hits, n - hits), evidence.log(hits, n - hits)
            assert quick == pytest.approx(exact) or (quick == 0 and exact <= 0)


def test_nothing_but_useless_replies_is_seen_within_thirty() -> None:
    n = fires_after(1.0, 0.5, 100, seed=1)
    assert n is not None
    assert LEAST_OUTCOMES <= n <= 30


def test_a_share_well_above_the_limit_is_seen_in_time() -> None:
    found = sorted(fires_after(0.8, 0.5, 1000, seed) or 1000 for seed in range(100))
    assert found[50] < 100
    assert found[-1] < 400


def test_a_run_of_truncated_replies_drains_with_its_tasks_open() -> None:
    async def main() -> None:
        bench = Bench(lambda _: CUT, ToySettings(items=375))
        bench.futility = FutilityMonitor(rules_of(["unusable>50%"]), ["m"])
        driver = await bench.driver()
        assert await driver.run() == "futility"
        assert driver.futile is not None
        assert "20 of 20 replies" in driver.futile
        assert "20 truncated, 20 empty, 20 unparsed" in driver.futile
        states = await bench.states()
        assert LEAST_OUTCOMES <= states["read COMPLETED"] <= 30
        assert states["read COMPLETED"] + states["read QUEUED"] == 375
        # a plain resume judges anew, by what it pays for itself
        assert await bench.run() == "finished"

    run_virtual(main())


def test_a_later_process_judges_its_own_replies_alone() -> None:
    async def main() -> None:
        bench = Bench(lambda _: CUT, ToySettings(items=375))
        for times in (1, 2):
            bench.futility = FutilityMonitor(rules_of(["unusable>50%"]), ["m"])
            assert await bench.run() == "futility"
            done = (await bench.states())["read COMPLETED"]
            assert LEAST_OUTCOMES * times <= done <= 30 * times
        bench.futility = FutilityMonitor(rules_of(["off"]), ["m"])
        assert await bench.run() == "finished"
        assert await bench.states() == {"read COMPLETED": 375}

    run_virtual(main())


def test_replies_that_are_asked_again_count_each_time() -> None:
    async def main() -> None:
        bench = Bench(lambda _: Reply(text=""), ToySettings(items=100, reask=2))
        bench.futility = FutilityMonitor(rules_of(["empty>50%"]), ["m"])
        driver = await bench.driver()
        assert await driver.run() == "futility"
        recorded = await bench.log.events(limit=10_000, kinds=["attempt_answered"])
        assert LEAST_OUTCOMES <= len(recorded) <= 40

    run_virtual(main())


def test_a_good_run_is_never_stopped() -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            bad = call.task.stage == "read" and int(call.task.key[1:]) % 10 < 4
            return CUT if bad else honest(call)

        bench = Bench(answer, ToySettings(items=500, words=0))
        bench.futility = FutilityMonitor(rules_of(["unusable>50%"]), ["m"])
        assert await bench.run() == "finished"
        ends = await bench.log.events(limit=10_000, kinds=["task_completed"])
        unread = sum(
            isinstance(end.event, TaskCompleted) and end.event.unparsed is not None
            for end in ends
        )
        assert unread == 200

    run_virtual(main())


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


def test_a_model_is_stopped_once_and_for_the_first_reason() -> None:
    queue = ModelQueue("a", ["s"], Limits(concurrency=2), Endpoint("x"), Budget())
    assert queue.refused(UNKNOWN, 1) is not None
    assert queue.refused(e.NotServed("h answered 404: Gone.", status=404), 2) is None
    assert queue.stop is not None
    assert queue.stop.reason == str(UNKNOWN)


LEAVES = e.AttemptError.__subclasses__()


def _decide(error: e.AttemptError, **changes: float) -> object:
    given = {
        "same": 1,
        "attempts": 1,
        "elapsed_s": 0,
        "deadline_s": 3600,
        "chance": 0.5,
    }
    return decide_retry(error, **{**given, **changes})


def test_every_class_of_failure_stands_in_the_table() -> None:
    assert set(RETRY_RULES) == set(LEAVES)


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_class_of_failure_says_what_it_is(leaf: type[e.AttemptError]) -> None:
    assert leaf.__doc__
    assert leaf.__doc__ != e.AttemptError.__doc__


@pytest.mark.parametrize(
    "final", [e.BadRequest, e.ContextTooLong, e.ContentFiltered, e.BudgetExceeded]
)
def test_what_cannot_get_better_is_never_repeated(final: type[e.AttemptError]) -> None:
    assert _decide(final("no")).retry_in_s is None


def test_retry_after_is_obeyed_and_pauses_the_endpoint() -> None:
    decision = _decide(e.RateLimited("slow down", retry_after_s=7.0), chance=0.0)
    assert decision.retry_in_s == 7.0
    assert decision.pause_endpoint_s == 7.0


def test_backoff_doubles_up_to_its_cap() -> None:
    delays = [
        _decide(e.ServerError("broken"), same=n, chance=1.0).retry_in_s
        for n in range(1, 8)
    ]
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]


@pytest.mark.parametrize("leaf", LEAVES)
def test_an_outage_of_any_length_is_a_decision(leaf: type[e.AttemptError]) -> None:
    decision = _decide(leaf("again"), same=100_000, chance=0.999)
    assert decision.retry_in_s is None or decision.retry_in_s <= RETRY_RULES[leaf].cap_s


def test_a_wrong_key_stops_the_endpoint_and_blames_no_task() -> None:
    decision = _decide(e.AuthFailed("401"))
    assert decision.retry_in_s == 0.0


@given(
    leaf=st.sampled_from(LEAVES),
    same=st.integers(1, 40),
    tries=st.integers(1, 60),
    elapsed=st.floats(0, 1e5),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_retries_are_bounded_by_class_by_task_and_by_deadline(
    leaf: type[e.AttemptError], same: int, tries: int, elapsed: float, chance: float
) -> None:
    decision = decide_retry(
        leaf("failed"),
        same=same,
        attempts=tries,
        elapsed_s=elapsed,
        deadline_s=3600.0,
        chance=chance,
    )
    if decision.retry_in_s is not None and not RETRY_RULES[leaf].stops_endpoint:
        assert same < RETRY_RULES[leaf].max_attempts
        assert tries < MAX_ATTEMPTS
        assert elapsed + decision.retry_in_s <= 3600.0
