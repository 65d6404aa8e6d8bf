"""The spans of a run, and the histograms of its attempts, in one pass over its log.

A first-stage task and all that follows from it are one trace: what became of an item.
Below it stand the attempts, and the tasks that came of its answer. The run is a trace
of its own, to which those of the items are linked: of a trace of a million spans some
who keep traces discard a part, and nobody shows it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from runner.telemetry.conventions import DURATION_BOUNDS, OFFLINE, TOKEN_BOUNDS, Name
from runner.telemetry.histogram import Histograms
from runner.telemetry.operation import asked, parameters, parties
from runner.telemetry.span import Attributes, Context, Span, Value
from store.events import AttemptAnswered, AttemptFailed, RunStarted
from store.read.status import run_started, status
from store.read.tasks import AttemptRow, attempts, event_times
from store.scoring import task_families
from store.served import SERVED_UNKNOWN
from store.tables import last_seq, payload
from store.task import TaskRow, TaskState

PAGE: Final = 500
"""Tasks whose ends are looked up together."""

FINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.SKIPPED})

ENDED: Final = frozenset({"run_finished", "run_cancelled"})
"""Kinds of the events after which a run goes on only if a person says so."""

UNKNOWN: Final = "unknown"
"""The error of an attempt whose outcome nobody knows: its process was killed."""


@dataclass(slots=True, kw_only=True)
class Measured:
    """What was counted on the way; complete once the spans are through."""

    tokens: Histograms = field(default_factory=lambda: Histograms(TOKEN_BOUNDS))
    seconds: Histograms = field(default_factory=lambda: Histograms(DURATION_BOUNDS))
    spans: int = 0
    until_us: int = 0  #: the last moment that a span speaks of


class Tracing:
    """One run's log, read as spans."""

    def __init__(
        self,
        reader: sqlite3.Connection,
        progress: Callable[[str], object] = lambda _: None,
    ) -> None:
        """How the run stands; of what is recorded from here on nothing is read.

        Args:
            reader: of the log.
            progress: is told from time to time how far the reading has come.
        """
        self._progress = progress
        self._reader = reader
        self._state = status(reader)
        #: the last event to be seen: not before the one that the state is of
        self.upto = last_seq(reader)
        self.first: RunStarted = run_started(reader)
        self.start_us = event_times(reader, [1])[1]
        # the same id may be given again where a folder was moved away
        self._run = ("siftlog", self.first.run_id, str(self._state.created_us))
        self.measured = Measured()

    @property
    def is_ended(self) -> bool:
        """Whether nothing is left to do, so that the run has a span of its own."""
        return not self._state.tasks.open and self._state.signs.phase in ENDED

    def __iter__(self) -> Iterator[Span]:
        """All spans that have an end: of tasks in their order, then that of the run."""
        rows = task_families(self._reader, self.upto)
        root: TaskRow | None = None
        done = 0
        while page := list(islice(rows, PAGE)):
            ends = event_times(self._reader, {row.updated_seq for row in page})
            for row in page:
                # a family begins with the task that it descends from
                root = row if root is None or row.root == row.task else root
                if row.attempts:
                    yield from self._counted(self._of_task(row, root, ends))
            done += len(page)
            self._progress(f"{done:,} of {self._state.tasks.planned:,} tasks")
        yield from self._counted(self._of_run())

    def _counted(self, spans: Iterator[Span]) -> Iterator[Span]:
        for span in spans:
            self.measured.spans += 1
            self.measured.until_us = max(self.measured.until_us, span.end_us)
            yield span

    def _of_run(self) -> Iterator[Span]:
        state = self._state
        if not self.is_ended:
            return
        given: dict[str, Value | None] = {
            Name.JOB: self.first.job,
            Name.JOB_VERSION: self.first.job_version,
            Name.IMPORTED: self.first.imported,
            Name.COMPLETED: state.tasks.completed,
            Name.FAILED: state.tasks.failed,
            Name.SKIPPED: state.tasks.skipped,
            Name.COST: state.cost_usd,
        }
        yield Span(
            name=f"run {self.first.job}",
            context=self._run_context(),
            start_us=self.start_us,
            end_us=max(self.start_us, state.signs.phase_us),
            attributes=_known(given),
        )

    def _run_context(self) -> Context:
        return Context.of(self._run, ("run",))

    def _context(self, root: TaskRow, row: TaskRow, *more: str) -> Context:
        """By what makes a task the one it is, in the trace of its first-stage task."""
        return Context.of((*self._run, *_identity(root)), (*_identity(row), *more))

    def _of_task(
        self, row: TaskRow, root: TaskRow, ends: dict[int, int]
    ) -> Iterator[Span]:
        own = self._context(root, row)
        spans: list[Span] = []
        for each in self._attempts(row):
            context = self._context(root, row, str(each.attempt))
            if (span := self._of_attempt(row, own, context, each)) is not None:
                spans.append(span)
                yield span
        if row.state not in FINAL or not spans:
            return
        is_root = row.task == root.task
        given: dict[str, Value | None] = {
            **_task_attributes(row),
            Name.STATE: row.state.name.lower(),
            Name.REASON: row.reason,
            Name.COST: row.cost_usd,
        }
        yield Span(
            name=f"task {row.stage}",
            context=own,
            parent=None if is_root else self._context(root, root),
            link=self._run_context() if is_root else None,
            start_us=spans[0].start_us,
            end_us=max(spans[-1].end_us, ends[row.updated_seq]),
            attributes=_known(given),
            error=row.error if row.state is TaskState.FAILED else None,
        )

    def _attempts(self, row: TaskRow) -> Iterator[AttemptRow]:
        """Those of a task that came to an end, or can come to none any more."""
        for each in attempts(self._reader, row.task):
            # one above the row's was started since the row was read
            is_given_up = each.attempt < row.attempts or (
                each.attempt == row.attempts and row.state is not TaskState.RUNNING
            )
            if each.outcome is not None or is_given_up:
                yield each

    def _of_attempt(
        self, row: TaskRow, task: Context, context: Context, each: AttemptRow
    ) -> Span | None:
        if (end_us := each.ended_us or each.started_us) is None:
            return None
        outcome = each.outcome
        stored = each.started_seq and payload(self._reader, each.started_seq)
        form = outcome.form if isinstance(outcome, AttemptAnswered) else ""
        request = asked(stored or None, form)
        told = parties(request, row.model)
        error = _error(outcome)
        self._measure(outcome, told, error)
        return Span(
            name=f"{told[Name.OPERATION]} {told[Name.REQUEST_MODEL]}",
            context=context,
            parent=task,
            kind="internal" if told[Name.PROVIDER] == OFFLINE else "client",
            start_us=end_us if each.started_us is None else each.started_us,
            end_us=end_us,
            attributes={
                **told,
                **parameters(request),
                **_task_attributes(row),
                Name.ATTEMPT: each.attempt,
                **_outcome_attributes(outcome),
            },
            error=error,
        )

    def _measure(
        self,
        outcome: AttemptAnswered | AttemptFailed | None,
        told: Attributes,
        error: str | None,
    ) -> None:
        """Count what was sent: what the response cache answered took nothing."""
        if outcome is None or (isinstance(outcome, AttemptAnswered) and outcome.cached):
            return
        if outcome.latency_ms is not None:
            ended = told if error is None else {**told, Name.ERROR: error}
            self.measured.seconds.add(outcome.latency_ms / 1000, ended)
        if isinstance(outcome, AttemptAnswered):
            counts = {"input": outcome.tokens_in, "output": outcome.tokens_out}
            for kind, tokens in counts.items():
                if tokens is not None:
                    self.measured.tokens.add(tokens, {**told, Name.TOKEN_TYPE: kind})


