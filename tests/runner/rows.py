"""Rows of the task projection, with nothing done yet but what is said."""

from __future__ import annotations

from store.task import PlannedTask, TaskRow, TaskState


def task_row(number: int, task: PlannedTask, *, completed: bool = False) -> TaskRow:
    """A planned task as the log holds it; *completed*: answered at the first try."""
    done = int(completed)
    return TaskRow(
        task=number,
        stage=task.stage,
        key=task.key,
        model=task.model,
        replicate=task.replicate,
        root=task.root,
        state=TaskState.COMPLETED if completed else TaskState.QUEUED,
        attempts=done,
        abandoned=0,
        tries=done,
        reply_seq=done or None,
        not_before_us=None,
        error=None,
        reason=None,
        latency_ms=None,
        cost_usd=None,
        context=None,
        group=task.group,
        updated_seq=1,
    )
