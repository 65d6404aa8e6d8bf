"""Commands in a simulated run: the real listener on a file that is a list."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from runner.run import end
from runner.run.control import (
    Act,
    CommandResult,
    Effects,
    Listener,
    LiveRun,
    _reopened_already,
)
from store.control import Command
from store.events import TasksReopened
from store.log.interface import Log
from store.runs import RunFolder
from store.task import TaskRow, TaskState
from tests.simulation.disk import Disk

NOWHERE = RunFolder(Path("/nowhere"))
SHARE = 0.2
"""Of the final tasks, that a retry names."""
PAGE = 2
"""Tasks reopened by one event: so few that a crash comes between two of them."""


class Tail:
    """Reads on in the commands of a run, as `CommandTail` does in its file."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = commands
        self._position = 0

    def read(self) -> list[Command]:
        """What was asked since the last call."""
        found = list(self._commands[self._position :])
        self._position += len(found)
        return found


class SimulatedListener(Listener):
    """The listener; a retry names tasks by chance, or by the reason of a skip."""

    def __init__(
        self,
        commands: Sequence[Command],
        *,
        on_reopened: Callable[[list[int]], bool],
        **parts: Any,
    ) -> None:
        """*on_reopened* says whether the reopening came in time for this process."""
        super().__init__(folder=NOWHERE, **parts)
        self._tail = Tail(commands)  # type: ignore[assignment]
        self._on_reopened = on_reopened
        self.is_late = False  #: tasks were put back as the run ended

    async def _poll(self, effects: Effects, found: str | None) -> None:
        await super()._poll({**effects, "retry": self._retry}, found)

    def _retry(self, command: Command, run: LiveRun) -> Act:
        async def act() -> CommandResult:
            count = after = 0
            if command.id in run.begun:
                count, after = await _reopened_already(command.id, run.log)
            while page := await _page(command, run.log, after):
                self.is_late = True
                await run.log.append(
                    TasksReopened(tasks=page, by=command.author, command=command.id)
                )
                self.is_late = not self._on_reopened(page)
                run.driver.reopened()
                count, after = count + len(page), page[-1]
            return CommandResult(effect=f"{count} tasks reopened")

        return act


async def _page(command: Command, log: Log, after: int) -> list[int]:
    planned = (await log.planning()).tasks
    rows = await log.tasks(range(after + 1, planned + 1))
    return [row.task for row in rows if _is_named(command, row)][:PAGE]


def _is_named(command: Command, row: TaskRow) -> bool:
    if "reason" in command.payload:
        return row.state is TaskState.SKIPPED and (
            row.reason == command.payload["reason"]
        )
    if row.state not in {TaskState.COMPLETED, TaskState.FAILED}:
        return False
    return random.Random(f"{command.id} {row.task}").random() < SHARE


@contextmanager
def reading(disk: Disk) -> Iterator[None]:
    """Let the ends of processes read how the run stands from *disk*."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (end, end):
            patch.setattr(module, "open_reader", lambda _: nullcontext(disk))
            patch.setattr(module, "status", lambda disk: disk.standing())
        yield
