"""Unreadable replies that are asked for again, over processes and failures.

Which refused answers a dialogue is taken up from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from runner import errors as e
from runner.clients.client import Call
from runner.clients.offline import Answerer
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.engine.attempt_events import refused_answers
from runner.job import Answer, Task, TaskSpec
from runner.messages import ParseFailure, Reply
from runner.prompts import PromptBook
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    Entry,
    Event,
    RecordedEvent,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
)
from store.task import PlannedTask, TaskState, manifest_bytes
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import ToyJob, ToySettings, run_virtual


def test_an_unreadable_reply_is_asked_again_with_the_reason_and_then_counted() -> None:
    async def main() -> None:
        dialogues: list[int] = []

        def answer(call: Call) -> Reply:
            if call.task.stage == "read":
                dialogues.append(len(call.request.messages))
                return Reply(text="")
            return honest(call)

        bench = Bench(answer, ToySettings(items=1, reask=2))
        await bench.run()
        assert dialogues == [1, 3, 5]
        (row,) = await bench.log.tasks([1])
        assert (row.state, row.reason) == (TaskState.COMPLETED, "empty_reply")

    run_virtual(main())


class Worded(ToySettings):
    """Settings, and so a data set, that bring words of their own for asking again."""

    prompts: PromptBook = PromptBook(texts={"reask.user": "Again ({problem})!"})


def test_the_job_says_how_a_reply_is_asked_for_again() -> None:
    async def main() -> None:
        asked: list[str] = []

        def answer(call: Call) -> Reply:
            if call.task.stage == "read":
                asked.append(call.request.messages[-1].text)
                return Reply(text="")
            return honest(call)

        await Bench(answer, Worded(items=1, reask=1)).run()
        assert asked[1:] == ["Again (empty reply)!"]

    run_virtual(main())


class Particular(ToyJob):
    """Says of every reading what is wrong with it, and where."""

    @staticmethod
    def _words(dataset: ToySettings, task: Task, reply: Reply) -> ParseFailure:
        del dataset, task
        return ParseFailure(reason="no_json", detail=f"column {len(reply.text)}: odd")


def test_what_stands_where_in_an_unreadable_reply_stands_in_the_log() -> None:
    async def main() -> None:
        bench = Bench(honest, ToySettings(items=1, reask=1))
        bench.job = Particular()
        await bench.run()
        found = [
            (event.fault, event.reask if isinstance(event, AttemptAnswered) else None)
            for event in (row.event for row in await bench.log.events(limit=1_000))
            if isinstance(event, AttemptAnswered | TaskCompleted)
        ]
        words = "column 3: odd"
        assert found == [(words, "no_json"), (None, None), (words, None)]

    run_virtual(main())


def _reluctant(dialogues: list[int]) -> Answerer:
    """Reads well only when it is asked for the third time."""

    async def answer(call: Call) -> Reply:
        await asyncio.sleep(5)
        if call.task.stage == "read":
            dialogues.append(len(call.request.messages))
            return Reply(text="a b" if len(call.request.messages) == 5 else "")
        return honest(call)

    return answer


@pytest.mark.parametrize("how", ["drain", "stop"])
@pytest.mark.parametrize("after_s", [3, 7, 12])
def test_a_re_ask_goes_on_where_another_process_broke_it_off(
    how: str, after_s: int
) -> None:
    async def main() -> None:
        dialogues: list[int] = []
        bench = Bench(_reluctant(dialogues), ToySettings(items=1, reask=2))
        driver = await bench.driver()
        end = driver.drain if how == "drain" else driver.stop
        asyncio.get_running_loop().call_later(after_s, end)
        assert await driver.run() == "drained"
        unknown = await bench.log.in_flight()
        if unknown:
            await bench.log.append(AttemptsAbandoned(attempts=unknown))
        assert await bench.run() == "finished"
        assert list(dict.fromkeys(dialogues)) == [1, 3, 5]
        assert len(dialogues) == 3
        assert (await bench.states())["sum COMPLETED"] == 1

    run_virtual(main())


class Forgiving(ToyJob):
    """Goes on with an item whose reading cannot be read."""

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        del dataset
        if group[0].task.stage == "read":
            yield TaskSpec(stage="sum", key=group[0].task.key)


def test_a_failed_re_ask_stands_in_the_log_before_its_slot_is_used_again() -> None:
    async def main() -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(1)
            if call.task.stage != "read":
                return honest(call)
            if len(call.request.messages) > 1:
                raise e.BadRequest("too long by now", status=400)
            return Reply(text="")

        bench = Bench(answer, ToySettings(items=40, reask=1), concurrency=4)
        bench.job = Forgiving()
        assert await bench.run() == "finished"
        assert await bench.states() == {"read COMPLETED": 40, "sum COMPLETED": 40}
        in_flight: set[int] = set()
        for recorded in await bench.log.events(limit=100_000):
            match recorded.event:
                case AttemptStarted(task=task):
                    in_flight.add(task)
                case AttemptAnswered(task=task) | AttemptFailed(task=task):
                    in_flight.remove(task)
            assert len(in_flight) <= 4

    run_virtual(main())


def test_a_crash_behind_a_failed_re_ask_leaves_the_last_reply_to_be_read() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=1, reask=1))
        task = PlannedTask(stage="read", key="i0", model="m", replicate=1, root=1)
        planned = TasksPlanned(first=1, count=1, consumed=1, exhausted=True)
        refused = AttemptAnswered(
            task=1,
            attempt=1,
            form=OPENAI_CHAT,
            status=200,
            latency_ms=1.0,
            finish_reason="stop",
            reask="empty_reply",
        )
        await bench.log.append(
            Entry(event=planned, payload=manifest_bytes([task])),
            AttemptStarted(task=1, attempt=1, request_sha256=""),
            Entry(event=refused, payload=encode_reply("")),
            AttemptStarted(task=1, attempt=2, request_sha256=""),
            AttemptFailed(
                task=1, attempt=2, error="BadRequest", latency_ms=1.0, message=""
            ),
        )
        assert await bench.run() == "finished"
        (row,) = await bench.log.tasks([1])
        assert (row.state, row.reason) == (TaskState.COMPLETED, "empty_reply")
        assert row.attempts == 2, "it was asked once more"

    run_virtual(main())


def _history(*events: Event) -> list[RecordedEvent]:
    return [
        RecordedEvent(seq=seq, ts_us=seq, epoch=1, event=event, payload_bytes=0)
        for seq, event in enumerate(events, 1)
    ]


def _refused(attempt: int) -> AttemptAnswered:
    return AttemptAnswered(
        task=1,
        attempt=attempt,
        form="openai.chat",
        status=200,
        latency_ms=1.0,
        finish_reason="stop",
        reask="empty_reply",
    )


def test_a_dialogue_begins_anew_after_each_end_of_its_task() -> None:
    for end in (
        TaskCompleted(task=1, attempt=1, unparsed="empty_reply"),
        TaskFailed(task=1, attempt=1, error="Timeout"),
        TaskSkipped(task=1, reason="cancelled"),
    ):
        found = refused_answers(_history(_refused(1), end, _refused(2), _refused(3)))
        assert [recorded.seq for recorded in found] == [3, 4]
