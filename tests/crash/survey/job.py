"""A job with everything that a crash can hit: follow-ups, gathering, re-asking.

It is found by its entry point, as other people's jobs are (`tests/plugging.py`).
"""

from __future__ import annotations

import hashlib

from runner.job import Answer, Answers, Stage, Task
from runner.messages import ChatRequest, ParseFailure, Reply
from runner.scorecard import Metric, Scorecard
from tests.runner.toy_jobs import ToyJob, ToySettings

READ, NOTED = "words:", "noted:"
"""How a reply begins that can be read; a spoiled one says something else."""


class SurveySettings(ToySettings):
    """Settings of `Survey`."""

    words: int = 3
    reask: int = 1


class Survey(ToyJob):
    """`ToyJob`, whose replies may be unreadable, scored by all that was answered."""

    name = "survey"
    Settings = SurveySettings

    def __init__(self) -> None:
        self.stages = (
            Stage(name="read", parse=self._read),
            Stage(name="ask", parse=self._noted, gathers=True),
            Stage(name="sum", parse=self._noted, follows=False),
        )

    @staticmethod
    def _read(
        dataset: ToySettings, task: Task, reply: Reply
    ) -> tuple[str, ...] | ParseFailure:
        del dataset, task
        if not reply.text.startswith(READ):
            return ParseFailure(reason="no_words")
        return tuple(reply.text.removeprefix(READ).split())

    @staticmethod
    def _noted(dataset: ToySettings, task: Task, reply: Reply) -> str | ParseFailure:
        del dataset, task
        if not reply.text.startswith(NOTED):
            return ParseFailure(reason="not_noted")
        return reply.text

    def score(self, dataset: ToySettings, answers: Answers) -> Scorecard:
        """How many answers each model gave, and a figure that depends on every one."""
        del dataset
        found: dict[str, list[str]] = {model: [] for model in answers.models}
        for family in answers.families():
            for answer in family:
                found[answer.task.model].append(_said(answer))
        return Scorecard(
            models={model: _metrics(said) for model, said in found.items()},
            summary=f"{sum(map(len, found.values()))} answers",
        )

    def baseline(self, request: ChatRequest) -> str:
        """Some words for a reading, the prompt itself for anything else."""
        stage, _, key = request.messages[0].text.partition(" ")
        if stage == "read":
            return f"{READ} {key}a {key}b {key}c"
        return f"{NOTED} {stage} {key}"


def _said(answer: Answer) -> str:
    task = answer.task
    text = answer.reply.text if answer.reply else answer.error or "open"
    return f"{task.stage} {task.key} {task.replicate} {text}"


def _metrics(said: list[str]) -> tuple[Metric, ...]:
    content = hashlib.sha256("\n".join(sorted(said)).encode())
    figure = int.from_bytes(content.digest()[:6], "big")
    return (
        Metric(path="answers", value=len(said), n=len(said)),
        Metric(path="content", value=figure, n=len(said)),
    )


job = Survey()
