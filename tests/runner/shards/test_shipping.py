"""A shard that has done its work while the place for its log is away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from runner.engine.driver import Driver
from runner.run.context import RunContext
from runner.run.end import RunOutcome
from runner.shards.shipping import POLL_S, TIMEOUT_S, LogShipper, check_reachable
from store.errors import PlaceAway
from store.runs import RunFolder
from store.segments.shipping import Shipper
from tests.runner.shards.sharded import unwatched
from tests.store.logs import create
from tests.store.memory_log import FakeClock
from tests.store.segments.carried import UNITS, Fickle

FINISHED = RunOutcome(outcome="finished")
DRAINED = RunOutcome(outcome="drained", reason="3 tasks are open.")


class Skipped(FakeClock):
    """Every sleep is over at once."""

    async def sleep_until(self, when: float) -> None:
        self.advance(when - self.monotonic())


class Asked:
    """Who is told to end."""

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping()


class Away(Fickle):
    """A place that is back when *clock* says so."""

    def __init__(self, address: str, clock: FakeClock, back_s: float) -> None:
        super().__init__(address)
        self._clock = clock
        self._back_s = back_s

    def put_new(self, name: str, data: bytes) -> bool:
        self.takes = 9 if self._clock.monotonic() >= self._back_s else 0
        return super().put_new(name, data)


def _concluded(
    folder: Path, ended: RunOutcome, *, back_s: float, stop_s: float = 1e9
) -> tuple[RunOutcome, float, list[str], list[str]]:
    """How it came out, when, what was said, and whether the place knows the end."""
    clock, said = Skipped(), list[str]()
    place = Away(str(folder / "place"), clock, back_s)
    shard = RunFolder(folder / "r1").shard(0, 1)
    shard.path.mkdir(parents=True)

    async def main() -> RunOutcome:
        async with (
            await create(shard.log) as log,
            Shipper.following(
                shard.log,
                place,
                clock=clock,
                notify=said.append,
                siftlog_version="0.1.0",
            ) as shipper,
        ):
            for unit in UNITS:
                await log.append(*unit)
            carrier = LogShipper(
                shipper=shipper,
                driver=cast("Driver", Asked(lambda: clock.monotonic() >= stop_s)),
                context=RunContext(
                    clock=clock,
                    environment=os.environ,
                    runs_dir=folder,
                    notify=said.append,
                    launched=lambda: None,
                    watch=unwatched,
                ),
                folder=shard,
                address=place.address,
            )
            return await carrier.conclude(ended)

    return asyncio.run(main()), clock.monotonic(), said, place.names("done")


def test_the_last_of_a_log_is_carried_once_its_place_is_back(tmp_path: Path) -> None:
    ended, at_s, said, done = _concluded(tmp_path, FINISHED, back_s=TIMEOUT_S / 2)
    assert (ended, at_s, len(done)) == (FINISHED, TIMEOUT_S / 2, 1)
    assert said[-1].endswith("is back, and has all there was")


@pytest.mark.parametrize("before", [FINISHED, DRAINED])
def test_what_lies_here_alone_is_not_finished(
    tmp_path: Path, before: RunOutcome
) -> None:
    ended, at_s, said, done = _concluded(tmp_path, before, back_s=1e9)
    assert (ended.outcome, at_s, done) == ("drained", TIMEOUT_S, [])
    assert ended.reason is not None
    assert "bytes of" in ended.reason
    assert "log.0-1.db were not shipped to" in ended.reason
    assert (DRAINED.reason in said) == (before is DRAINED)


def test_nobody_has_to_wait_for_a_place_that_is_away(tmp_path: Path) -> None:
    ended, at_s, _, _ = _concluded(tmp_path, FINISHED, back_s=1e9, stop_s=7.5)
    assert (ended.outcome, at_s) == ("drained", 7 + POLL_S)


def _reached(folder: Path, *, back_s: float, patient: bool) -> float:
    """When a shard may begin."""
    clock = Skipped()
    place = Away(str(folder / "place"), clock, back_s)
    asyncio.run(check_reachable(place, "r1", clock, patient=patient))
    return clock.monotonic()


def test_a_shard_that_was_placed_waits_for_its_place(tmp_path: Path) -> None:
    """Who types it is told at once."""
    assert _reached(tmp_path, back_s=7.5, patient=True) == 7 + POLL_S
    assert _reached(tmp_path, back_s=0, patient=False) == 0
    for back_s, patient in ((1e9, True), (POLL_S, False)):
        with pytest.raises(PlaceAway):
            _reached(tmp_path, back_s=back_s, patient=patient)


def test_only_a_finished_log_says_so_in_its_place(tmp_path: Path) -> None:
    ended, at_s, _, done = _concluded(tmp_path, DRAINED, back_s=0)
    assert (ended, at_s, done) == (DRAINED, 0, [])
