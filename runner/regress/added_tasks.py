"""Collects the tasks of stages that were added to a run later, for `log_walk`.

A judge's tasks follow from the answers that counted when it was added. A walk meets
those answers earlier, so it keeps what would follow from them until then.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from runner.added_stages import stages_in
from runner.job import Answer, TaskSpec
from store.events import Event, UnknownEvent
from store.lineage import StageAdded
from store.outcomes import Outcome

_Events: TypeAlias = Sequence[tuple[int, Event | UnknownEvent]]


class AddedTasks:
    """What follows in added stages from the answers so far.

    Args:
        reader: of the run's log.

    Raises:
        RunnerError: a declaration cannot be read any more.
    """

    def __init__(self, reader: sqlite3.Connection) -> None:
        self.stages = {added.stage.name: added for added in stages_in(reader)}
        self._specs: dict[str, dict[int, tuple[TaskSpec, Outcome]]] = {
            name: {} for name in self.stages
        }

    def collect(self, row: Outcome, answer: Answer) -> Iterator[TaskSpec]:
        """Keep what follows from an answer, instead of from an earlier one.

        Yields the specs of the stages that were added already.
        """
        for name, added in self.stages.items():
            if not added.judges(row.stage):
                continue
            spec = added.follow_up(answer)
            if name not in self._specs:
                yield from filter(None, (spec,))
            elif spec is not None:
                self._specs[name][row.task] = spec, row

    def drop(self, task: int) -> None:
        """Forget the answer of a task that ended without one."""
        for specs in self._specs.values():
            specs.pop(task, None)

    def take(self, stage: str) -> list[tuple[TaskSpec, Outcome]]:
        """Return specs of a stage that was added now, with the rows of the answers."""
        return [pair for _, pair in sorted(self._specs.pop(stage).items())]


def up_to_stages(events: _Events) -> Iterator[_Events]:
    """Yield the events in parts that end with an added stage."""
    start = 0
    for at, (_, event) in enumerate(events, 1):
        if isinstance(event, StageAdded):
            yield events[start:at]
            start = at
    if start < len(events):
        yield events[start:]
