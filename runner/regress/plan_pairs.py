"""Pairs the tasks of a recorded plan with those that today's code plans.

Both sides come in any order; a task is named by its root, 0 in the first stage, and its
identity. What is left at the end differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from runner.plan import identity
from runner.regress.report import StepTally
from store.task import PlannedTask

_TaskKey: TypeAlias = tuple[int, str, str, str, int]
"""Root (0 in the first stage), stage, key, model and replicate."""

_Side: TypeAlias = dict[_TaskKey, tuple[PlannedTask, int]]
"""Tasks that only one side has so far, with the event at which it has them."""


class TaskPairs:
    """The tasks without a partner so far.

    Args:
        tally: what differs is added to it.
    """

    def __init__(self, tally: StepTally) -> None:
        self._tally = tally
        self._recorded: _Side = {}
        self._expected: _Side = {}

    def record(self, task: PlannedTask, seq: int) -> None:
        """Add a task of the log."""
        self._pair(self._recorded, self._expected, task, seq)

    def expect(self, task: PlannedTask, seq: int) -> None:
        """Add a task that today's code plans at that event."""
        self._pair(self._expected, self._recorded, task, seq)

    def _pair(self, side: _Side, other: _Side, task: PlannedTask, seq: int) -> None:
        key = _key(task)
        if key not in other:
            side[key] = (task, seq)
            return
        partner, partner_seq = other.pop(key)
        if partner != task:
            old, new = (task, partner) if side is self._recorded else (partner, task)
            self._tally.add(
                max(seq, partner_seq), task.key, _details(old), _details(new)
            )

    @property
    def has_first_stage(self) -> bool:
        """Return whether the log has first-stage tasks that are not expected so far."""
        return any(not root for root, *_ in self._recorded)

    def forgive(self, tasks: Iterable[PlannedTask]) -> None:
        """Drop recorded tasks that would be planned later."""
        for task in tasks:
            self._recorded.pop(_key(task), None)

    def drop_expected(self) -> None:
        """Drop what is expected: the run did not come to it."""
        self._expected.clear()

    def count_rest(self) -> None:
        """Count the tasks that only one side has."""
        for task, seq in self._recorded.values():
            self._tally.add(seq, task.key, _details(task), "not planned")
        for task, seq in self._expected.values():
            self._tally.add(seq, task.key, "not planned", _details(task))


def _key(task: PlannedTask) -> _TaskKey:
    return (task.root, *identity(task))


def _details(task: PlannedTask) -> str:
    """Return the parts of a task beside its key, in words."""
    parts = [task.stage, task.model]
    parts += [f"skipped: {task.skip}"] if task.skip else []
    parts += [f"context {task.context}"] if task.context else []
    parts += [f"group {task.group}"] if task.group else []
    return ", ".join(parts)
