"""Repeats a recorded run event by event: its plan, its requests, its parses.

Nothing is sent. At each event stands what the run's process had decided by then: tasks,
a request's hash, why a reply could not be read. Today's code decides the same again
from the recorded settings, data and replies.

First-stage tasks are compared in their order. Where the order differs, and for
follow-ups, tasks are paired by their identity, so a task more or less counts once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from runner.added_stages import extended
from runner.clients.wire import decode_reply
from runner.clients.wire_shared import skeleton
from runner.engine.attempt_events import failure_in, reask_messages
from runner.errors import DatasetError, RunnerError
from runner.job import JOB_FILE, Answer, Dataset, Stage, Task, TaskSpec
from runner.job_faults import calling, fault_of, read_reply
from runner.messages import AnyReply, ChatRequest, Message, ParseFailure, Reply
from runner.model_terms import USUAL, ModelTerms
from runner.options import RunOptions
from runner.plan import (
    Roles,
    first_stage,
    follow_ups,
    identity,
    parsed_answer,
    task_of,
)
from runner.regress.added_tasks import AddedTasks, up_to_stages
from runner.regress.plan_pairs import TaskPairs
from runner.regress.report import CheckedStep, Codes, Tallies
from runner.roles import recorded_options, terms
from runner.score.repeat import Rescorer, ScoringBasis
from runner.shards.parts import takes_spec
from runner.workload import Workload
from store.database import SQL, has_plan_positions
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Event,
    Input,
    RunFinished,
    RunResumed,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
    TasksReopened,
    UnknownEvent,
)
from store.lineage import StageAdded
from store.outcomes import Outcome, outcomes_numbered, stored_bodies
from store.tables import (
    events_of_kinds,
    group_is_open,
    payload,
    recorded,
    reply,
    task_rows,
    tasks_numbered,
    visible_seq,
)
from store.task import PlannedTask, TaskRow, planned_tasks
from store.time_travel import open_to_end

PAGE: Final = 1_000
"""Events read at a time."""

REPLIES: Final = 256
"""Replies held at a time."""

_KINDS: Final = (
    *("run_resumed", "run_finished", "stage_added"),
    *("tasks_planned", "tasks_reopened"),
    *("attempt_started", "attempt_answered"),
    *("task_completed", "task_failed", "task_skipped"),
)

_ABOUT_TASKS: Final = (AttemptStarted, AttemptAnswered, TaskCompleted)

_GroupKey: TypeAlias = tuple[str, str, int, str]


class NotChecked(Exception):
    """What a check needs is missing; the message is a sentence."""


@contextmanager
def whole_log(run: Rescorer) -> Iterator[sqlite3.Connection]:
    """Yield a reader of a run's last state, of a running one as far as it shows it."""
    if run.folder.is_alive():
        yield run.reader
        return
    with open_to_end(run.folder.log) as reader:
        yield reader


def basis_at(
    run: Rescorer, settings: str, inputs: Iterable[Input], seq: int
) -> ScoringBasis:
    """Return what was in force at an event; inputs that the log has count as kept."""
    stored = {
        (known.setting, known.sha256): known
        for scoring in run.scorings()
        for known in scoring.inputs
        if known.kept
    }
    return ScoringBasis(
        settings=json.loads(settings),
        inputs=tuple(
            stored.get((known.setting, known.sha256), known)
            for known in inputs
            if known.setting != JOB_FILE
        ),
        seq=seq,
    )


@dataclass(slots=True)
class _Period:
    """Settings and data that were in force from some event on."""

    dataset: Dataset
    terms: dict[str, ModelTerms]
    follows: dict[str, bool]  #: by stage: whether single answers have follow-ups


