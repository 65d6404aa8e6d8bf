"""Answers that a run has in other logs, for tasks that a shard plans once more.

A shard that begins a log of its own knows nothing of what was asked of its items
before: by another shard, when the run was split into other parts, or by this one,
whose log was lost with its disk after it had been carried elsewhere. It plans them
afresh, and what the run has an answer to is recorded anew instead of asked again. What
had failed is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from runner.clients.client import Received
from runner.errors import MalformedReply
from runner.task import Task
from runner.wire import decode_reply
from store.database import open_reader
from store.union.numbering import StoredAnswer, find_answers


class Adopted:
    """Finds the answers of a run in the union of its logs."""

    def __init__(self, union: Path) -> None:
        self._union = union
        self._other_requests: set[int] = set()

    @property
    def refused(self) -> int:
        """Tasks with answers to another request than would now be sent."""
        return len(self._other_requests)

    def serves(self, model: str) -> bool:
        """A log has answers of every model."""
        del model
        return True

    async def find(self, asked: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """The reply to each task's request, given by its hash, where there is one."""
        found = await asyncio.to_thread(self._look, [task for task, _ in asked])
        return [
            None if answer is None else self._received(task, sha256, answer)
            for (task, sha256), answer in zip(asked, found, strict=True)
        ]

    def _look(self, tasks: Sequence[Task]) -> list[StoredAnswer | None]:
        with open_reader(self._union) as reader:
            return find_answers(
                reader, [(t.stage, t.key, t.model, t.replicate) for t in tasks]
            )

    def _received(
        self, task: Task, sha256: str, found: StoredAnswer
    ) -> Received | None:
        answered = found.answered
        if found.request_sha256 != sha256:
            self._other_requests.add(task.number)
            return None
        try:
            reply = decode_reply(answered.form, found.body)
        except MalformedReply:
            return None
        return Received(
            body=found.body,
            form=answered.form,
            reply=reply,
            status=answered.status,
            headers=answered.headers,
            adopted=found.origin,
        )
