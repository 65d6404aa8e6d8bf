"""Requests to a live run, on a virtual clock: answered, carried out, and repeatable."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.engine.driver import Driver
from runner.limits.limiter import Limits
from runner.money.budget import Budget
from runner.run.control import POLL_S, Act, LiveRun
from store.control import Command
from store.events import (
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    LimitObserved,
    RunPaused,
)
from store.task import pico
from tests.runner.run.live import Live, nothing
from tests.runner.toy_jobs import VirtualLoop, run_virtual

WITHIN_S = 1.0
"""What was asked is seen to take effect within this time."""


def test_a_pause_counts_the_calls_of_its_model_and_none_of_a_stage(
    tmp_path: Path,
) -> None:
    async def plot(live: Live, driver: Driver) -> None:
        await asyncio.sleep(3.3)
        assert driver.in_flight() == driver.in_flight("m") > 0
        assert driver.in_flight("another") == 0
        live.ask("pause", stage="sum")
        live.ask("pause", model="m")
        await asyncio.sleep(WITHIN_S)
        live.ask("resume")

    async def main() -> None:
        live = Live(tmp_path)
        assert await live.run(plot) == "finished"
        answers = await live.answers()
        stage, model = [a.effect for a in answers if isinstance(a, CommandApplied)][:2]
        assert stage == "paused: stage sum (by ops); its calls in flight finish"
        assert re.fullmatch(
            r"paused: model m \(by ops\); (\d+ calls in flight finish|no call is .*)",
            model,
        )

    run_virtual(main())


def test_a_pause_holds_and_a_resume_lifts_it_and_both_within_a_second(
    tmp_path: Path,
) -> None:
    async def plot(live: Live, driver: Driver) -> None:
        await asyncio.sleep(3.3)
        live.ask("pause")
        await asyncio.sleep(WITHIN_S)
        started = driver.statistics().started
        assert [str(p) for p in driver.statistics().pauses] == ["the run (by ops)"]
        await asyncio.sleep(500)
        assert driver.statistics().started == started
        assert driver.statistics().in_flight == 0
        live.ask("resume")
        await asyncio.sleep(WITHIN_S)
        assert driver.statistics().started > started
        assert driver.statistics().pauses == ()

    async def main() -> None:
        live = Live(tmp_path)
        assert await live.run(plot) == "finished"
        paused, lifted = (
            r.event for r in await live.bench.log.events(kinds=["run_paused"], limit=9)
        )
        assert paused == RunPaused(by="ops", paused=True)
        assert lifted == RunPaused(by="ops", paused=False)

    run_virtual(main())


def test_every_request_is_accepted_and_then_applied_or_else_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    asked = (
        ("pause", {"stage": "nowhere"}, "use read, ask, sum"),
        ("pause", {"model": "n"}, "there is no model 'n' here: use m"),
        ("resume", {}, "the run is not paused"),
        ("limits", {"model": "n", "rpm": 5}, "use m"),
        ("limits", {}, "no limit was named"),
        ("limits", {"rpm": 0}, "rpm must be above 0"),
        ("limits", {"concurrency": None}, "concurrency must be above 0"),
        ("limits", {"concurrency": 1.5}, "whole number"),
        ("budget", {"add_usd": 5}, "the run has no budget"),
        ("budget", {"add_usd": -5}, "more than 0"),
        ("budget", {"add_usd": 10**400}, "at most 1,000,000,000,000 dollars"),
        ("dance", {}, "this siftlog cannot dance"),
        ("pause", {"stage": "sum"}, None),
        ("resume", {"stage": "read"}, "not paused; paused is: stage sum (by ops)"),
        ("resume", {"stage": "sum"}, None),
        ("limits", {"rpm": 5000}, None),
    )

    async def plot(live: Live, driver: Driver) -> None:
        del driver
        for kind, payload, _ in asked:
            live.ask(kind, **payload)

    async def main() -> None:
        live = Live(tmp_path)
        await live.run(plot)
        answers = await live.answers()
        for number, (kind, _, reason) in enumerate(asked):
            mine = [a for a in answers if a.command == f"{kind}-{number}"]
            if reason is None:
                assert [type(a) for a in mine] == [CommandAccepted, CommandApplied]
            else:
                (refused,) = mine
                assert isinstance(refused, CommandRejected)
                assert reason in refused.reason

    run_virtual(main())


def test_limits_change_while_calls_are_made_and_hold_for_the_next_process(
    tmp_path: Path,
) -> None:
    async def plot(live: Live, driver: Driver) -> None:
        await asyncio.sleep(2.5)
        live.ask("limits", model="m", concurrency=1, rpm=30)
        live.ask("limits", tpm=100_000)
        await asyncio.sleep(WITHIN_S + 2)
        assert driver.statistics().in_flight <= 1
        driver.drain()

    def same(limits: Limits) -> Callable[[Live, Driver], Any]:
        async def plot(live: Live, driver: Driver) -> None:
            del live
            assert driver.limits("m") == limits

        return plot

    async def main() -> None:
        live = Live(tmp_path, items=20)
        await live.run(plot)
        rows = await live.bench.log.events(kinds=["limit_observed"], limit=99)
        observed = [r.event for r in rows if isinstance(r.event, LimitObserved)]
        assert (observed[-1].concurrency, observed[-1].rpm) == (1, 30)
        kinds = ["limit_observed", "command_applied"]
        rows = await live.bench.log.events(kinds=kinds, limit=99)
        first = next(at for at, r in enumerate(rows) if r.kind == kinds[1])
        before = rows[first - 1].event
        assert isinstance(before, LimitObserved), "seen no later than it is applied"
        assert (before.concurrency, before.rpm) == (1, 30)
        await live.run(
            same(Limits(concurrency=4, tpm=100_000)), own=("concurrency", "rpm")
        )

    run_virtual(main())


def test_the_limits_of_an_earlier_request_hold_for_a_process_without_its_own(
    tmp_path: Path,
) -> None:
    seen: list[Limits] = []

    async def look(live: Live, driver: Driver) -> None:
        live.ask("limits", concurrency=2, rpm=600)
        await asyncio.sleep(WITHIN_S)
        live.ask("limits", rpm=None)
        await asyncio.sleep(WITHIN_S)
        seen.append(driver.limits("m"))
        driver.drain()

    async def look_again(live: Live, driver: Driver) -> None:
        del live
        seen.append(driver.limits("m"))

    async def main() -> None:
        live = Live(tmp_path, items=10)
        await live.run(look)
        await live.run(look_again)
        assert seen == [Limits(concurrency=2)] * 2

    run_virtual(main())


def test_a_budget_is_raised_by_what_was_asked(tmp_path: Path) -> None:
    async def plot(live: Live, driver: Driver) -> None:
        del driver
        live.ask("budget", add_usd=2.5)

    async def main() -> None:
        live = Live(tmp_path)
        live.bench.budget = Budget(pico(10))
        await live.run(plot)
        assert live.bench.budget.statistics().cap_pico == pico(12.5)
        (applied,) = [a for a in await live.answers() if isinstance(a, CommandApplied)]
        assert applied.effect == "$2.5000 added to the budget"

    run_virtual(main())


def test_a_budget_that_other_runs_share_is_not_raised_in_one(tmp_path: Path) -> None:
    async def plot(live: Live, driver: Driver) -> None:
        driver.shares_budget = True
        live.ask("budget", add_usd=2.5)

    async def main() -> None:
        live = Live(tmp_path)
        live.bench.budget = Budget(pico(10))
        await live.run(plot)
        assert live.bench.budget.statistics().cap_pico == pico(10)
        (rejected,) = await live.answers()
        assert isinstance(rejected, CommandRejected)
        assert "raise it in the group's file" in rejected.reason

    run_virtual(main())


def test_a_request_that_was_accepted_and_not_applied_is_carried_out_by_the_next(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        live = Live(tmp_path, items=2)
        live.ask("limits", rpm=7000)
        await live.bench.log.append(
            CommandAccepted(
                command="limits-0", kind="limits", author="ops", payload='{"rpm": 7000}'
            )
        )
        await live.run(nothing)
        await live.run(nothing)
        applied = [a for a in await live.answers() if isinstance(a, CommandApplied)]
        assert [a.command for a in applied] == ["limits-0"]

    run_virtual(main())


def test_what_waited_is_compared_with_the_state_that_the_run_was_found_in(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        live = Live(tmp_path, items=2)
        live.ask("limits", if_state="lost", rpm=7000)
        live.ask("limits", if_state="drained", rpm=8000)
        await live.run(nothing, found="drained")
        refused, accepted, applied = await live.answers()
        assert isinstance(refused, CommandRejected)
        assert refused.reason == "the run is now drained, not lost"
        assert accepted.command == applied.command == "limits-1"
        refusal, effect = (each.partition(" (by ops): ") for each in live.told)
        assert refusal[0] == effect[0] == "Waiting was limits"
        assert refusal[2] == "refused: the run is now drained, not lost."
        assert effect[2] == "every model: at most 8,000 requests a minute."

    run_virtual(main())


def test_a_request_file_that_cannot_be_opened_for_a_while_ends_no_run(
    tmp_path: Path,
) -> None:
    async def plot(live: Live, driver: Driver) -> None:
        del driver
        await asyncio.sleep(2)
        live.folder.control.rmdir()
        live.ask("limits", rpm=7000)

    async def main() -> None:
        live = Live(tmp_path)
        live.folder.control.mkdir()
        assert await live.run(plot) == "finished"
        accepted, applied = await live.answers()
        assert accepted.command == applied.command == "limits-0"

    run_virtual(main())


def test_a_request_that_needs_a_look_at_a_log_out_of_reach_is_refused(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        live = Live(tmp_path, items=2)  # there is no file beneath this log
        live.ask("limits", if_state="live", rpm=7000)
        assert await live.run(nothing) == "finished"
        (refused,) = await live.answers()
        assert isinstance(refused, CommandRejected)
        assert "there is no log at" in refused.reason

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(has_threads=True)) as runner:
        runner.run(main())


def test_calls_in_flight_finish_when_listening_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(command: Command, run: LiveRun) -> Act:
        raise ZeroDivisionError(command.kind, run.models)

    monkeypatch.setattr("runner.run.control.EFFECTS", {"dance": broken})

    async def plot(live: Live, driver: Driver) -> None:
        await asyncio.sleep(3.1)
        assert driver.statistics().in_flight == 4
        live.ask("dance")

    async def main() -> None:
        live = Live(tmp_path)
        with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
            await live.run(plot)
        assert await live.bench.log.in_flight() == []

    run_virtual(main())


@pytest.mark.parametrize("kind", ["pause", "drain", "resume"])
def test_what_was_said_to_one_process_is_not_meant_for_the_next(
    tmp_path: Path, kind: str
) -> None:
    async def main() -> None:
        live = Live(tmp_path, items=2)
        live.ask(kind)
        assert await live.run(nothing) == "finished"
        (refused,) = await live.answers()
        assert isinstance(refused, CommandRejected)
        assert refused.reason == f"the process that was to {kind} had ended"

    run_virtual(main())


@pytest.mark.parametrize("now", [False, True])
def test_a_cancel_startsnothing_more_and_is_left_to_the_end_of_the_process(
    tmp_path: Path, *, now: bool
) -> None:
    ended: list[float] = []

    async def plot(live: Live, driver: Driver) -> None:
        await asyncio.sleep(2.6)
        live.ask("cancel", now=now)
        await asyncio.sleep(POLL_S)
        started = driver.statistics().started
        await asyncio.sleep(3)
        assert driver.statistics().started == started

    async def main() -> None:
        live = Live(tmp_path)
        assert await live.run(plot) == "drained"
        ended.append(asyncio.get_running_loop().time())
        assert live.listener is not None
        (command,) = live.listener.cancels
        assert command.author == "ops"
        assert len(await live.bench.log.in_flight()) == (4 if now else 0)
        (accepted,) = await live.answers()
        assert isinstance(accepted, CommandAccepted)

    run_virtual(main())


def test_a_request_that_stands_twice_in_the_file_is_carried_out_once(
    tmp_path: Path,
) -> None:
    def again(live: Live, times: int) -> None:
        lines = live.folder.control.read_bytes()
        with live.folder.control.open("ab") as file:
            file.write(lines * times)

    async def plot(live: Live, driver: Driver) -> None:
        del driver
        live.ask("budget", add_usd=2.5)
        again(live, 2)  # read at once
        await asyncio.sleep(4 * POLL_S)
        again(live, 1)  # and once more by a later look
        await asyncio.sleep(4 * POLL_S)

    async def main() -> None:
        live = Live(tmp_path)
        live.bench.budget = Budget(pico(10))
        await live.run(plot)
        assert live.bench.budget.statistics().cap_pico == pico(12.5)
        # nor by a later process
        await live.run(nothing)
        assert live.bench.budget.statistics().cap_pico == pico(12.5)
        said = await live.answers()
        assert [type(answer) for answer in said] == [CommandAccepted, CommandApplied]

    run_virtual(main())
