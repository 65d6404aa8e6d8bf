"""Folds each log of a split run separately and joins the projections.

Counts (calls, money, tokens, minutes) are summed over all logs. States of tasks are
not: every log keeps its own draft of a task, with the usual transitions, and the task's
row is the best of the drafts. So the union is the same for any order and any division
of merges.

Tasks changed by one log only, nearly all of them, have no draft besides their row.

Pure. Each log holds a valid history of the task, unaware of the other logs: one may
have been lost with its disk and found again after another had repeated the work. The
same claim wins in any order of merging.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import msgspec

from store import tables
from store.database import DERIVED, UNION
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Event,
    RunStarted,
    TaskCompleted,
    TasksPlanned,
    TasksReopened,
)
from store.fold import Fold
from store.fold_state import RunState
from store.slices import ALL
from store.task import PlannedTask, TaskDraft, TaskState, planned_state
from store.union import parts
from store.union.parts import PartState

_S = TaskState
ORDER = (_S.COMPLETED, _S.FAILED, _S.SKIPPED, _S.RUNNING, _S.WAITING, _S.QUEUED)
"""An answer ranks first; a final state ranks above one that a lost log left open."""

Claims: TypeAlias = Mapping[int, TaskDraft]
"""A task as each part, by its number, sees it."""


class Precedence(NamedTuple):
    """Of two replies to one task, the lower one counts."""

    is_adopted: bool  #: the copy of another log's: after the original
    attempt: int
    writer: bytes
    log_seq: int  #: in its own log


_NO_REPLY = Precedence(is_adopted=False, attempt=0, writer=b"", log_seq=0)


def best_claim(
    claims: Claims,
    replies: Mapping[int, Precedence],
    reopened: Mapping[int, int],
    logs: Mapping[int, bytes],
) -> TaskDraft:
    """Return the task's row in the union: the best claim, with the cost of all.

    A log in which a user retried the task outranks the others, because the retry
    discarded their results.

    Args:
        claims: at least one.
        replies: by event, how those that `reply_seq` names take precedence.
        reopened: by part, how often the task was put back in the queue, if it was.
        logs: by part, the id of its log: it breaks ties.
    """
    drafts = claims.values()
    costs = [draft.cost_pico for draft in drafts if draft.cost_pico is not None]
    events = [draft.event_seq for draft in drafts if draft.event_seq is not None]
    chosen = min(
        claims,
        key=lambda part: (
            -reopened.get(part, 0),
            *_rank(claims[part], replies),
            logs[part],
        ),
    )
    return replace(
        claims[chosen],
        attempts=max(draft.attempts for draft in drafts),
        abandoned=sum(draft.abandoned for draft in drafts),
        cost_pico=sum(costs) if costs else None,
        updated_seq=max(draft.updated_seq for draft in drafts),
        event_seq=max(events, default=None),
    )


def _rank(
    draft: TaskDraft, replies: Mapping[int, Precedence]
) -> tuple[int, Precedence]:
    reply = None
    if draft.state is TaskState.COMPLETED and draft.reply_seq is not None:
        reply = replies.get(draft.reply_seq)
    return ORDER.index(draft.state), reply or _NO_REPLY


_ENCODER = msgspec.json.Encoder()
_DRAFT = msgspec.json.Decoder(TaskDraft)
#: Events with more information than a task's row and the sums.
_PART_EVENTS = (RunStarted, TasksReopened, TasksPlanned)


class FoldItem(NamedTuple):
    """An event to be folded."""

    seq: int
    ts_us: int
    event: Event
    manifest: Sequence[PlannedTask] = ()  #: of a `TasksPlanned`


def create_tables(target: sqlite3.Connection) -> None:
    """Make the tables that only a union's projections have, empty."""
    for table in DERIVED:
        target.execute(UNION[f"drop_{table}"])
        target.execute(UNION[f"create_{table}"])
    target.execute(UNION["create_claim_sent"])


def parts_by_epoch(facts: sqlite3.Connection) -> dict[int, int]:
    """By the epochs of events, which log's they are; those of none are the union's."""
    return dict(facts.execute(UNION["openings"]).fetchall())


