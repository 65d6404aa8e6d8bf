"""When a model is stopped because its replies are of no use."""

from __future__ import annotations

import math
import random

import pytest

from runner.clients.client import Call
from runner.engine.failure_policy import (
    ALPHA,
    LEAST_OUTCOMES,
    Flaw,
    FutilityMonitor,
    ShareEvidence,
    StopRule,
    flaws_of,
    rules_of,
)
from runner.messages import ParseFailure, Reply, Vectors
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
    with pytest.raises(ValueError, match="is no rule"):
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
