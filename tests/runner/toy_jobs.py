"""Stand-ins for tests of engines and jobs: a virtual event loop and two toy jobs."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from runner.job import Answer, Answers, Job, Stage, Task, TaskSpec
from runner.messages import (
    ChatRequest,
    Content,
    EmbedRequest,
    Message,
    ParseFailure,
    RankedDocument,
    Ranking,
    Reply,
    Request,
    RerankRequest,
    TextPart,
    Vectors,
)
from runner.scorecard import Metric, Scorecard

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


class ToyJob(Job):
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

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        """One reading an item."""
        for i in range(dataset.items):
            yield TaskSpec(stage="read", key=f"i{i}")

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        """The task's name is its prompt."""
        del dataset
        text = f"{task.stage} {task.key}"
        return ChatRequest(
            messages=(Message(role="user", parts=(TextPart(text=text),)),),
            max_tokens=16,
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


LETTERS = "abcdefgh"


class PanelSettings(BaseModel):
    """Settings of `PanelJob`."""

    items: int = 3
    reask: int = 0


class PanelJob(Job):
    """embed -> answer -> judge, gathered -> sum; rerank beside them."""

    name = "panel"
    version = "1"
    Settings = PanelSettings

    def __init__(self) -> None:
        self.stages = (
            Stage(name="embed", parse=self._vectors, role="embed"),
            Stage(name="rerank", parse=self._ranking, role="rerank", follows=False),
            Stage(name="answer", parse=self._text),
            Stage(name="judge", parse=self._text, role="judge", gathers=True),
            Stage(name="sum", parse=self._text, role="judge", follows=False),
        )

    @staticmethod
    def _vectors(
        dataset: PanelSettings, task: Task, reply: Vectors
    ) -> list[tuple[float, ...]] | ParseFailure:
        del dataset
        rows = reply.numbers()
        if len(rows) != len(_texts(task.key)) + 1 or len(set(map(len, rows))) != 1:
            return ParseFailure(reason="bad_vectors")
        return rows

    @staticmethod
    def _ranking(
        dataset: PanelSettings, task: Task, reply: Ranking
    ) -> tuple[int, ...] | ParseFailure:
        del dataset
        order = tuple(each.index for each in reply.results)
        if sorted(order) != list(range(len(_texts(task.key)))):
            return ParseFailure(reason="bad_ranking")
        return order

    @staticmethod
    def _text(dataset: PanelSettings, task: Task, reply: Reply) -> str | ParseFailure:
        del dataset, task
        return reply.text or ParseFailure(reason="empty_reply")

    def load(self, settings: PanelSettings) -> PanelSettings:
        """The settings are all the data there is."""
        return settings

    def plan(self, dataset: PanelSettings) -> Iterator[TaskSpec]:
        """The vectors and the ranking of each item."""
        for n in range(dataset.items):
            yield TaskSpec(stage="embed", key=f"i{n}", group=f"i{n}")
            yield TaskSpec(stage="rerank", key=f"i{n}")

    def request(self, dataset: PanelSettings, task: Task) -> Request:
        """A request of the stage's kind; in a chat, the task's name is the prompt."""
        del dataset
        texts = _texts(task.key)
        match task.stage:
            case "embed":
                return EmbedRequest(texts=(task.key, *texts))
            case "rerank":
                return RerankRequest(query=task.key, documents=texts)
            case _:
                text = f"{task.stage} {task.key} {task.context or ''}".strip()
                part = TextPart(text=text)
                return ChatRequest(
                    messages=(Message(role="user", parts=(part,)),), max_tokens=16
                )

    def follow_up(
        self, dataset: PanelSettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """Ask each subject about the nearest text; have it judged; sum up."""
        del dataset
        first = group[0]
        item = first.task.key.partition("/")[0]
        match first.task.stage:
            case "embed" if isinstance(first.parsed, list):
                near = _nearest(first.parsed)
                yield TaskSpec(stage="answer", key=item, group=item, context=str(near))
            case "answer":
                key = f"{item}/{first.task.model}"
                yield TaskSpec(stage="judge", key=key, group=item)
            case "judge":
                yield TaskSpec(stage="sum", key=item, context=str(len(group)))
            case _:
                return

    def score(self, dataset: PanelSettings, answers: Answers) -> Scorecard:
        """How many answers each stage has, and the sum of all numbers in them."""
        del dataset
        found = [
            answer
            for family in answers.families()
            for answer in family
            if answer.reply is not None
        ]
        counts = Counter(answer.task.stage for answer in found)
        numbers = [
            number
            for answer in found
            if isinstance(answer.reply, Vectors)
            for vector in answer.reply.numbers()
            for number in vector
        ]
        numbers += [
            each.score * (place + 1)
            for answer in found
            if isinstance(answer.reply, Ranking)
            for place, each in enumerate(answer.reply.results)
        ]
        metrics = tuple(
            Metric(path=path, value=value, n=len(found), definition=f"{path}@1")
            for path, value in (
                *((stage.name, counts[stage.name]) for stage in self.stages),
                ("mass", math.fsum(numbers)),
            )
        )
        return Scorecard(
            models=dict.fromkeys(answers.models, metrics),
            summary=f"{len(found)} answers",
        )

    def baseline(self, request: Request) -> Content:
        """Counts of letters as vectors, shared letters as scores, the prompt itself."""
        match request:
            case EmbedRequest():
                return Vectors.of(
                    [text.count(letter) + 1.0 for letter in LETTERS]
                    for text in request.texts
                )
            case RerankRequest():
                scores = [
                    len(set(text) & set(request.query)) + len(text) / 100
                    for text in request.documents
                ]
                order = sorted(range(len(scores)), key=lambda n: -scores[n])
                return Ranking(
                    results=tuple(
                        RankedDocument(index=n, score=scores[n]) for n in order
                    )
                )
            case ChatRequest():
                return request.messages[0].text


def _texts(key: str) -> tuple[str, ...]:
    """The texts of an item."""
    return tuple(f"{key} {LETTERS[: n + 2]}" for n in range(3))


def _nearest(rows: list[tuple[float, ...]]) -> int:
    """The text whose vector is nearest to the query's, the first one."""
    query, *texts = rows
    products = [
        math.fsum(a * b for a, b in zip(query, text, strict=True)) for text in texts
    ]
    return products.index(max(products))
