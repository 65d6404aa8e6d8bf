"""How a process's work on a run ends: what it writes last, and the sentence it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from runner.batch.cancelling import Cancelling
from runner.batch.endpoint import BatchEndpoint
from runner.control.cancelling import REASON, cancel_rest
from runner.control.decider import BY, sentence
from runner.control.listen import Listener
from runner.engine.driver import Driver, Outcome
from runner.engine.futility import GO_ON
from runner.engine.growth import Growth
from store.clock import Clock
from store.database import open_reader
from store.events import CommandApplied, RunDrained, RunFinished
from store.log.interface import Log
from store.read.status import TaskCounts, status
from store.read.usage import open_batches, sent_starts
from store.results import ComparisonDecided
from store.runs import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the process's work on a run came out."""

    outcome: Outcome | Literal["cancelled", "decided", "given up"]
    why: str | None = None  #: one sentence, where the run is not finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The last thing that a process does for a run."""

    folder: RunFolder
    log: Log
    clock: Clock
    growth: Growth
    driver: Driver
    listener: Listener
    decided: ComparisonDecided | None = None  #: what ended it, if models were watched
    endpoints: Mapping[str, BatchEndpoint] = field(default_factory=dict)
    """Where batches are, by model."""
    settle_s: float = 0.0  #: until a batch that is not shown is not there
    is_fenced: bool = False  #: its lease on its part of the run had ended

    async def conclude(self, outcome: Outcome) -> Ended:
        """Write how it ended, and say it in one sentence."""
        # in turn after a retry that was still being written
        await self.log.last_seq()
        with open_reader(self.folder.log) as reader:
            counts = status(reader).tasks
        if outcome == "finished" and not counts.open:
            return await self._finish(counts)
        if self.listener.cancels:
            return await self._cancel()
        if self.decided is not None:
            return await self._stop(self.decided, counts.open)
        return await self._interrupt(outcome, counts.open)

    async def _finish(self, counts: TaskCounts) -> Ended:
        await self.log.append(
            RunFinished(
                completed=counts.completed, failed=counts.failed, skipped=counts.skipped
            ),
            *(
                CommandApplied(command=command.id, effect="the run had finished")
                for command in self.listener.cancels
            ),
        )
        return Ended(outcome="finished")

    async def _cancel(self) -> Ended:
        if self.endpoints:
            cancelling = Cancelling(
                folder=self.folder,
                log=self.log,
                clock=self.clock,
                endpoints=self.endpoints,
                settle_s=self.settle_s,
                tell=self.listener.tell,
            )
            await cancelling.cancel(self.listener.cancels[-1].author)
        skipped = await cancel_rest(
            self.folder, self.log, self.growth, self.clock, self.listener.cancels
        )
        return cancelled(self.folder.run_id, skipped)

    async def _stop(self, decided: ComparisonDecided, still_open: int) -> Ended:
        why = (
            f"{sentence(decided)}; {still_open:,} tasks stay open, ask them with: "
            f"siftlog resume {self.folder.run_id}"
        )
        await self.log.append(RunDrained(by=BY, why=why, open=still_open))
        return Ended(outcome="decided", why=why)

    async def _left(self) -> str:
        """What becomes of the calls that are out, as the beginning of a sentence."""
        unknown, said = len(await self.log.in_flight()), ""
        if self.endpoints:
            with open_reader(self.folder.log) as reader:
                unknown -= sum(start.batched for start in sent_starts(reader))
                there = open_batches(reader)
            if there.count:
                said = (
                    f"{there.requests:,} requests stay in {there.count} open batches; "
                )
        return (f"{unknown} calls in flight were given up; " if unknown else "") + said

    async def _interrupt(self, outcome: Outcome, still_open: int) -> Ended:
        lost = await self._left()
        resume = f"siftlog resume {self.folder.run_id}"
        command = "the same command" if self.folder.part else resume
        go_on = f"{lost}go on with: {command}"
        raise_it = f"{still_open:,} tasks are open and missing from scores; " + (
            "raise the budget in the file of the group and type siftlog run-all again"
            if self.driver.shares_budget
            else f"{go_on} --budget USD (or siftlog budget {self.folder.run_id} --add "
            "USD)"
        )
        in_spite = f"{lost}go on all the same with: {command} {GO_ON}"
        by, why = {
            "finished": (
                "operator",
                f"Tasks were put back into the queue as the run ended; {go_on}",
            ),
            "drained": (
                self.listener.drained_by or ("lease" if self.is_fenced else "operator"),
                f"Interrupted; {go_on}",
            ),
            "budget": ("budget", f"{self.driver.broke}; {raise_it}"),
            "endpoint": ("endpoint", f"{self.driver.stopped}; mend it, then {go_on}"),
            "futility": (
                "futility",
                f"{self.driver.futile}. {still_open:,} tasks stay open; {in_spite}",
            ),
            "job": ("job", f"{self.driver.stuck}; mend the job, then {go_on}"),
            "held": (
                "held",
                f"Tasks with an unknown call are held; {go_on} --unknown retry",
            ),
        }[outcome]
        await self.log.append(RunDrained(by=by, why=why, open=still_open))
        return Ended(outcome="drained" if outcome == "finished" else outcome, why=why)


def cancelled(run: str, skipped: int) -> Ended:
    """How a run ends whose open tasks were skipped for good."""
    return Ended(
        outcome="cancelled",
        why=f"Cancelled; {skipped:,} open tasks were skipped. Score what there is "
        f"with: siftlog score {run}; bring them back with: siftlog retry {run} "
        f"--reason {REASON}",
    )
