"""Bare sockets with a durable log: each reply is committed before its slot asks again.

The log is one SQLite table with group commit, synced at every commit. Nothing is
parsed, limited, priced or planned.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.bench.appenders import Append, bare
from tests.bench.floor_prompts import Watch, Work, timed, work
from tests.bench.floor_server import REPLY
from tests.bench.floor_socket import Asker, ask_all


class Recorder(Asker):
    """Asks again once the log holds the reply."""

    def __init__(
        self,
        queue: list[bytes],
        done: asyncio.Future[None],
        watch: Watch,
        append: Append,
        group: asyncio.TaskGroup,
    ) -> None:
        super().__init__(queue, done, watch)
        self.append = append
        self.group = group

    def replied(self) -> None:
        self.group.create_task(self.recorded())

    async def recorded(self) -> None:
        await self.append(len(self.queue), REPLY)
        super().replied()


async def main(todo: Work) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with bare()(Path(folder) / "log.db") as append, asyncio.TaskGroup() as g:
            watch = timed(todo)
            await ask_all(todo, lambda q, done: Recorder(q, done, watch, append, g))
            watch.stop()


if __name__ == "__main__":
    asyncio.run(main(work()))
