"""Folds events into the changes of every projection; pure.

A `Fold` takes the run's state, the touched tasks and events in order, and then holds
the changes: tasks to write, and sums to add to the counting tables. It opens no file
and knows no clock. The SQLite log, the in-memory log and the rebuild all use it, so a
live projection and a replayed one are the same by construction; tests split event
sequences anywhere and compare.

Sums are of integers, so that they do not depend on how events were batched: money is
counted in pico-dollars.

An illegal move raises `IllegalMove`, and the whole fold must then be discarded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from store.errors import IllegalMove
from store.events import (
    KINDS,
    NAMES,
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    BatchEventBase,
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Event,
    LabelEvent,
    LimitObserved,
    ParameterRefused,
    RunCancelled,
    RunDrained,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    ScoringRecorded,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
    TasksReopened,
)
from store.fold_state import (
    US_PER_MINUTE,
    US_PER_S,
    ErrorSums,
    FailureOutcome,
    FailureSums,
    MinuteSums,
    ReplyTally,
    RunState,
    bucket_of,
)
from store.labels.events import LabelEventBase
from store.lineage import StageAdded
from store.results import ComparisonDecided
from store.served_by import charge_differs, served_keys
from store.task import (
    TRANSITIONS,
    PlannedTask,
    TaskDraft,
    TaskState,
    Transition,
    pico,
    planned_state,
)

#: Version of the projections; raise it with any change of this module's results, and
#: the next writer rebuilds them from the events.
CODE_VERSION = 7

TaskEvent: TypeAlias = (
    AttemptStarted
    | AttemptAnswered
    | AttemptFailed
    | TaskCompleted
    | TaskFailed
    | TaskSkipped
)
"""Events about one task only; each task's events are linked."""


#: Kinds that are not about one task: rare, and found by their marks.
MARKED = frozenset(
    kind
    for kind, event in KINDS.items()
    if event not in (*TaskEvent.__args__, *LabelEvent.__args__, LimitObserved)
)


def touched(event: Event) -> Iterable[int]:
    """Return numbers of the tasks that *event* moves, without those it plans."""
    match event:
        case TasksReopened():
            return event.tasks
        case AttemptsAbandoned():
            return [task for task, _ in event.attempts]
        case _:
            task: int | None = getattr(event, "task", None)  # of every `TaskEvent`
            return () if task is None else (task,)


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """Tasks that were planned together, numbered densely from `first`."""

    seq: int
    first: int
    tasks: Sequence[PlannedTask]


