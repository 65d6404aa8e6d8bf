"""Answers that are there before anything is sent: of other runs, or of other logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from runner.clients.client import Received
from runner.task import Task


class Known(Protocol):
    """Where a task's answer may be found."""

    def serves(self, model: str) -> bool:
        """Whether answers of *model* are looked for."""
        ...

    async def find(self, asked: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """The reply to each task's request, given by its hash, where there is one."""
        ...


class AnswerStore(Known, Protocol):
    """Where answers are looked for, and kept for later runs."""

    def keep(self, task: Task, request_sha256: str, received: Received) -> None:
        """Have the reply to *task*'s request written some time."""
        ...
