"""What a driver says of logs that it cannot merge."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from runner.run.context import RunContext
from runner.shards.placed_tasks import FAILURE_TIMEOUT_S, FIRST_S, UnionRefresher
from store.runs import RunFolder
from tests.runner.shards.sharded import unwatched
from tests.store.memory_log import FakeClock


class Seen(FakeClock):
    """Every sleep is over at once, up to *end_s*; notes when something was told."""

    def __init__(self, told: list[str], end_s: float) -> None:
        super().__init__()
        self._told = told
        self._end_s = end_s
        self.told_at: list[float] = []

    async def sleep_until(self, when: float) -> None:
        self.told_at += [self.monotonic()] * (len(self._told) - len(self.told_at))
        self.advance(when - self.monotonic())
        if self.monotonic() > self._end_s:
            raise asyncio.CancelledError


def test_logs_that_cannot_be_read_for_long_are_told_once(tmp_path: Path) -> None:
    folder, told = RunFolder(tmp_path / "r1"), list[str]()
    folder.path.mkdir()
    folder.places.write_text("no list")
    clock = Seen(told, 4 * FAILURE_TIMEOUT_S)
    shell = RunContext(
        clock=clock,
        environment=os.environ,
        runs_dir=tmp_path,
        notify=told.append,
        launched=lambda: None,
        watch=unwatched,
    )

    async def main() -> None:
        await UnionRefresher(folder, shell).keep()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    (said,) = told
    assert "places.json is no list of places" in said
    (at_s,) = clock.told_at
    assert FAILURE_TIMEOUT_S < at_s < FAILURE_TIMEOUT_S + 4 * FIRST_S
