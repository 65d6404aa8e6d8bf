"""Stand-ins for tests of engines and jobs: a virtual loop, and a toy job."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from runner.job import Answers, InputFile, Stage
from runner.reply import ParseFailure, Reply
from runner.request import ChatRequest, Message, Part
from runner.scorecard import Metric, Scorecard
from runner.task import Answer, Task, TaskSpec

T = TypeVar("T")

START_US = 1_767_225_600_000_000
"""2026-01-01 00:00 UTC."""


class _Jump(selectors.DefaultSelector):
    """A selector that never waits: it moves the loop's clock to the next timer."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None and not self._loop.has_threads:
            raise RuntimeError("nothing will ever happen again: a wake-up was lost")
        if not ready and timeout is not None:
            self._loop.virtual_now += timeout
        elif not ready:
            ready = super().select(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on which hours pass in milliseconds, always in the same order.

    With `has_threads` it waits for real where it has no timer, for work that other
    threads do; without, such a wait is an error: nobody would ever end it.
    """

    def __init__(self, *, has_threads: bool = False) -> None:
        self.virtual_now = 0.0
        self.has_threads = has_threads
        super().__init__(_Jump(self))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self.virtual_now


class LoopClock:
    """The clock of a `VirtualLoop`."""

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01 UTC."""
        return START_US + round(self.monotonic() * 1e6)

    def monotonic(self) -> float:
        """Virtual seconds."""
        return asyncio.get_running_loop().time()

    async def sleep_until(self, when: float) -> None:
        """Sleep on the virtual loop until *when*."""
        await asyncio.sleep(max(0.0, when - self.monotonic()))


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run *main* on a virtual loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


class ToySettings(BaseModel):
    """Settings of `ToyJob`."""

    items: int = 3
    words: int = 2  #: follow-ups of each item
    reask: int = 0


class ToyJob:
    """The smallest job with every kind of follow-up: read -> ask, gathered -> sum.

    An item's reading is answered with words, each word is asked about, and once all of
    an item's words are final one sum is asked for.
    """

    name = "toy"
    version = "1"
    Settings = ToySettings

    def __init__(self) -> None:
        self.stages = (
            Stage(name="read", parse=self._words),
            Stage(name="ask", parse=self._text, gathers=True),
            Stage(name="sum", parse=self._text, follows=False),
        )

    @staticmethod
    def _words(
        dataset: ToySettings, task: Task, reply: Reply
    ) -> tuple[str, ...] | ParseFailure:
        del dataset, task
        if not reply.text:
            return ParseFailure(reason="empty_reply")
        return tuple(reply.text.split())

    @staticmethod
    def _text(dataset: ToySettings, task: Task, reply: Reply) -> str | ParseFailure:
        del dataset, task
        return reply.text or ParseFailure(reason="empty_reply")

    def load(self, settings: ToySettings) -> ToySettings:
        """The settings are all the data there is."""
        return settings

    def inputs(self, settings: ToySettings) -> tuple[InputFile, ...]:
        """It reads no file."""
        del settings
        return ()

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        """One reading an item."""
        for i in range(dataset.items):
            yield TaskSpec(stage="read", key=f"i{i}")

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        """The task's name is its prompt."""
        del dataset
        text = f"{task.stage} {task.key}"
        return ChatRequest(
            messages=(Message(role="user", parts=(Part(text=text),)),), max_tokens=16
        )

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """A question for each word; a sum for each item's finished questions."""
        task = group[0].task
        if task.stage == "read" and isinstance(group[0].parsed, tuple):
            for word in group[0].parsed[: dataset.words]:
                yield TaskSpec(stage="ask", key=f"{task.key}/{word}", group=task.key)
        if task.stage == "ask":
            yield TaskSpec(stage="sum", key=task.key.partition("/")[0])

    def score(self, dataset: ToySettings, answers: Answers) -> Scorecard:
        """How many answers there are."""
        del dataset
        found = sum(
            a.reply is not None for family in answers.families() for a in family
        )
        metric = Metric(path="answers", value=found, n=found, definition="answers@1")
        return Scorecard(
            models=dict.fromkeys(answers.models, (metric,)), summary=f"{found} answers"
        )

    def baseline(self, request: ChatRequest) -> str:
        """Two words for a reading, the prompt itself for anything else."""
        text = request.messages[0].text
        return "a b" if text.startswith("read") else text
