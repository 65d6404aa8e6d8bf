"""Small data for tests of what is asked: posts and criteria without files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.evidence_retrieval.data import Criterion, EvidenceDataset, PoolSentence, Post
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.job import Answer, Task, TaskSpec
from runner.messages import AnyReply, ParseFailure

CRITERIA = {
    "A.1": "Trouble with sleep: lies awake at night",
    "A.2": "A bad job, or worry about work",
}
BARE = (Config(name="bare", first_stage=("bm25",)),)
"""Configurations that need no answer at all."""


def data(
    posts: Mapping[str, Sequence[str]],
    criteria: Mapping[str, str] | None = None,
    configs: tuple[Config, ...] = BARE,
    **settings: Any,
) -> EvidenceDataset:
    """A dataset of sentences by post and texts by criterion."""
    return EvidenceDataset(
        settings=EvidenceSettings(**settings),
        posts=tuple(
            Post(
                id=name,
                sentences=tuple(
                    PoolSentence(sid=sid, uid=f"{name}_{sid}", text=text)
                    for sid, text in enumerate(texts)
                ),
            )
            for name, texts in posts.items()
        ),
        criteria=tuple(
            Criterion(id=name, text=text)
            for name, text in (criteria or CRITERIA).items()
        ),
        configs=configs,
    )


def task(stage: str, key: str, replicate: int = 1, context: str | None = None) -> Task:
    return Task(
        number=1,
        stage=stage,
        key=key,
        model="m",
        replicate=replicate,
        context=context,
    )


def task_of(spec: TaskSpec, replicate: int = 1) -> Task:
    """The task that the engine makes of a spec."""
    return task(spec.stage, spec.key, replicate, spec.context)


def answered(asked: Task, reply: AnyReply, parsed: object) -> tuple[Answer, ...]:
    """A group of one answer, as `follow_up` gets it."""
    return (Answer(task=asked, reply=reply, parsed=parsed),)


def reason(read: object) -> str | None:
    """Of a failure; None for everything that could be read."""
    return read.reason if isinstance(read, ParseFailure) else None
