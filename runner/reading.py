"""A task's row and its stored reply as an answer, read by the job's parser of today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from runner.faults import JobFaults, read_reply
from runner.job import Dataset, Stage
from runner.plan import task_of
from runner.reply import AnyReply
from runner.task import Answer
from runner.wire import decode_reply
from store.log.interface import StoredReply
from store.task import TaskRow, TaskState


def answer_of(row: TaskRow, stored: StoredReply | None) -> Answer:
    """A task's row and stored reply as an answer; the reply is not parsed."""
    task = task_of(row)
    if stored is not None and row.state in {TaskState.COMPLETED, TaskState.RUNNING}:
        return Answer(task=task, reply=reply_of(stored), cost_usd=row.cost_usd)
    if row.state is TaskState.FAILED:
        return Answer(task=task, error=row.error or "unknown")
    if row.state is TaskState.SKIPPED:
        return Answer(task=task, skip=row.reason or "unknown")
    return Answer(task=task, is_open=True)


def parsed_answer(
    stages: Mapping[str, Stage],
    dataset: Dataset,
    row: TaskRow,
    stored: StoredReply | None,
    faults: JobFaults | None = None,
) -> Answer:
    """The same with its reply read by the parser of its stage."""
    answer = answer_of(row, stored)
    if answer.reply is None:
        return answer
    parsed = read_reply(stages[row.stage], dataset, answer.task, answer.reply, faults)
    return replace(answer, parsed=parsed)


def reply_of(stored: StoredReply) -> AnyReply:
    """The stored bytes as a reply."""
    return decode_reply(stored.answered.form, stored.body)
