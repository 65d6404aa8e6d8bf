from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from store.log.interface import Log
from store.log.sqlite import SqliteLog
from tests.store.memory_log import FakeClock, MemoryLog


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest_asyncio.fixture(params=["sqlite", "memory"])
async def log(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Log]:
    """A fresh log of each kind."""
    if request.param == "memory":
        opened: SqliteLog | MemoryLog = MemoryLog(clock)
    else:
        opened = await SqliteLog.create(
            tmp_path / "log.db",
            run_id="r1",
            config_sha256=bytes(32),
            clock=clock,
            owner="tester",
        )
    async with opened:
        yield opened
