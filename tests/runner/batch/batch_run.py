"""A run of the toy job by batches, in processes that may be killed at any step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.clients.fallbacks import Fallbacks
from runner.engine.driver import Driver
from runner.engine.planner import Planner
from runner.options import options_from
from runner.run import launch
from runner.run.context import RunContext
from runner.run.endpoints import SharedEndpoints
from runner.workload import load_workload
from store.database import open_reader
from store.events import Event, UnknownEvent
from store.log.sqlite import SqliteLog
from store.read.status import Status, status
from store.read.tasks import events
from store.read.usage import OpenBatches, open_batches
from store.runs import RunFolder
from tests.runner.batch.batch_provider import FakeBatches, Provider
from tests.runner.toy_jobs import START_US, ToyJob, ToySettings, VirtualLoop

MODEL = "m"
DAY_US = 24 * 3600 * 1_000_000
"""Between the beginnings of two processes: no moment comes twice."""
TASKS = 3 * 4
"""Three items with two words each, and a sum of them."""
ROUNDING_S = 1e-3
"""By so much a difference of two virtual times may fall short: they are floats."""


class Killed(BaseException):
    """The process is gone: nothing that it would have done comes to pass."""


class RunClock:
    """The clock of the running loop, for the log's thread too."""

    def __init__(self, start_us: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._start_us = start_us

    def now_us(self) -> int:
        return self._start_us + round(self.monotonic() * 1e6)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep_until(self, when: float) -> None:
        await asyncio.sleep(max(0.0, when - self.monotonic()))


class Fuse:
    """Counts the steps of a process, and kills it at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.steps = 0
        self._at = at

    def step(self) -> None:
        self.steps += 1
        if self._at is not None and self.steps >= self._at:
            raise Killed


class BatchRun:
    """A run, and the provider that it asks."""

    def __init__(
        self,
        folder: Path,
        provider: Provider,
        patch: pytest.MonkeyPatch,
        **options: Any,
    ) -> None:
        self.folder = RunFolder(folder / "r1")
        self.provider = provider
        self.told: list[str] = []
        self.processes = 0
        self.settings = ToySettings(items=3)
        self.work = load_workload(ToyJob(), self.settings)
        self.options = options_from(
            {
                "model": MODEL,
                "base_url": "http://127.0.0.1:9",
                "batch": True,
                "batch_requests": 2,
                "price": "1,2",
                **options,
            }
        )
        self._patch = patch
        self.on_watch: Callable[[Driver], None] = lambda _driver: None
        self.on_step: Callable[[], None] = lambda: None  #: told of each at the provider
        self.accepts_changes = False  #: goes on though prompts have changed
        self.is_settled = False
        """Whether it is known what the endpoint takes, so that the first batch need not
        hold one request alone."""

    def process(self, fuse: Fuse | None = None) -> launch.RunOutcome | None:
        """One process; None: it was killed."""
        burning = fuse or Fuse()
        self.processes += 1

        def step() -> None:
            burning.step()
            self.on_step()

        with self._patch.context() as patch:
            patch.setattr(
                "runner.run.endpoints.open_endpoint",
                lambda _model, _options: FakeBatches(self.provider, step),
            )
            patch.setattr(SqliteLog, "append", _append(burning))
            if self.is_settled:
                patch.setattr(Fallbacks, "has_family_rules", True)
            try:
                with asyncio.Runner(
                    loop_factory=lambda: VirtualLoop(has_threads=True)
                ) as runner:
                    return runner.run(self._run())
            except Killed:
                return None
            except BaseExceptionGroup as errors:
                killed, others = errors.split(Killed)
                assert killed is not None
                assert others is None, others
                return None

    async def _run(self) -> launch.RunOutcome:
        company = SharedEndpoints()
        if not self.folder.log.exists():
            return await launch.start(
                self.folder,
                self.work,
                self.options,
                self._shell(),
                shared_endpoints=company,
            )
        return await launch.resume(
            self.folder,
            self.work,
            self.options,
            self._shell(),
            accept_changes=self.accepts_changes,
            shared_endpoints=company,
        )

    def _shell(self) -> RunContext:
        @asynccontextmanager
        async def watch(
            driver: Driver, growth: Planner, before: Status
        ) -> AsyncIterator[None]:
            del growth, before
            self.on_watch(driver)
            yield

        return RunContext(
            clock=RunClock(START_US + self.processes * DAY_US),
            environment={},
            runs_dir=self.folder.path.parent,
            notify=self.told.append,
            launched=lambda: None,
            watch=watch,
        )

    def status(self) -> Status:
        with open_reader(self.folder.log) as reader:
            return status(reader)

    def open(self) -> OpenBatches:
        with open_reader(self.folder.log) as reader:
            return open_batches(reader)

    def events(self, *kinds: str) -> list[Event | UnknownEvent]:
        with open_reader(self.folder.log) as reader:
            found = events(reader, kinds=kinds, limit=100_000)
        return [recorded.event for recorded in found]


def _append(fuse: Fuse) -> Callable[..., Any]:
    append = SqliteLog.append

    async def killable(log: SqliteLog, *entries: Any) -> int:
        fuse.step()
        seq = await append(log, *entries)
        fuse.step()
        return seq

    return killable