def fold_part(
    facts: sqlite3.Connection,
    target: sqlite3.Connection,
    part: int,
    items: Sequence[FoldItem],
    applied_seq: int,
) -> None:
    """Fold consecutive events of one log, the last of which is *applied_seq*.

    Args:
        facts: the union, which already holds the events.
        target: holds the projections, in an open transaction.
        part: the log of the events; 0: the union's own.
        items: the events that this siftlog understands.
        applied_seq: the last event of the projections afterwards.
    """
    events = [item.event for item in items]
    loaded = tables.load_fold(target, events)
    if part == 0:
        for item in items:
            loaded.apply(*item)
        tables.write_fold(target, loaded, applied_seq)
        return
    _Batch(facts, target, part, loaded).take_in(items, applied_seq)


class _CountKey(NamedTuple):
    """Fields by which tasks are counted."""

    stage: str
    model: str
    state: TaskState
    reason: str | None


def _count_key(row: TaskDraft) -> _CountKey:
    return _CountKey(row.stage, row.model, row.state, row.reason)


class _Batch:
    """The tasks that some events of one log touch, before and after them."""

    def __init__(
        self,
        facts: sqlite3.Connection,
        target: sqlite3.Connection,
        part: int,
        loaded: Fold,
    ) -> None:
        self._facts = facts
        self._target = target
        self._part = part
        #: as in the union; the drafts of this log are separate
        self._rows = loaded.tasks
        self._stood = {task: _count_key(row) for task, row in loaded.tasks.items()}
        self._total = loaded.run
        self._claims = self._stored_claims()
        self._parts = parts.stored_parts(facts, target)
        stored_part = self._parts.get(part)
        state = RunState() if stored_part is None else stored_part.state
        state.tasks = self._total.tasks
        self._fold = Fold(run=state, tasks=self._part_drafts())
        # an adopted answer was counted where it was answered
        self._uncounted = Fold(
            run=state,
            tasks=self._fold.tasks,
            blocks=self._fold.blocks,
            moved=self._fold.moved,
        )
        self._slices = ALL if stored_part is None else stored_part.slices
        self._contested: list[int] = []  #: tasks of several logs that this one moved

    # -- before --------------------------------------------------------------------

    def _stored_claims(self) -> dict[int, dict[int, TaskDraft]]:
        claims: dict[int, dict[int, TaskDraft]] = {}
        numbers = json.dumps(sorted(self._rows))
        for task, part, draft in self._target.execute(UNION["claims"], (numbers,)):
            claims.setdefault(task, {})[part] = _DRAFT.decode(draft)
        return claims

    def _part_drafts(self) -> dict[int, TaskDraft]:
        """This log's drafts of the tasks; a task of two logs gets claims."""
        drafts: dict[int, TaskDraft] = {}
        alone = [row for row in self._rows.values() if row.task not in self._claims]
        reopened = self._reopened([row.task for row in alone])
        movers = dict(
            self._facts.execute(
                UNION["movers"], (json.dumps([row.updated_seq for row in alone]),)
            ).fetchall()
        )
        untouched: set[int] = set()
        for row in alone:
            mover = movers.get(row.updated_seq)
            if row.event_seq is None and row.task not in reopened:
                untouched.add(row.task)  # unchanged since it was planned
            elif mover == self._part:
                drafts[row.task] = row
            else:
                self._claims[row.task] = {mover or 0: row}
        for task, claims in self._claims.items():
            if self._part in claims:
                drafts[task] = replace(claims[self._part])
        missing = sorted(self._rows.keys() - drafts.keys())
        skips = dict(
            self._facts.execute(
                UNION["skips"], (self._part, json.dumps(missing))
            ).fetchall()
        )
        for task in missing:
            row, skip = self._rows[task], skips.get(task)
            is_planned = task in untouched and row.reason == skip
            drafts[task] = row if is_planned else _as_planned(row, skip)
        return drafts

    # -- the events ------------------------------------------------------------------

    def take_in(self, items: Sequence[FoldItem], applied_seq: int) -> None:
        """Fold *items* and write what changed."""
        for item in items:
            counted = self._uncounted if _is_adopted(item.event) else self._fold
            counted.apply(*item)
            if isinstance(item.event, _PART_EVENTS):
                slices = parts.record_part_event(self._target, self._part, item.event)
                self._slices = slices or self._slices
        self._fold.marks += self._uncounted.marks
        self._join()
        self._write(applied_seq)

    # -- after -----------------------------------------------------------------------

    def _join(self) -> None:
        """Set rows to the best claims, and count tasks by state."""
        fold = self._fold
        planned = {
            number: plan
            for block in fold.blocks
            for number, plan in enumerate(block.tasks, block.first)
        }
        fold.counts.clear()
        fold.counters.pop("tasks_unparsed", None)
        for key in [key for key in fold.reasons if key[0] in {"skip", "parse"}]:
            del fold.reasons[key]
        for plan, n in Counter(
            (plan.stage, plan.model, plan.skip) for plan in planned.values()
        ).items():
            stage, model, skip = plan
            fold.counts[stage, model, planned_state(skip)] += n
            if skip is not None:
                fold.reasons["skip", skip] += n
        contested = self._contested = [
            task for task in fold.moved if task in self._claims
        ]
        replies = self._precedence(contested)
        reopened = self._reopened(contested)
        logs = parts.part_logs(self._facts) if contested else {}
        for task in contested:
            claims = self._claims[task]
            repeats_before = _repeats(claims.values(), replies)
            claims[self._part] = fold.moved[task]
            repeats = _repeats(claims.values(), replies)
            fold.counters["answers_repeated"] += repeats - repeats_before
        for task, draft in fold.moved.items():
            row = (
                best_claim(self._claims[task], replies, reopened.get(task, {}), logs)
                if task in self._claims
                else draft
            )
            before = self._stood.get(task)
            if before is None:
                before = _count_key(TaskDraft.planned(task, planned[task], 0))
            after = _count_key(row)
            if after != before:
                self._count(before, -1)
                self._count(after, +1)
            fold.moved[task] = row

    def _precedence(self, contested: Iterable[int]) -> dict[int, Precedence]:
        seqs = sorted(
            draft.reply_seq
            for task in contested
            for draft in (*self._claims[task].values(), self._fold.moved[task])
            if draft.reply_seq is not None
        )
        return {
            seq: Precedence(
                is_adopted=bool(is_adopted),
                attempt=attempt,
                writer=writer,
                log_seq=log_seq,
            )
            for seq, attempt, writer, log_seq, is_adopted in self._facts.execute(
                UNION["precedence"], (json.dumps(seqs),)
            ).fetchall()
        }

    def _reopened(self, tasks: Sequence[int]) -> dict[int, dict[int, int]]:
        """By task and part, how often it was put back in the queue."""
        counts: dict[int, dict[int, int]] = {}
        for task, part, n in self._target.execute(
            UNION["reopenings"], (json.dumps(tasks),)
        ).fetchall():
            counts.setdefault(task, {})[part] = n
        return counts

    def _count(self, key: _CountKey, n: int) -> None:
        """Add a task to the counts by state, or remove it."""
        fold = self._fold
        fold.counts[key.stage, key.model, key.state] += n
        if key.reason is None:
            return
        if key.state is TaskState.SKIPPED:
            fold.reasons["skip", key.reason] += n
        elif key.state is TaskState.COMPLETED:
            fold.reasons["parse", key.reason] += n
            fold.counters["tasks_unparsed"] += n

    def _write(self, seq: int) -> None:
        fold, part = self._fold, self._part
        previous = self._parts.get(part)
        self._target.executemany(
            UNION["set_claim"],
            [
                (task, number, _text(draft), draft.started_seq if draft.sent else None)
                for task in self._contested
                for number, draft in self._claims[task].items()
            ],
        )
        self._parts[part] = PartState(
            log=parts.part_logs(self._facts)[part],
            slices=self._slices,
            state=fold.run,
            limits={**(previous.limits if previous else {}), **fold.limiters},
        )
        parts.write_parts(self._target, self._parts, part, fold, seq)


def _text(draft: TaskDraft) -> str:
    return _ENCODER.encode(draft).decode()


def _repeats(claims: Iterable[TaskDraft], replies: Mapping[int, Precedence]) -> int:
    """Return how many paid answers a task has beyond the one that counts."""
    paid = sum(
        draft.state is TaskState.COMPLETED
        and draft.reply_seq is not None
        and not replies[draft.reply_seq].is_adopted
        for draft in claims
    )
    return max(0, paid - 1)


def _is_adopted(event: Event) -> bool:
    match event:
        case AttemptStarted(adopted=adopted) | TaskCompleted(adopted=adopted):
            return adopted
        case AttemptAnswered(adopted=origin):
            return origin is not None
        case _:
            return False


def _as_planned(row: TaskDraft, skip: str | None) -> TaskDraft:
    """Return the planned task, for a log that has not changed it yet.

    Once another log has retried it, the row does not show whether the plan skipped it.
    """
    plan = PlannedTask(
        stage=row.stage,
        key=row.key,
        model=row.model,
        replicate=row.replicate,
        root=row.root,
        skip=skip,
        context=row.context,
        group=row.group,
    )
    return TaskDraft.planned(row.task, plan, row.updated_seq)
