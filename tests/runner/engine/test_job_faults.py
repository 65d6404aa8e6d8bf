"""What a run does where the job's own code raises."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from runner.clients.client import Call
from runner.engine.failure_policy import FutilityMonitor, rules_of
from runner.job import Answer, Stage, Task, TaskSpec
from runner.job_faults import JobFaults, guarded, parser_faults, read_reply
from runner.messages import ChatRequest, Parameters, ParseFailure, Reply
from runner.model_terms import ModelTerms
from store.events import AttemptAnswered, AttemptStarted, TaskFailed, TasksReopened
from store.task import TaskState
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import ToyJob, ToySettings, run_virtual

HERE = "tests/runner/engine/test_job_faults.py"


class RequestRaises(ToyJob):
    """Cannot say what to ask about the second item."""

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        if task.key == "i1":
            raise KeyError("no such item")
        return super().request(dataset, task)


class FollowUpRaises(ToyJob):
    """Cannot say what follows from the second item's reading."""

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        if group[0].task.key == "i1":
            raise KeyError("no such item")
        return super().follow_up(dataset, group)


class FollowUpRaisesLate(ToyJob):
    """Cannot say all that follows from the second item's reading."""

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        yield from super().follow_up(dataset, group)
        if group[0].task.key == "i1":
            raise KeyError("no such item")


class GroupRaises(ToyJob):
    """Cannot say what follows from the second item's words."""

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        if group[0].task.stage == "ask" and group[0].task.key.startswith("i1/"):
            raise KeyError("no such group")
        return super().follow_up(dataset, group)


class ParserRaises(ToyJob):
    """Reads nothing."""

    @staticmethod
    def _words(*_: object) -> tuple[str, ...]:
        raise KeyError("nothing can be read")


async def faults(bench: Bench) -> list[TaskFailed]:
    recorded = await bench.log.events(limit=10_000, kinds=["task_failed"])
    return [r.event for r in recorded if isinstance(r.event, TaskFailed)]


def assert_told_once(bench: Bench) -> None:
    whole = [said for said in bench.told if said.startswith("Traceback")]
    assert len(whole) == 1
    assert any("KeyError" in said and HERE in said for said in bench.told)


def test_a_request_that_raises_fails_its_task_and_retry_asks_it() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=3, words=1))
        bench.job = RequestRaises()
        assert await bench.run() == "finished"
        (failed,) = await faults(bench)
        assert (failed.task, failed.attempt, failed.error) == (2, 0, "JobFault")
        assert re.fullmatch(rf"KeyError at {HERE}:\d+", failed.fault or "")
        assert_told_once(bench)
        assert await bench.states() == {
            "read COMPLETED": 2,
            "read FAILED": 1,
            "ask COMPLETED": 2,
            "sum COMPLETED": 2,
        }
        await bench.log.append(TasksReopened(tasks=[2], by="me"))
        bench.job = ToyJob()
        assert await bench.run() == "finished"
        assert (await bench.states())["sum COMPLETED"] == 3
        assert set((await bench.sent()).values()) == {1}

    run_virtual(main())


@pytest.mark.parametrize("job", [FollowUpRaises, FollowUpRaisesLate])
def test_a_follow_up_that_raises_fails_its_task_and_retry_pays_nothing(
    job: type[ToyJob],
) -> None:
    async def main() -> None:
        calls: list[str] = []

        def answer(call: Call) -> Reply:
            calls.append(f"{call.task.stage} {call.task.key}")
            return honest(call)

        bench = Bench(answer, ToySettings(items=3, words=1))
        bench.job = job()
        assert await bench.run() == "finished"
        (failed,) = await faults(bench)
        assert (failed.task, failed.attempt, failed.error) == (2, 1, "JobFault")
        assert_told_once(bench)
        # the same code fails it again, and asks nothing
        await bench.log.append(TasksReopened(tasks=[2], by="me"))
        before = list(calls)
        assert await bench.run() == "finished"
        assert calls == before
        assert len(await faults(bench)) == 2
        await bench.log.append(TasksReopened(tasks=[2], by="me"))
        bench.job = ToyJob()
        assert await bench.run() == "finished"
        assert calls[len(before) :] == ["ask i1/a", "sum i1"]
        assert (await bench.states())["sum COMPLETED"] == 3
        recorded = await bench.log.events(limit=10_000, kinds=["attempt_answered"])
        free = [
            r.event.kept
            for r in recorded
            if isinstance(r.event, AttemptAnswered) and r.event.cached
        ]
        assert free
        assert all(free)

    run_virtual(main())