def _identity(row: TaskRow) -> tuple[str, ...]:
    return row.stage, row.key, row.model, str(row.replicate)


def _task_attributes(row: TaskRow) -> Attributes:
    return {
        Name.TASK: row.task,
        Name.STAGE: row.stage,
        Name.KEY: row.key,
        Name.MODEL: row.model,
        Name.REPLICATE: row.replicate,
    }


def _error(outcome: AttemptAnswered | AttemptFailed | None) -> str | None:
    if outcome is None:
        return UNKNOWN
    return outcome.error if isinstance(outcome, AttemptFailed) else None


def _outcome_attributes(
    outcome: AttemptAnswered | AttemptFailed | None,
) -> Attributes:
    given: dict[str, Value | None] = {}
    match outcome:
        case AttemptAnswered():
            served = outcome.served or SERVED_UNKNOWN
            given = {
                Name.RESPONSE_MODEL: served.model,
                Name.RESPONSE_ID: served.request_id,
                Name.RESPONSE_TIER: served.tier,
                Name.FINGERPRINT: served.fingerprint,
                Name.SERVED_BY: served.provider,
                Name.REGION: served.region,
                Name.FINISH_REASONS: (outcome.finish_reason,),
                Name.TOKENS_IN: outcome.tokens_in,
                Name.TOKENS_OUT: outcome.tokens_out,
                Name.TOKENS_CACHED: outcome.tokens_cached,
                Name.TOKENS_CACHE_WRITE: outcome.tokens_cache_write,
                Name.TOKENS_REASONING: outcome.tokens_reasoning or None,
                Name.COST: outcome.cost_usd,
                Name.CHARGED: outcome.charged_usd,
                Name.CACHED: outcome.cached,
                Name.REASKED: outcome.reask,
            }
        case AttemptFailed():
            given = {Name.HTTP_STATUS: outcome.status}
        case None:
            pass
    return _known(given)


def _known(given: dict[str, Value | None]) -> Attributes:
    return {name: value for name, value in given.items() if value is not None}
