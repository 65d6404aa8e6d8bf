"""A whole run: its processes one after another, and who interferes.

A crash cancels everything that a process is doing, but only after its log and its
connections are dead: what runs while it unwinds reaches nobody, as after a kill -9.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner import plan
from runner.engine import planner
from runner.engine.model_queue import ModelQueue
from store.events import RecordedEvent
from tests.simulation.ahead import LogAhead
from tests.simulation.broken import Broken
from tests.simulation.disk import Disk, MemoryDisk, SqliteDisk
from tests.simulation.invariants import check
from tests.simulation.listening import reading
from tests.simulation.loop import SimulatedClock, SimulatedLoop
from tests.simulation.past import Past
from tests.simulation.people import Operator
from tests.simulation.process import Orders, Process
from tests.simulation.provider import Provider
from tests.simulation.report import Report
from tests.simulation.scenario import CRASH, DRAIN, RETRY, STOP, Act, Scenario, Sizes

ROUNDING_S = 1e-6
BY_SIGNAL = 0.5
"""Share of the drains that come by signal, not by command."""
MOST_STEPS = 300_000
MOST_SECONDS = 3 * 86_400
"""A virtual weekend: far more than the longest weather and all that may be tried."""
MOST_PROCESSES = 2_000
"""A wrong key ends a process at once; somebody looks again a little later."""


class World:
    """One seed from beginning to end."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        folder: Path | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Keep the log in *folder*, or in memory; *say* gets a line a step."""
        self._scenario = scenario
        self._folder = folder
        self._tell = say
        self._chance = random.Random(f"world {scenario.seed}")
        self.report = Report()
        self._acts = list(reversed(scenario.acts))
        self._next_act = self._acts[-1].after if self._acts else None
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._crashed = False
        self._is_over = False
        self._unseen: object = None
        self._past: list[Past] = []
        self.loop: SimulatedLoop
        self.disk: Disk
        self.events: list[RecordedEvent] = []  #: once it is over
        self.provider: Provider
        self.operator: Operator

    def run(self) -> Report:
        """Run it.

        Raises:
            Broken: an invariant was violated.
        """
        with (
            _sizes(self._scenario.sizes),
            asyncio.Runner(loop_factory=self._make_loop) as runner,
        ):
            try:
                runner.run(self._live())
            except RuntimeError as error:
                if "wake-up was lost" not in str(error):
                    raise
                raise Broken("nothing waits for ever", str(error)) from error
            finally:
                self._is_over = True
                self._account()
        if self._unseen is not None:
            raise Broken("no error goes unseen", repr(self._unseen))
        return self.report

    def _make_loop(self) -> SimulatedLoop:
        self.loop = SimulatedLoop(self._turn, self._sleep)
        self.loop.set_exception_handler(self._note)
        return self.loop

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that asyncio would only print."""
        del loop
        self._unseen = self._unseen or context.get("exception") or context["message"]

    def _account(self) -> None:
        report = self.report
        report.runs = 1
        report.virtual_s = self.loop.time()
        report.attempts = len(self.provider.ledger)
        report.fates = self.provider.fates
        report.events = self.disk.seq

    def _say(self, what: str) -> None:
        if self._tell is not None:
            now = self.loop.time()
            self._tell(f"{now:12.4f} s  step {self.report.steps:6d}  {what}")

    # -- the course of things --------------------------------------------------

    async def _live(self) -> None:
        clock = SimulatedClock(self.loop)
        scenario = self._scenario
        self.disk = (
            MemoryDisk(clock)
            if self._folder is None
            else SqliteDisk(self._folder, clock)
        )
        self.provider = Provider(
            scenario,
            clock,
            random.Random(f"provider {scenario.seed}"),
            None if self._tell is None else self._say,
        )
        self.operator = Operator(scenario, self.loop, clock, self.provider)
        orders = Orders()
        with reading(self.disk):
            while (end := await self._one_process(clock, orders)) != "finished" or (
                self._is_asked_again()
            ):
                if self.report.processes > MOST_PROCESSES:
                    raise Broken("nothing waits for ever", "one process after another")
                # whoever resumes it takes a while
                await asyncio.sleep(self._chance.choice((0.1, 5.0, 600.0)))
                orders = self.operator.orders(
                    end, is_cancelled=self.disk.standing().is_cancelled
                )
        self.events = await self.disk.recorded()
        await check(scenario, self.disk, self.provider, self.events, self._past)

    async def _one_process(self, clock: SimulatedClock, orders: Orders) -> str:
        report = self.report
        report.processes += 1
        log = LogAhead(
            self.disk,
            self.loop,
            random.Random(f"disk {self._scenario.seed} {report.processes}"),
            self._scenario.disk_s,
            None if self._tell is None else self._say,
        )
        self._process = process = Process(
            number=report.processes,
            scenario=self._scenario,
            log=log,
            disk=self.disk,
            provider=self.provider,
            clock=clock,
            orders=orders,
            commands=self.operator.commands,
        )
        self._crashed = False
        self._say(f"process {report.processes} begins")
        ended: list[str | Exception] = []
        async with asyncio.TaskGroup() as group:
            self._task = group.create_task(_outcome(process, ended))
        self._task = self._process = None
        self.disk.end(is_crash=self._crashed)
        if log.refused is not None:
            raise log.refused
        outcome = CRASH if self._crashed else ended[0]
        if isinstance(outcome, Exception):
            raise outcome
        report.ends[outcome] += 1
        self._say(f"process {report.processes} ended: {outcome}")
        self._past.append(
            Past(
                end=outcome,
                holds=orders.holds,
                gate_s=log.longest_s,
                drained_at_s=process.drained_at_s,
            )
        )
        return outcome

    def _is_asked_again(self) -> bool:
        """Whether somebody wants a retry of the run that is over."""
        while self._acts and self._acts[-1].kind != RETRY:
            self._acts.pop()
        if not self._acts:
            self._next_act = None
            return False
        self._count(self._acts.pop())
        self.operator.ask(RETRY)
        return True

    # -- interference ----------------------------------------------------------

    def _turn(self) -> None:
        """Before each turn of the loop: the next act, if it is due."""
        if self._is_over:
            return
        report = self.report
        report.steps += 1
        if report.steps > MOST_STEPS:
            raise Broken("nothing waits for ever", f"{report.steps} steps")
        if self.loop.time() > MOST_SECONDS:
            raise Broken("nothing waits for ever", f"{self.loop.time():.0f} s")
        if self._next_act is None or report.steps < self._next_act:
            return
        if self._process is None or self._crashed:
            return  # between two processes; it meets the next one
        act = self._acts.pop()
        self._count(act)
        self._do(act, self._process)

    def _count(self, act: Act) -> None:
        steps = self.report.steps
        self._next_act = steps + self._acts[-1].after if self._acts else None
        self.report.acts[act.kind] += 1
        self._say(f"--- {act.kind}")

    def _sleep(self, until: float) -> None:
        """Nothing happens before *until*: nothing may be due before it."""
        if self._process is None or self._crashed or self._is_over:
            return
        due = self._process.due(self.loop.time())
        if due is not None and due < until - ROUNDING_S:
            raise Broken(
                "nothing waits for ever",
                f"a wake-up was lost: due at {due:.6f} s, asleep until {until:.6f} s",
            )

    def _do(self, act: Act, process: Process) -> None:
        if act.kind == CRASH:
            self._crash(process)
        elif act.kind == STOP:
            process.stop()
        elif act.kind == DRAIN and act.chance < BY_SIGNAL:
            process.drain()
        else:
            self.operator.act(act)

    def _crash(self, process: Process) -> None:
        assert self._task is not None
        self._crashed = True
        process.log.die()
        self._task.cancel()


@contextmanager
def _sizes(sizes: Sizes) -> Iterator[None]:
    """The engine's own sizes for the time of one run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "PAGE", sizes.page)
        patch.setattr(plan, "BLOCK", sizes.block)
        patch.setattr(ModelQueue, "window", sizes.window)
        patch.setattr(ModelQueue, "most_unsettled", sizes.unsettled)
        yield


async def _outcome(process: Process, ended: list[str | Exception]) -> None:
    """Keep how a process ended: an error of its is no error of the world's."""
    try:
        ended.append(await process.run())
    except Exception as error:  # noqa: BLE001 - raised again, unless it had crashed
        ended.append(error)
