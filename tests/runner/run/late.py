"""Something that is asked of a run in the moment in which it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from runner.engine.driver import Driver
from runner.run.context import ProgressWatch
from store.read.status import Status


def late(ask: Callable[[], None], *, is_seen: Callable[[], bool]) -> ProgressWatch:
    """A watch that asks once the driver is done, and waits until it *is_seen*."""

    @asynccontextmanager
    async def watch(driver: Driver, log: Path, before: Status) -> AsyncIterator[None]:
        del driver, log, before
        yield
        ask()
        while not is_seen():  # noqa: ASYNC110 - a log is awaited
            await asyncio.sleep(0.01)

    return watch
