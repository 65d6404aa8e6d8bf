"""A second toy job, for tests: every kind of request, and every role of a model.

An item has a query and three texts. They are embedded in one call and ranked in
another; each subject is asked about the text that is nearest by the vectors; a judge
gives each subject's answer a verdict, and once all verdicts about an item are in, sums
them up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from pydantic import BaseModel

from runner.job import Answers, InputFile, Stage
from runner.reply import Content, ParseFailure, Ranked, Ranking, Reply, Vectors
from runner.request import (
    ChatRequest,
    EmbedRequest,
    Message,
    Part,
    Request,
    RerankRequest,
)
from runner.scorecard import Metric, Scorecard
from runner.task import Answer, Task, TaskSpec

LETTERS = "abcdefgh"


class PanelSettings(BaseModel):
    """Settings of `PanelJob`."""

    items: int = 3
    reask: int = 0


class PanelJob:
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

    def inputs(self, settings: PanelSettings) -> tuple[InputFile, ...]:
        """It reads no file."""
        del settings
        return ()

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
                part = Part(text=text)
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
                    results=tuple(Ranked(index=n, score=scores[n]) for n in order)
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