class LogWalk:
    """One pass over a log.

    Args:
        run: the open run.
        reader: of its last state.
        tallies: what differs is added to them.
    """

    def __init__(
        self,
        run: Rescorer,
        reader: sqlite3.Connection,
        tallies: Tallies,
    ) -> None:
        self._run, self._reader, self._tallies = run, reader, tallies
        self._job = run.job
        self._stages = {stage.name: stage for stage in run.job.stages}
        started = run.started
        self._roles = Roles(
            models={role: tuple(names) for role, names in started.models.items()},
            replicates=started.replicates,
        )
        self._settings = started.settings
        self._inputs = list(started.inputs)
        #: the code that wrote the events, by the seq of the first
        self.writers = {1: Codes(started.code, started.code_sha256)}
        self._pairs = TaskPairs(tallies[CheckedStep.PLAN])
        self._misplaced: tuple[int, str] | None = None
        self._groups: dict[_GroupKey, None] = {}
        self._unread: dict[int, tuple[str, bytes]] = {}  # replies that are not parsed
        self._extra: dict[int, tuple[Message, ...]] = {}  # dialogues of re-asks
        self._reopened: set[int] = set()
        self._is_exhausted = self._is_finished = False
        self._rows: dict[int, Outcome] = {}
        self._planned_tasks = 0  # highest number so far
        self._plan: Iterator[tuple[PlannedTask, int | None]] = iter(())
        self._has_plan = self._may_plan()

    def _may_plan(self) -> bool:
        if self._run.started.imported:
            self._tallies[
                CheckedStep.PLAN
            ].unchecked = "an imported run has the plan of its files"
            return False
        if has_plan_positions(self._reader):
            self._tallies[
                CheckedStep.PLAN
            ].unchecked = "a merged log has another order; its shards are elsewhere"
            return False
        return True

    def all(self) -> None:
        """Compare everything up to the last visible event.

        Raises:
            NotChecked: data or options are missing.
        """
        try:
            self._added = AddedTasks(self._reader)
        except RunnerError as error:
            raise self._refused(1, "an added stage", error) from error
        self._period = self._begin(1)
        if self._has_plan:
            self._plan = self._planned(frozenset())
        after, last = 0, visible_seq(self._reader)
        while page := events_of_kinds(self._reader, after, PAGE, _KINDS):
            after = page[-1][0]
            events = [pair for pair in page if pair[0] <= last]
            for part in up_to_stages(events):
                self._read_tasks(part)
                for start in range(0, len(part), REPLIES):
                    self._compare(part[start : start + REPLIES])
            if len(events) < len(page):
                break
        self._compare_groups()
        self._compare_pairs()

    # -- data ------------------------------------------------------------------

    def _begin(self, seq: int) -> _Period:
        """Load the data in force; a failure of today's code is a difference.

        Raises:
            NotChecked: the data are missing, or today's code cannot load them.
        """
        basis = basis_at(self._run, self._settings, self._inputs, seq)
        job = self._job
        try:
            settings = self._run.placed(basis)
        except DatasetError as error:
            raise NotChecked(f"input missing: {error}") from error
        except RunnerError as error:
            raise self._refused(seq, "settings", error) from error
        try:
            with calling(job, "load"):
                dataset = self._run.load(settings)
            work = Workload(
                job=job, settings=settings, dataset=dataset, inputs=[], code_sha256=""
            )
            has_terms = self._has_plan or bool(self._added.stages)
            model_terms = terms(work, self._options()) if has_terms else {}
        except RunnerError as error:
            raise self._refused(seq, "data", error) from error
        follows = dict.fromkeys(self._stages, False)
        for stage in self._run.job.stages:  # `_expect` has what follows in added ones
            follows[stage.name] = (
                self._has_plan
                and not self._run.started.imported
                and not stage.gathers
                and self._run.job.follows(dataset, stage)
            )
        return _Period(dataset=dataset, terms=model_terms, follows=follows)

    def _refused(self, seq: int, where: str, error: RunnerError) -> NotChecked:
        self._tallies[CheckedStep.PLAN].add(seq, where, "accepted", str(error))
        return NotChecked(str(error))

    def _options(self) -> RunOptions:
        """Return the options that the run was started with."""
        folder, started = self._run.folder, self._run.started
        if not folder.config.exists():
            raise NotChecked(f"{folder.config.name} is missing")
        return recorded_options(folder.config, started)

    def _planned(
        self, present: frozenset[tuple[str, str, str, int]]
    ) -> Iterator[tuple[PlannedTask, int | None]]:
        """Yield the first stage without *present* tasks, each with its position."""
        started, dataset = self._run.started, self._period.dataset
        takes = None
        if started.shard is not None:
            takes = takes_spec(started.shard, self._job, dataset)
        blocks = first_stage(
            self._job,
            dataset,
            self._roles,
            consumed=0,
            is_shuffled=started.stopping is not None,
            takes=takes,
        )
        while True:
            try:
                with calling(self._job, "plan"):
                    block = next(blocks, None)
            except RunnerError as error:
                self._tallies[CheckedStep.PLAN].add(1, "plan", "a plan", str(error))
                self._has_plan = False
                return
            if block is None:
                return
            positions = block.positions or (None,) * len(block.tasks)
            for task, position in zip(block.tasks, positions, strict=True):
                if identity(task) not in present:
                    yield task, position

    def _read_tasks(self, events: Sequence[tuple[int, Event | UnknownEvent]]) -> None:
        """Read the tasks of a page of events, and the roots of followed ones."""
        numbers = {event.task for _, event in events if isinstance(event, _ABOUT_TASKS)}
        self._rows = self._numbered(numbers)
        roots = {
            row.root for row in self._rows.values() if self._period.follows[row.stage]
        }
        self._rows |= self._numbered(roots - self._rows.keys())

    def _numbered(self, tasks: AbstractSet[int]) -> dict[int, Outcome]:
        rows = outcomes_numbered(self._reader, sorted(tasks)) if tasks else ()
        return {row.task: row for row in rows}

    # -- events ----------------------------------------------------------------

    def _compare(self, events: Sequence[tuple[int, Event | UnknownEvent]]) -> None:
        answered = [seq for seq, event in events if isinstance(event, AttemptAnswered)]
        bodies = stored_bodies(self._reader, answered) if answered else {}
        for seq, event in events:
            if isinstance(event, AttemptStarted):
                self._compare_request(seq, event)
            elif isinstance(event, TaskCompleted):
                self._compare_parse(seq, event)
            elif not isinstance(event, AttemptAnswered):
                self._apply(seq, event)
            elif event.reask is None:
                self._unread[event.task] = bodies[seq]
            else:
                self._compare_refusal(seq, event, *bodies[seq])

    def _apply(self, seq: int, event: Event | UnknownEvent) -> None:
        """Compare a plan, or take in what an event means for later ones."""
        match event:
            case TaskFailed(task=task) | TaskSkipped(task=task):
                self._unread.pop(task, None)
                self._extra.pop(task, None)
                self._added.drop(task)
            case TasksPlanned():
                self._compare_plan(seq, event)
            case TasksReopened(tasks=tasks):
                self._reopened.update(tasks)
            case RunResumed():
                self._resume(seq, event)
            case StageAdded():
                self._add_stage(seq, event)
            case RunFinished():
                self._is_finished = True
            case _:
                pass

    def _resume(self, seq: int, event: RunResumed) -> None:
        self.writers[seq] = Codes(event.code, event.code_sha256)
        self._is_finished = False
        if event.settings == self._settings and not event.changed:
            return
        by_path = {known.path: known for known in (*self._inputs, *event.changed)}
        self._settings, self._inputs = event.settings, list(by_path.values())
        self._period = self._begin(seq)
        if self._has_plan:
            self._plan = self._planned(self._present(seq))

    def _add_stage(self, seq: int, event: StageAdded) -> None:
        """Go on with a stage more; derive its tasks from the answers so far."""
        added = self._added.stages[event.stage]
        is_imported = self._run.started.imported
        self._job = extended(self._job, added, is_imported=is_imported)
        self._stages[event.stage] = added.stage
        of_stages = (*self._roles.of_stages, event.model)
        self._roles = replace(self._roles, of_stages=of_stages)
        # from here on, the job of an imported run plans its added stages alone
        self._has_plan |= is_imported and not has_plan_positions(self._reader)
        self._period = self._begin(seq)
        if not self._has_plan:
            return
        self._plan = self._planned(self._present(seq))
        for spec, row in self._added.take(event.stage):
            self._expect(seq, row, spec)

    def _expect(self, seq: int, row: Outcome, spec: TaskSpec) -> None:
        """Pair what follows from an answer in an added stage."""
        root = row.root
        if self._stages[row.stage].gathers:
            (answered,) = tasks_numbered(self._reader, [row.task])
            if answered.group is not None:
                # of its group: the plan has the root of the first answer
                key = (row.stage, row.model, row.replicate, answered.group)
                root = task_rows(self._reader, SQL["group"], key)[0].root
        family = task_rows(self._reader, SQL["family"], (root,))
        rows = [known for known in family if known.task <= self._planned_tasks]
        group = (Answer(task=task_of(row)),)
        for task in follow_ups(
            self._job, [spec], group, self._roles, root=root, existing=rows
        ):
            self._pairs.expect(task, seq)

    def _present(self, seq: int) -> frozenset[tuple[str, str, str, int]]:
        """Return the identities of all tasks that were planned before an event."""
        return frozenset(
            identity(task)
            for planned in recorded(self._reader, 0, seq, ["tasks_planned"])
            if planned.seq < seq
            for task in planned_tasks(payload(self._reader, planned.seq) or b"[]")
        )

    def _compare_plan(self, seq: int, event: TasksPlanned) -> None:
        self._planned_tasks = event.first + event.count - 1
        self._is_exhausted |= event.exhausted
        if not self._has_plan:
            return
        tally = self._tallies[CheckedStep.PLAN]
        tasks = planned_tasks(payload(self._reader, seq) or b"[]")
        places = event.places or (None,) * len(tasks)
        for number, task in enumerate(tasks, event.first):
            tally.compared += 1
            if task.group is not None and self._stages[task.stage].gathers:
                self._groups[task.stage, task.model, task.replicate, task.group] = None
            if task.root != number:
                self._pairs.record(task, seq)
                continue
            expected, position = next(self._plan, (None, None))
            is_same = expected is not None and task.is_like(expected)
            if is_same and position == places[number - event.first]:
                continue
            if self._misplaced is None:
                self._misplaced = (seq, task.key)
            self._pairs.record(task.under(0), seq)
            if expected is not None:
                self._pairs.expect(expected, seq)
        if event.exhausted:
            for expected, _ in self._plan:
                self._pairs.expect(expected, seq)

    def _compare_pairs(self) -> None:
        """Count the tasks that only one side has."""
        if not self._has_plan:
            return
        tally = self._tallies[CheckedStep.PLAN]
        before = tally.differs
        if not self._is_exhausted and self._pairs.has_first_stage:
            # one task more shifts the others behind the last that was recorded
            self._pairs.forgive(task for task, _ in self._plan)
        self._pairs.count_rest()
        if self._misplaced is not None and tally.differs == before == 0:
            seq, key = self._misplaced
            tally.add(seq, key, "this order", "another order")

    def _compare_request(self, seq: int, event: AttemptStarted) -> None:
        tally = self._tallies[CheckedStep.REQUESTS]
        tally.compared += 1
        row = self._rows[event.task]
        model_terms = self._period.terms.get(row.model, USUAL)
        try:
            request = model_terms.request(self._job, self._period.dataset, task_of(row))
        except Exception as error:  # noqa: BLE001 - the job's code may raise anything
            fault = fault_of(error, type(self._job).__module__)
            tally.add(seq, row.key, "a request", fault)
            return
        if (extra := self._extra.get(event.task)) and isinstance(request, ChatRequest):
            request = replace(request, messages=request.messages + extra)
        now = skeleton(request, row.model)
        if now.sha256 == event.request_sha256:
            return
        old = json.loads(payload(self._reader, seq) or b"{}")
        new = json.loads(now.body)
        names = [n for n in {**old, **new} if old.get(n) != new.get(n)]
        what = f" ({', '.join(names)})" if names else ""
        tally.add(seq, row.key, event.request_sha256[:12], now.sha256[:12] + what)

    def _parsed(
        self, row: Outcome, form: str, body: bytes
    ) -> tuple[AnyReply | None, object]:
        """Return a reply and what its stage's parser reads; no reply: undecodable."""
        try:
            decoded = decode_reply(form, body)
        except Exception as error:  # noqa: BLE001 - it was decoded when it was stored
            return None, ParseFailure(reason=fault_of(error))
        stage: Stage = self._stages[row.stage]
        task: Task = task_of(row)
        return decoded, read_reply(stage, self._period.dataset, task, decoded)

    def _compare_refusal(
        self, seq: int, event: AttemptAnswered, form: str, body: bytes
    ) -> None:
        """Compare why a reply was refused, and continue its dialogue."""
        row = self._rows[event.task]
        answer, parsed = self._parsed(row, form, body)
        self._note_parse(seq, row, (event.reask, event.fault), parsed)
        if isinstance(answer, Reply) and isinstance(parsed, ParseFailure):
            self._extra[event.task] = self._extra.get(event.task, ()) + reask_messages(
                answer, parsed, self._period.dataset
            )

    def _compare_parse(self, seq: int, event: TaskCompleted) -> None:
        self._extra.pop(event.task, None)
        stored = self._unread.pop(event.task, None)
        if stored is None:
            return
        row = self._rows[event.task]
        answer, parsed = self._parsed(row, *stored)
        self._note_parse(seq, row, (event.unparsed, event.fault), parsed)
        is_followed = self._added.stages or self._period.follows[row.stage]
        if answer is None or not is_followed:
            return
        whole = Answer(task=task_of(row), reply=answer, parsed=parsed)
        for spec in self._added.collect(row, whole):
            self._expect(seq, row, spec)
        if self._period.follows[row.stage]:
            self._follow(seq, row.root, (whole,))

    def _note_parse(
        self, seq: int, row: Outcome, old: tuple[str | None, str | None], parsed: object
    ) -> None:
        tally = self._tallies[CheckedStep.PARSE]
        tally.compared += 1
        new = failure_in(parsed)
        if old[0] != new[0] or (old[1] != new[1] and not _is_line(new[0])):
            tally.add(seq, row.key, _outcome(*old), _outcome(*new))

    # -- follow-ups ------------------------------------------------------------

    def _follow(self, seq: int, root: int, group: tuple[Answer, ...]) -> None:
        """Derive the follow-ups of a group, and pair them with the recorded ones."""
        try:
            specs = list(self._run.job.follow_up(self._period.dataset, group))
        except Exception as error:  # noqa: BLE001 - the job's code may raise anything
            fault = fault_of(error, type(self._job).__module__)
            where = group[0].task.key
            self._tallies[CheckedStep.PLAN].add(seq, where, "follow-ups", fault)
            return
        if not specs:
            return
        # a group is followed once, after the last event
        leader = group[0].task
        is_single = not self._stages[leader.stage].gathers
        is_again = is_single and leader.number in self._reopened
        family = task_rows(self._reader, SQL["family"], (root,)) if is_again else ()
        # a follow-up of an earlier reply was there, one of this reply comes later
        known = [row for row in family if row.task <= self._planned_tasks]
        existing: Sequence[TaskRow | Outcome] = known or [self._rows[root]]
        for task in follow_ups(
            self._job, specs, group, self._roles, root=root, existing=existing
        ):
            self._pairs.expect(task, seq)

    def _compare_groups(self) -> None:
        """Derive the follow-ups of complete groups.

        They are recorded after the last answer of a group, which the process of an
        unfinished run may not have reached.
        """
        if not (self._has_plan and self._is_exhausted):
            return
        names = [stage.name for stage in self._job.stages]
        for stage, model, replicate, group in self._groups:
            if not self._job.follows(self._period.dataset, self._stages[stage]):
                continue
            related = [
                (name, related_model)
                for name in names[: names.index(stage) + 1]
                for related_model in self._related(name, stage, model)
            ]
            if any(
                group_is_open(self._reader, name, related_model, replicate, group)
                for name, related_model in related
            ):
                continue
            key = (stage, model, replicate, group)
            rows = task_rows(self._reader, SQL["group"], key)
            answers = tuple(
                parsed_answer(
                    self._stages,
                    self._period.dataset,
                    row,
                    reply(self._reader, row.task),
                )
                for row in rows
            )
            root = rows[0].root
            self._rows |= self._numbered({root})
            self._follow(max(row.updated_seq for row in rows), root, answers)
        if not self._is_finished:
            self._pairs.drop_expected()

    def _related(self, stage: str, other: str, model: str) -> tuple[str, ...]:
        """Return the models whose tasks of *stage* a group of *other* waits for."""
        this_stage = self._stages[stage]
        if this_stage.role == self._stages[other].role:
            return (model,)
        return self._roles.of(this_stage)


def _is_line(reason: str | None) -> bool:
    """Return whether a failure's details name a line of code, which moves."""
    return reason == "parser_error"


def _outcome(unparsed: str | None, fault: str | None) -> str:
    if unparsed is None:
        return "parsed"
    return unparsed if fault is None else f"{unparsed} ({fault})"
