"""Runs whose shards are placed, beside what one undisturbed process makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runner.simulate.billing import LedgerLine
from store.database import open_reader
from store.errors import StoreError
from store.read.status import status
from store.runs import RunFolder
from tests.ledgers import read_ledger
from tests.processes import Process, siftlog, simulated, start

SCORECARD = Path("scores/1/scorecard.json")
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Calm:
    """What one process makes of a run."""

    scorecard: bytes
    asked: frozenset[str]  #: bodies of all requests that it consists of


def calm_run(cwd: Path, environment: dict[str, str], items: int) -> Calm:
    """Carry the run out by one process, on an endpoint that answers at once."""
    cwd.mkdir(parents=True)
    ledger = cwd / "ledger.jsonl"
    with simulated(
        *("--job=survey", "--seed=5", "--ledger", ledger), cwd=cwd, env=environment
    ) as url:
        siftlog(
            *("run", "survey", f"--items={items}", "--model=tested", "--run-id=r"),
            f"--base-url={url}",
            cwd=cwd,
            env=environment,
        )
    asked = frozenset(line.request for line in read_ledger(ledger))
    return Calm((cwd / "runs" / "r" / SCORECARD).read_bytes(), asked)


@dataclass(frozen=True)
class Site:
    """Where a run is placed."""

    cwd: Path
    url: str
    ledger: Path
    environment: dict[str, str]
    calm: Calm
    disks: tuple[Path, ...]  #: folders of the runs on the shards' machines
    drivers: list[Process] = field(default_factory=list)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.cwd / "runs" / "r")

    def run(self, *words: object, items: int, shards: int) -> Process:
        return self._start(
            *("run", "survey", f"--items={items}", "--model=tested", "--run-id=r"),
            *(f"--shards={shards}", *words),
        )

    def resume(self, *words: object, shards: int) -> Process:
        return self._start("resume", "r", f"--shards={shards}", *words)

    def _start(self, *words: object) -> Process:
        driver = start(
            *(*words, f"--base-url={self.url}", "--json"),
            cwd=self.cwd,
            env=self.environment,
        )
        self.drivers.append(driver)
        return driver

    def close(self) -> None:
        """End what a test that failed has left; shards end with their driver."""
        for driver in self.drivers:
            driver.kill()
            driver.wait()

    def served(self) -> list[LedgerLine]:
        return read_ledger(self.ledger)

    def log(self, index: int, count: int) -> Path:
        """The log of a shard, on the disk where a process at work writes it."""
        logs = [RunFolder(disk / "r").shard(index, count).log for disk in self.disks]
        return max(filter(Path.exists, logs), key=lambda log: _beat(log)[1])

    def pid(self, index: int, *, count: int, but: int = 0) -> int:
        """The process of a shard, once it makes calls and is not *but*."""

        def at_work() -> int:
            log = self.log(index, count)
            with open_reader(log) as reader:
                running = status(reader).tasks.running
            pid = _beat(log)[0]
            return pid if running and pid != but else 0

        return until(at_work)

    def check(self, ended: int, *, repeats: int) -> None:
        """Everything was answered and counts once; so many calls were paid twice."""
        assert ended == 0, (self.cwd / "err.txt").read_text("utf-8")
        served = self.served()
        assert {line.request for line in served} == self.calm.asked
        repeated = sum(line.seen > 0 for line in served)
        print(f"{repeated} of {len(served)} calls were repeats; the bound is {repeats}")
        assert repeated <= repeats
        with open_reader(self.folder.log) as reader:
            tasks = status(reader).tasks
        assert tasks.open == tasks.failed == 0
        assert (self.folder.path / SCORECARD).read_bytes() == self.calm.scorecard
        siftlog("verify", "r", cwd=self.cwd)


def _beat(log: Path) -> tuple[int, int]:
    """Who wrote a log last, and when."""
    with open_reader(log) as reader:
        beat = status(reader).heartbeat
    return (0, 0) if beat is None else (beat.pid, beat.at_us)


def until(found: Callable[[], int]) -> int:
    """What is found, once there is something."""
    for _ in range(int(PATIENCE_S / 0.02)):
        try:
            if what := found():
                return what
        except (OSError, ValueError, StoreError):
            pass  # its log is being made
        time.sleep(0.02)
    pytest.fail("it does not get there")
