"""Stored answers as jobs see them: decoded, parsed, in the order of families.

Nothing here calls a model. The same log and the same parsers give the same answers,
so a better parser needs no new call.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from runner.job import Dataset, Job, Stage
from runner.plan import task_of
from runner.reply import Reply
from runner.task import Answer
from runner.wire import decode_reply
from store.log import StoredReply
from store.task import TaskRow, TaskState
from store.views import families


def answer_of(
    stages: dict[str, Stage], dataset: Dataset, row: TaskRow, stored: StoredReply | None
) -> Answer:
    """A task's row and stored reply as an answer, read by its stage's parser."""
    task = task_of(row)
    if stored is not None and row.state in {TaskState.COMPLETED, TaskState.RUNNING}:
        reply = reply_of(stored)
        parsed = stages[row.stage].parse(dataset, task, reply)
        return Answer(task=task, reply=reply, parsed=parsed)
    if row.state is TaskState.FAILED:
        return Answer(task=task, error=row.error or "unknown")
    if row.state is TaskState.SKIPPED:
        return Answer(task=task, skip=row.reason or "unknown")
    return Answer(task=task, is_open=True)


def reply_of(stored: StoredReply) -> Reply:
    """The stored bytes as a reply."""
    return decode_reply(stored.answered.form, stored.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAnswers:
    """A run's answers up to one event, over a read-only connection."""

    job: Job
    dataset: Dataset
    connection: sqlite3.Connection
    upto_seq: int
    models: tuple[str, ...]
    replicates: int
    imported: bool

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it."""
        stages = {stage.name: stage for stage in self.job.stages}
        family: list[Answer] = []
        root = 0
        for row, stored in families(self.connection, self.upto_seq):
            if family and row.root != root:
                yield tuple(family)
                family = []
            root = row.root
            family.append(answer_of(stages, self.dataset, row, stored))
        if family:
            yield tuple(family)
