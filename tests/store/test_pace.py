"""How fast a run goes is told by whole minutes, and only by recent ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from store.database import open_reader
from store.log.sqlite import SqliteLog
from store.read.live import live_status
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import RUN_STARTED, completed, plan, reply, started, task

MINUTE_S = 60
FIRST_S = MINUTE_S - START_US // 1_000_000 % MINUTE_S
"""From the run's beginning to the end of its first, partial minute."""


def _pace(path: Path, ended: Sequence[int], idle_s: float = 0) -> float | None:
    """The pace of a run of which so many tasks ended in each of its minutes."""
    clock = FakeClock()

    async def work() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=clock, owner="tester"
        ) as log:
            await log.append(RUN_STARTED)
            await log.append(plan([task(n + 1) for n in range(sum(ended))]))
            number = 0
            for minute, n in enumerate(ended):
                for _ in range(n):
                    number += 1
                    await log.append(
                        started(number), reply(number, b"x"), completed(number)
                    )
                clock.advance(MINUTE_S if minute else FIRST_S)
            clock.advance(idle_s)
            await log.heartbeat()

    asyncio.run(work())
    with open_reader(path) as reader:
        return live_status(reader, clock.now_us(), is_held=True).rate


@pytest.mark.parametrize(
    ("ended", "pace"),
    [
        ([9], 9.0),
        ([9, 4], 4.0),
        ([9, 4, 2], 3.0),
        ([9, 50, 1, 2, 3, 4, 5], 3.0),
        ([9, 0, 0], 0.0),
    ],
)
def test_the_pace_is_the_mean_of_the_last_five_whole_minutes(
    tmp_path: Path, ended: list[int], pace: float | None
) -> None:
    assert _pace(tmp_path / "log.db", ended) == pace


def test_a_minute_that_has_just_begun_slows_nothing_down(tmp_path: Path) -> None:
    assert _pace(tmp_path / "log.db", [9, 4, 2], idle_s=30) == 3.0
