"""Runs of this process that are split, and what became of their tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runner.engine.driver import Driver
from runner.engine.planner import Planner
from runner.job import Job
from runner.options import RunOptions, options_from
from runner.plan import Identity, identity
from runner.run import launch
from runner.run.context import RunContext
from runner.run.end import RunOutcome
from runner.score.scoring import score_run
from runner.shards.parts import ShippingOptions, shard_of
from runner.shards.worker import work_on
from runner.workload import Workload, load_workload
from store.clock import SystemClock
from store.database import open_reader
from store.events import TasksPlanned
from store.read.status import Status
from store.read.tasks import events, tasks
from store.runs import RunFolder
from store.segments.place import Place
from store.task import TaskRow


@asynccontextmanager
async def unwatched(
    driver: Driver, growth: Planner, before: Status
) -> AsyncIterator[None]:
    del driver, growth, before
    yield


@dataclass
class Split:
    """A run, whole or in parts, with the offline baseline unless *options* differ."""

    place: Path
    work: Workload
    options: RunOptions = field(default_factory=lambda: options_from({}))
    told: list[str] = field(default_factory=list)
    place_of_logs: Place | None = None  #: where they are carried

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.place / "r1")

    @property
    def shell(self) -> RunContext:
        return RunContext(
            clock=SystemClock(),
            environment={},
            runs_dir=self.place,
            notify=self.told.append,
            launched=lambda: None,
            watch=unwatched,
        )

    def whole(self) -> RunOutcome:
        return asyncio.run(
            launch.start(self.folder, self.work, self.options, self.shell)
        )

    def part(self, index: int, count: int) -> RunOutcome:
        return asyncio.run(
            work_on(
                self.folder.shard(index, count),
                shard_of(f"{index}/{count}"),
                self.work,
                self.options,
                self.shell,
                shipping=None
                if self.place_of_logs is None
                else ShippingOptions(place=self.place_of_logs, every_s=5.0),
            )
        )

    def card(self) -> bytes:
        """The scorecard of the run, whose logs are merged for it."""
        self.folder.refresh()
        scoring = asyncio.run(
            score_run(
                self.work.job,
                self.folder,
                self.work.settings,
                clock=SystemClock(),
                record=False,
            )
        )
        return scoring.content


def sample(job: Job) -> Workload:
    """A job with the sample that it ships, scored with few resamples."""
    settings = job.with_sample(job.Settings.model_validate({"boot_b": 20}))
    return load_workload(job, settings)


def rows(folder: RunFolder) -> list[TaskRow]:
    """All tasks of one log, in the order of its plan."""
    with open_reader(folder.log) as reader:
        found = list(tasks(reader, limit=100_000))
    assert len(found) < 100_000
    return found


def placed(folder: RunFolder) -> Iterator[tuple[int, Identity]]:
    """The first-stage tasks of a shard, with their places in the whole first stage."""
    by_number = {row.task: identity(row) for row in rows(folder)}
    with open_reader(folder.log) as reader:
        planned = [r.event for r in events(reader, kinds=["tasks_planned"])]
    for event in planned:
        if isinstance(event, TasksPlanned) and event.places is not None:
            assert len(event.places) == event.count
            for number, place in enumerate(event.places, start=event.first):
                yield place, by_number[number]
