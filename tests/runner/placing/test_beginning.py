"""What must hold before shards are placed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.shards.placed_run import exclusive_driver, wait_for_orphans
from store.database import WriterLock
from store.runs import RunFolder
from tests.store.memory_log import FakeClock


class Ending(FakeClock):
    """Every sleep is over at once; in the third of them *lock* is given up."""

    def __init__(self, lock: WriterLock, *, ends: bool) -> None:
        super().__init__()
        self._lock = lock
        self._left = 3 if ends else -1

    async def sleep_until(self, when: float) -> None:
        self.advance(when - self.monotonic())
        self._left -= 1
        if self._left == 0:
            self._lock.release()


@pytest.mark.parametrize("ends", [True, False])
def test_shards_of_a_driver_that_died_are_waited_for(
    tmp_path: Path, *, ends: bool
) -> None:
    folder, told = RunFolder(tmp_path / "r1"), list[str]()
    folder.path.mkdir()
    shard = folder.shard(0, 2)
    shard.log.touch()
    lock = WriterLock(shard.lock)
    lock.acquire()
    clock = Ending(lock, ends=ends)

    async def main() -> None:
        with exclusive_driver(folder):
            await wait_for_orphans(folder, clock, told.append, longest_s=10.0)

    if ends:
        asyncio.run(main())
    else:
        with pytest.raises(RunnerError, match="r1 are at work that somebody else"):
            asyncio.run(main())
        lock.release()
    assert told == ["Shards of an earlier process still finish their calls."]
    assert (clock.monotonic() < 10) is ends
