"""A toy run on a virtual clock, and somebody who asks things of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.clients.client import Call
from runner.engine.driver import Driver, Outcome
from runner.messages import Reply
from runner.run.control import Listener
from store.control import Command, send_command
from store.runs import RunFolder
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import LoopClock, ToySettings


async def _slow(call: Call) -> Reply:
    await asyncio.sleep(2.0)
    return honest(call)


class Live:
    """A toy run with somebody who asks things of it at set times."""

    def __init__(self, folder: Path, *, items: int = 40) -> None:
        self.folder = RunFolder(folder)
        self.bench = Bench(_slow, ToySettings(items=items))
        self.asked: dict[str, float] = {}
        self.listener: Listener | None = None
        self.told: list[str] = []

    def ask(self, kind: str, *, if_state: str | None = None, **payload: Any) -> None:
        now = asyncio.get_running_loop().time()
        name = f"{kind}-{len(self.asked)}"
        self.asked[name] = now
        send_command(
            self.folder,
            Command(
                id=name,
                author="ops",
                host="h",
                at_us=1,
                kind=kind,
                payload=payload,
                expected_state=if_state,
            ),
        )

    async def run(
        self,
        plot: Callable[[Live, Driver], Any],
        *,
        own: tuple[str, ...] = (),
        found: str | None = None,
    ) -> Outcome:
        driver = await self.bench.driver()
        self.listener = Listener(
            folder=self.folder,
            log=self.bench.log,
            driver=driver,
            clock=LoopClock(),
            stages=("read", "ask", "sum"),
            models=("m",),
            notify=self.told.append,
            startup_limits=own,
            initial_state=found,
        )
        async with self.listener.listening(), asyncio.TaskGroup() as group:
            group.create_task(plot(self, driver))
            return await driver.run()

    async def answers(self) -> list[object]:
        kinds = ["command_accepted", "command_rejected", "command_applied"]
        return [r.event for r in await self.bench.log.events(limit=10_000, kinds=kinds)]


async def nothing(live: Live, driver: Driver) -> None:
    del live, driver
