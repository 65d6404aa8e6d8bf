"""Ends the work of a process on a run: records it and describes it in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from runner.batch.batch import BatchCancellation, BatchEndpoint
from runner.engine.attempt_events import attempt_start
from runner.engine.driver import Driver, Outcome
from runner.engine.failure_policy import GO_ON
from runner.engine.planner import Planner
from runner.run.control import Listener
from runner.run.early_stopping import BY, sentence
from store.clock import Clock
from store.control import Command
from store.database import open_reader
from store.document import plural
from store.events import (
    AttemptFailed,
    CommandApplied,
    RunCancelled,
    RunDrained,
    RunFinished,
    TaskSkipped,
)
from store.log.interface import Log
from store.read.status import TaskCounts, status
from store.read.usage import open_batches, sent_starts
from store.results import ComparisonDecided
from store.runs import RunFolder

REASON = "cancelled"
PAGE = 1000
"""Tasks skipped at a time."""


async def cancel_rest(
    folder: RunFolder,
    log: Log,
    planner: Planner,
    clock: Clock,
    commands: Sequence[Command],
) -> int:
    """Skip all open tasks and record that the run was cancelled.

    Args:
        folder: the run's.
        log: the run's.
        planner: parses answers that arrived during cancellation.
        clock: measures the duration of cancelled calls.
        commands: the cancel commands, at least one; this applies them.

    Returns:
        The number of skipped tasks.
    """
    async for _ in planner.finish_reading():
        pass
    skipped = await _skip_cut(log, clock, commands[-1].author)
    with open_reader(folder.log) as reader:
        queue_keys = [queue.key for queue in status(reader).queues if queue.is_open]
    for stage, model in queue_keys:
        after = 0
        while rows := await log.open_tasks(stage, model, after=after, limit=PAGE):
            await log.append(
                *(TaskSkipped(task=row.task, reason=REASON) for row in rows)
            )
            await log.heartbeat()
            after = rows[-1].task
            skipped += len(rows)
    effect = f"{plural(skipped, 'open task')} skipped"
    await log.append(
        RunCancelled(by=commands[-1].author),
        *(CommandApplied(command=command.id, effect=effect) for command in commands),
    )
    return skipped


async def _skip_cut(log: Log, clock: Clock, by: str) -> int:
    """End attempts in flight as cancelled; the endpoint may have charged for them."""
    cut = await log.in_flight()
    for task, attempt in cut:
        begun = await attempt_start(log, task, attempt)
        failed = AttemptFailed(
            task=task,
            attempt=attempt,
            error="Cancelled",
            latency_ms=max(0.0, round((clock.now_us() - begun.at_us) / 1e3, 3)),
            message=f"cut by {by}; the endpoint may have charged for it",
            possible_usd=begun.worst_usd,
        )
        await log.append(failed, TaskSkipped(task=task, reason=REASON))
    return len(cut)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """Result of the process's work on a run."""

    outcome: Outcome | Literal["cancelled", "decided", "given up"]
    reason: str | None = None  #: one sentence, if the run is not finished


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding:
    """The final step of a process on a run."""

    folder: RunFolder
    log: Log
    clock: Clock
    planner: Planner
    driver: Driver
    listener: Listener
    #: the decision that ended it, if models were watched
    decided: ComparisonDecided | None = None
    endpoints: Mapping[str, BatchEndpoint] = field(default_factory=dict)
    """Endpoints of the batches, by model."""
    settle_s: float = 0.0  #: time after which an unlisted batch counts as absent
    is_fenced: bool = False  #: its lease on its part of the run had ended

    async def conclude(self, outcome: Outcome) -> RunOutcome:
        """Record the end, and describe it in one sentence."""
        # waits for a retry that is still being written
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

    async def _finish(self, counts: TaskCounts) -> RunOutcome:
        await self.log.append(
            RunFinished(
                completed=counts.completed, failed=counts.failed, skipped=counts.skipped
            ),
            *(
                CommandApplied(command=command.id, effect="the run had finished")
                for command in self.listener.cancels
            ),
        )
        return RunOutcome(outcome="finished")

    async def _cancel(self) -> RunOutcome:
        if self.endpoints:
            cancelling = BatchCancellation(
                folder=self.folder,
                log=self.log,
                clock=self.clock,
                endpoints=self.endpoints,
                settle_s=self.settle_s,
                notify=self.listener.notify,
            )
            await cancelling.cancel(self.listener.cancels[-1].author)
        skipped = await cancel_rest(
            self.folder, self.log, self.planner, self.clock, self.listener.cancels
        )
        return cancelled(self.folder.run_id, skipped)

    async def _stop(self, decided: ComparisonDecided, still_open: int) -> RunOutcome:
        reason = (
            f"{sentence(decided)}; {still_open:,} tasks stay open; "
            f"continue with: siftlog resume {self.folder.run_id}"
        )
        await self.log.append(RunDrained(by=BY, why=reason, open=still_open))
        return RunOutcome(outcome="decided", reason=reason)

    async def _left(self) -> str:
        """Describe the fate of calls in flight; the start of a sentence."""
        unknown, batches_text = len(await self.log.in_flight()), ""
        if self.endpoints:
            with open_reader(self.folder.log) as reader:
                unknown -= sum(start.batched for start in sent_starts(reader))
                recorded_batches = open_batches(reader)
            if recorded_batches.count:
                batches_text = (
                    f"{recorded_batches.requests:,} requests stay in "
                    f"{recorded_batches.count} open batches; "
                )
        return (
            f"abandoned {plural(unknown, 'call')} in flight; " if unknown else ""
        ) + batches_text

    async def _interrupt(self, outcome: Outcome, still_open: int) -> RunOutcome:
        lost = await self._left()
        resume = f"siftlog resume {self.folder.run_id}"
        command = "the same command" if self.folder.part else resume
        go_on = f"{lost}continue with: {command}"
        raise_it = f"{still_open:,} tasks are open and missing from scores; " + (
            "raise the budget in the file of the group and type siftlog run-all again"
            if self.driver.shares_budget
            else f"{go_on} --budget USD (or siftlog budget {self.folder.run_id} --add "
            "USD)"
        )
        in_spite = f"{lost}continue anyway with: {command} {GO_ON}"
        by, reason = {
            "finished": (
                "operator",
                f"Tasks were reopened as the run ended; {go_on}",
            ),
            "drained": (
                self.listener.drained_by or ("lease" if self.is_fenced else "operator"),
                f"Interrupted; {go_on}",
            ),
            "budget": ("budget", f"{self.driver.broke}; {raise_it}"),
            "endpoint": (
                "endpoint",
                f"{_unended(self.driver.stopped)}; fix it, then {go_on}",
            ),
            "futility": (
                "futility",
                f"{self.driver.futile}. {still_open:,} tasks stay open; {in_spite}",
            ),
            "job": ("job", f"{_unended(self.driver.stuck)}; fix the job, then {go_on}"),
            "held": (
                "held",
                f"Tasks with an unknown call are held; {go_on} --unknown retry",
            ),
        }[outcome]
        await self.log.append(RunDrained(by=by, why=reason, open=still_open))
        return RunOutcome(
            outcome="drained" if outcome == "finished" else outcome, reason=reason
        )


def _unended(sentence: str | None) -> str:
    """A sentence, such as an endpoint's, that goes on with more words."""
    return (sentence or "").rstrip(". ")


def cancelled(run: str, skipped: int) -> RunOutcome:
    """Return the end of a run whose open tasks were skipped by a cancel."""
    return RunOutcome(
        outcome="cancelled",
        reason=f"Cancelled; {skipped:,} open tasks were skipped. Score the "
        f"recorded answers with: siftlog score {run}; reopen the tasks "
        f"with: siftlog retry {run} --reason {REASON}",
    )