@dataclass(slots=True, kw_only=True)
class Fold:
    """The changes made by a sequence of events.

    `tasks` must hold every task that the events touch (see `touched`) before they are
    applied; both it and `run` are changed in place.
    """

    run: RunState
    tasks: dict[int, TaskDraft]
    blocks: list[PlannedBlock] = field(default_factory=list)
    moved: dict[int, TaskDraft] = field(default_factory=dict)
    counts: dict[tuple[str, str, TaskState], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    minutes: dict[tuple[str, str, int], MinuteSums] = field(
        default_factory=lambda: defaultdict(MinuteSums)
    )
    latencies: dict[tuple[str, str, int], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    replies: dict[tuple[str, str], ReplyTally] = field(
        default_factory=lambda: defaultdict(ReplyTally)
    )
    limiters: dict[str, tuple[LimitObserved, int]] = field(default_factory=dict)
    errors: dict[tuple[str, str, str], ErrorSums] = field(default_factory=dict)
    failures: dict[tuple[int, str, str, str, FailureOutcome], FailureSums] = field(
        default_factory=dict
    )
    reasons: dict[tuple[str, str], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    counters: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    marks: list[tuple[str, int]] = field(default_factory=list)
    pauses: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def previous(self, task: int | None) -> int | None:
        """Return the seq of the latest event about *task* only, so far."""
        draft = None if task is None else self.tasks.get(task)
        return None if draft is None else draft.event_seq

    def apply(  # noqa: C901, PLR0912 - one arm a kind; assert_never misses none
        self,
        seq: int,
        ts_us: int,
        event: Event,
        manifest: Sequence[PlannedTask] = (),
    ) -> None:
        """Apply one event; *manifest* is the payload of a `TasksPlanned`."""
        match event:
            case AttemptStarted():
                self._started(seq, ts_us, event)
            case AttemptAnswered():
                self._answered(seq, ts_us, event)
            case TaskCompleted():
                self._completed(seq, ts_us, event)
            case AttemptFailed():
                self._failed_attempt(seq, ts_us, event)
            case TaskFailed():
                self._failed(seq, ts_us, event)
            case TaskSkipped():
                draft = self._step(seq, event, Transition.SKIP)
                draft.reason = event.reason
                draft.reply_seq = None
                self.reasons["skip", event.reason] += 1
            case LimitObserved():
                self.limiters[event.model] = (event, ts_us)
            case TasksPlanned():
                self._planned(seq, event, manifest)
            case TasksReopened():
                for task in event.tasks:
                    self._reopened(seq, task)
            case AttemptsAbandoned():
                self._abandoned(seq, event)
            case (
                RunStarted()
                | RunResumed()
                | RunDrained()
                | RunCancelled()
                | (RunFinished())
            ):
                self.run.turn(ts_us, event)
            case RunPaused():
                self._paused(ts_us, event)
            case CommandAccepted():
                if event.kind in {"drain", "cancel"}:
                    self.run.draining_by = event.author
            case (
                CommandRejected()
                | CommandApplied()
                | ScoringRecorded()
                | ComparisonDecided()
                | StageAdded()
                | ParameterRefused()
                | BatchEventBase()
                | LabelEventBase()
            ):
                pass  # found by their marks
            case _:
                assert_never(event)
        kind = NAMES[type(event)]
        if kind in MARKED:
            self.marks.append((kind, seq))

    def _move(self, seq: int, task: int, move: Transition) -> TaskDraft:
        draft = self.tasks.get(task) or self._just_planned(task)
        if draft is None:
            raise IllegalMove(f"task {task} was never planned: {move.value}")
        state = TRANSITIONS.get((draft.state, move))
        if state is None:
            raise IllegalMove(
                f"task {task} is {draft.state.name.lower()} and cannot take "
                f"{move.value!r}"
            )
        if state is not draft.state:
            self.counts[draft.stage, draft.model, draft.state] -= 1
            self.counts[draft.stage, draft.model, state] += 1
            draft.state = state
        draft.updated_seq = seq
        self.moved[task] = draft
        return draft

    def _just_planned(self, task: int) -> TaskDraft | None:
        """Return a newly planned task of this fold's own blocks."""
        for block in self.blocks:
            if block.first <= task < block.first + len(block.tasks):
                plan = block.tasks[task - block.first]
                draft = self.tasks[task] = TaskDraft.planned(task, plan, block.seq)
                return draft
        return None

    def _step(self, seq: int, event: TaskEvent, move: Transition) -> TaskDraft:
        """Apply a transition by one of the task's own events."""
        draft = self._move(seq, event.task, move)
        draft.event_seq = seq
        return draft

    def _started(self, seq: int, ts_us: int, event: AttemptStarted) -> None:
        draft = self._step(seq, event, Transition.START)
        draft.attempts = max(draft.attempts, event.attempt)
        draft.tries += 1
        draft.sent = True
        draft.since_us = ts_us
        draft.started_seq = seq
        draft.not_before_us = None
        self.counters["attempts_started"] += 1
        self.minutes[draft.stage, draft.model, ts_us // US_PER_MINUTE].started += 1

    def _answered(self, seq: int, ts_us: int, event: AttemptAnswered) -> None:
        refused = event.reask is not None
        draft = self._step(
            seq, event, Transition.REFUSE if refused else Transition.ANSWER
        )
        was_sent = draft.sent
        if not was_sent:  # it came without a request
            draft.attempts = max(draft.attempts, event.attempt)
            draft.tries += 1
            draft.since_us = ts_us
        draft.sent = False
        draft.reply_seq = seq
        draft.latency_ms = event.latency_ms
        draft.error = None
        cost = 0
        if event.cost_usd is not None:
            cost = pico(event.cost_usd)
            draft.cost_pico = (draft.cost_pico or 0) + cost
        elif event.possible_usd is not None:
            self._possible(event.possible_usd)
        else:
            self.counters["answers_unpriced"] += 1
        counters = self.counters
        counters["attempts_answered"] += 1
        counters["cost_pico"] += cost
        minute = self.minutes[draft.stage, draft.model, ts_us // US_PER_MINUTE]
        minute.cost_pico += cost
        if event.cached:
            counters["answers_cached"] += 1
            if event.kept:
                counters["answers_kept"] += 1
            if was_sent and draft.since_us is not None:
                # it was found in a cache, so that minute had no request
                started = draft.since_us // US_PER_MINUTE
                self.minutes[draft.stage, draft.model, started].started -= 1
        else:
            counters["tokens_in"] += event.tokens_in or 0
            counters["tokens_out"] += event.tokens_out or 0
            counters["tokens_cached"] += event.tokens_cached or 0
            minute.tokens_in += event.tokens_in or 0
            minute.tokens_out += event.tokens_out or 0
            self._count_served(draft.model, event)
            if event.latency_ms is not None:
                bucket = bucket_of(event.latency_ms)
                self.latencies[draft.model, draft.stage, bucket] += 1
        if event.adopted is None:  # the log that paid for it counts it
            self._count_reply(draft.stage, draft.model, event)
        if event.reask is not None:
            minute.retried += 1
            self.reasons["re-ask", event.reask] += 1
            self._went_wrong(ts_us, event.reask, draft, FailureOutcome.REASKED)

    def _count_reply(self, stage: str, model: str, event: AttemptAnswered) -> None:
        """Count how a reply ended and whether it was usable."""
        tally = self.replies[stage, model]
        tally.replies += 1
        tally.truncated += event.finish_reason == "length"
        tally.refused += event.finish_reason == "refusal"
        tally.filtered += event.finish_reason == "content_filter"
        tally.empty += event.empty
        tally.unparsed += event.reask is not None

    def _count_served(self, model: str, event: AttemptAnswered) -> None:
        """Count what served an answer and the gaps in its usage."""
        for key in served_keys(model, event.served):
            self.reasons[key] += 1
        counters = self.counters
        if event.tokens_in is None and event.cost_usd is None:
            counters["usage_unknown"] += 1
        if event.usage_doubtful:
            counters["usage_doubtful"] += 1
        if event.charged_usd is not None:
            counters["charged_pico"] += pico(event.charged_usd)
            counters["answers_charged"] += 1
            expected_usd = event.cost_usd
            if expected_usd is not None and charge_differs(
                expected_usd, event.charged_usd
            ):
                counters["charges_differ"] += 1

    def _failed_attempt(self, seq: int, ts_us: int, event: AttemptFailed) -> None:
        retried = event.retry_in_s is not None
        move = Transition.RETRY if retried else Transition.GIVE_UP
        draft = self._step(seq, event, move)
        draft.sent = False
        draft.error = event.error
        minute = self.minutes[draft.stage, draft.model, ts_us // US_PER_MINUTE]
        if event.retry_in_s is not None:
            draft.not_before_us = ts_us + round(event.retry_in_s * US_PER_S)
            minute.retried += 1
        self.counters["attempts_failed"] += 1
        self._possible(event.possible_usd)
        key = (event.error, draft.stage, draft.model)
        seen = self.errors.get(key) or ErrorSums(0, 0, seq, event.task)
        self.errors[key] = ErrorSums(
            seen.n + 1, seen.final + (not retried), seq, event.task
        )
        outcome = FailureOutcome.RETRIED if retried else FailureOutcome.FINAL
        self._went_wrong(ts_us, event.error, draft, outcome)

    def _failed(self, seq: int, ts_us: int, event: TaskFailed) -> None:
        draft = self._step(seq, event, Transition.FAIL)
        draft.error = event.error
        draft.reply_seq = None
        self.minutes[draft.stage, draft.model, ts_us // US_PER_MINUTE].failed += 1
        tally = self.replies[draft.stage, draft.model]
        tally.failed += 1
        tally.filtered += event.error == "ContentFiltered"
        if event.fault is not None:
            # it failed in the job's code, and no attempt counted it
            key = (event.error, draft.stage, draft.model)
            seen = self.errors.get(key) or ErrorSums(0, 0, seq, event.task)
            self.errors[key] = ErrorSums(seen.n + 1, seen.final + 1, seq, event.task)
            self._went_wrong(ts_us, event.error, draft, FailureOutcome.FINAL)

    def _went_wrong(
        self, ts_us: int, error: str, draft: TaskDraft, outcome: FailureOutcome
    ) -> None:
        key = (ts_us // US_PER_MINUTE, error, draft.stage, draft.model, outcome)
        seen = self.failures.get(key)
        n = 1 if seen is None else seen.n + 1
        self.failures[key] = FailureSums(n, draft.task)

    def _completed(self, seq: int, ts_us: int, event: TaskCompleted) -> None:
        draft = self._step(seq, event, Transition.COMPLETE)
        if draft.reply_seq is None:
            raise IllegalMove(f"task {event.task} has no reply to be completed with")
        draft.error = None
        draft.reason = event.unparsed
        if event.unparsed is not None:
            self.counters["tasks_unparsed"] += 1
            self.reasons["parse", event.unparsed] += 1
            self._went_wrong(ts_us, event.unparsed, draft, FailureOutcome.UNPARSED)
            # an accepted earlier reply was already counted when it was refused
            if event.attempt == draft.attempts and not event.adopted:
                self.replies[draft.stage, draft.model].unparsed += 1
        self.minutes[draft.stage, draft.model, ts_us // US_PER_MINUTE].succeeded += 1
        self.run.success_us = ts_us

    def _reopened(self, seq: int, task: int) -> None:
        draft = self._move(seq, task, Transition.REOPEN)
        if draft.reason is not None:
            if draft.reply_seq is None:
                self.reasons["skip", draft.reason] -= 1
            else:
                self.counters["tasks_unparsed"] -= 1
                self.reasons["parse", draft.reason] -= 1
        draft.tries = 0
        draft.reply_seq = None
        draft.error = None
        draft.reason = None
        draft.not_before_us = None

    def _abandoned(self, seq: int, event: AttemptsAbandoned) -> None:
        move = Transition.HOLD if event.hold else Transition.ABANDON
        for task, _attempt in event.attempts:
            draft = self._move(seq, task, move)
            draft.abandoned += 1
            draft.tries -= 1
            draft.sent = False
            draft.not_before_us = None
        self.counters["attempts_unknown"] += len(event.attempts)
        self._possible(event.possible_usd)

    def _possible(self, usd: float) -> None:
        """Add money that may have been spent without a reply or without usage."""
        if usd:
            self.counters["possible_pico"] += pico(usd)

    def _planned(
        self, seq: int, event: TasksPlanned, manifest: Sequence[PlannedTask]
    ) -> None:
        self.run.plan(event, len(manifest))
        self.blocks.append(PlannedBlock(seq, event.first, manifest))
        for (stage, model, skip), n in Counter(
            (plan.stage, plan.model, plan.skip) for plan in manifest
        ).items():
            self.counts[stage, model, planned_state(skip)] += n
            if skip is not None:
                self.reasons["skip", skip] += n

    def _paused(self, ts_us: int, event: RunPaused) -> None:
        paused_by = event.by if event.paused else None
        if not event.paused:
            # nothing could succeed before, so this is not a stall
            self.run.phase_us = ts_us
        if event.stage is None and event.model is None:
            self.run.paused_by = paused_by
        else:
            self.pauses[event.stage or "", event.model or ""] = paused_by