def test_an_answer_taken_up_again_is_recorded_with_the_request_that_was_sent() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=3, words=1))
        bench.job = FollowUpRaises()
        # as of a model whose temperature was set
        bench.terms = {"m": ModelTerms(parameters=Parameters(temperature=0.5))}
        assert await bench.run() == "finished"
        await bench.log.append(TasksReopened(tasks=[2], by="me"))
        bench.job = ToyJob()
        assert await bench.run() == "finished"
        started = await bench.log.events(limit=10_000, kinds=["attempt_started"])
        sent, taken_up = [
            r.event.request_sha256
            for r in started
            if isinstance(r.event, AttemptStarted) and r.event.task == 2
        ]
        assert taken_up == sent

    run_virtual(main())


def test_a_group_whose_follow_up_raises_is_followed_up_by_a_later_process() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=3, words=2))
        bench.job = GroupRaises()
        driver = await bench.driver()
        assert await driver.run() == "job"
        assert driver.stuck is not None
        assert re.search(rf"group i1 .* raised KeyError at {HERE}:\d+", driver.stuck)
        assert_told_once(bench)
        assert (await bench.states())["sum COMPLETED"] == 2
        before = await bench.sent()
        bench.job = ToyJob()
        assert await bench.run() == "finished"
        assert (await bench.states())["sum COMPLETED"] == 3
        assert len(await bench.sent()) == len(before) + 1

    run_virtual(main())


def test_a_parser_that_raises_is_not_asked_again() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=3, reask=2))
        bench.job = ParserRaises()
        assert await bench.run() == "finished"
        assert len(await bench.sent()) == 3
        rows = await bench.log.tasks([1, 2, 3])
        assert {(row.state, row.reason) for row in rows} == {
            (TaskState.COMPLETED, "parser_error")
        }
        assert_told_once(bench)

    run_virtual(main())


def test_a_guarded_parser_is_a_value_alone_and_raises_where_it_can_be_shown() -> None:
    parse = guarded(ParserRaises._words)
    with parser_faults() as seen:
        failure = parse()
    assert isinstance(failure, ParseFailure)
    assert failure.reason == "parser_error"
    assert re.fullmatch(rf"KeyError at {HERE}:\d+", failure.detail or "")
    assert [*seen] == [failure.detail]
    told: list[str] = []
    stage = Stage(name="s", parse=parse)
    task = Task(number=1, stage="s", key="k", model="m", replicate=1)
    read = read_reply(stage, None, task, Reply(text=""), JobFaults(told.append))
    assert read == failure
    assert told[0].startswith("Traceback")
    assert any("nothing can be read" in line for line in told)


def test_the_futility_gate_counts_what_the_job_raised() -> None:
    async def main() -> None:
        class Raises(ToyJob):
            @staticmethod
            def request(*_: object) -> ChatRequest:
                raise KeyError("nothing can be asked")

        bench = Bench(settings=ToySettings(items=400))
        bench.job = Raises()
        bench.futility = FutilityMonitor(rules_of(["unusable>50%"]), ["m"])
        driver = await bench.driver()
        assert await driver.run() == "futility"
        assert "20 of 20" in (driver.futile or "")
        assert "fix the job" in (driver.futile or "")
        assert not await bench.sent()
        assert len(await faults(bench)) < 100

    run_virtual(main())
