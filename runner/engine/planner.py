"""Grows the plan of a run: first stage, follow-ups of answers, follow-ups of groups.

Each growth is durable together with the event that caused it, so a crash can neither
lose nor repeat it. If the parsers or settings changed since the answers were parsed,
`_catch_up` derives the follow-ups again and adds exactly those that are missing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

from runner.engine.attempt_events import completed_event
from runner.errors import JobFault
from runner.job import Answer, Dataset, Job, TaskSpec
from runner.job_faults import JobFaults, calling, job_fault
from runner.plan import (
    BLOCK,
    Identity,
    Roles,
    TaskBlock,
    first_stage,
    follow_ups,
    identity,
    numbered,
    parsed_answer,
)
from store.events import Entry, Event, TaskCompleted, TaskFailed, TasksPlanned
from store.log.interface import Log, Planning
from store.task import PlannedTask, TaskRow, manifest_bytes

PAGE = 500

GroupKey = tuple[str, str, int, str]  # stage, model, replicate, group


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStart:
    """State from which a process continues the plan."""

    planning: Planning
    must_catch_up: bool  #: parsers or settings are not those that read the answers
    is_shuffled: bool = False  #: the plan is in random order
    takes: Callable[[TaskSpec], bool] | None = None
    """Whether a first-stage spec is in this run's shard; None: not split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpResult:
    """Follow-ups of ended tasks."""

    pairs: list[tuple[str, str]]  #: each (stage, model) that got tasks
    failed: frozenset[int] = frozenset()  #: tasks whose `follow_up` raised


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnd:
    """A task that has ended or is processed again."""

    row: TaskRow
    answer: Answer
    entries: Sequence[Entry | Event]  #: events still to be recorded


class Planner:
    """The plan of one run, growing in its log."""

    def __init__(
        self,
        *,
        job: Job,
        dataset: Dataset,
        log: Log,
        roles: Roles,
        start: PlanStart,
        faults: JobFaults | None = None,
    ) -> None:
        self._job = job
        self.faults = faults  #: receives exceptions of the job's code, if given
        self._stuck: dict[str, None] = {}
        self._dataset = dataset
        self._log = log
        self._roles = roles
        self._stages = {stage.name: stage for stage in job.stages}
        self._follows = {
            stage.name: job.follows_alone(dataset, stage)
            if stage.gathers
            else job.follows(dataset, stage)
            for stage in job.stages
        }
        self._consumed = start.planning.consumed
        self._exhausted = start.planning.exhausted
        self._must_catch_up = start.must_catch_up
        self._is_shuffled = start.is_shuffled
        self._takes = start.takes
        self._next = start.planning.tasks + 1
        self._skipped = 0
        #: groups that became final before the plan was exhausted
        self._pending: dict[GroupKey, None] = {}
        #: groups that changed since they were last examined
        self._due: set[GroupKey] = set()
        self._growing = asyncio.Lock()

    @property
    def planned(self) -> int:
        """Number of tasks planned so far."""
        return self._next - 1

    @property
    def stuck(self) -> str | None:
        """Describe what a finished part of the plan lacks; the start of a sentence.

        A group's follow-ups belong to no single task that could fail for them. They
        are derived again by every later process, from the stored answers.
        """
        if not self._stuck:
            return None
        first, others = next(iter(self._stuck)), len(self._stuck) - 1
        more = f" (and {others:,} more such)" if others else ""
        return f"Follow-ups are missing: {first}{more}"

    @property
    def skipped(self) -> int:
        """Tasks planned by this process that are never sent."""
        return self._skipped

    async def grow(self) -> AsyncIterator[tuple[str, str]]:
        """Plan everything not planned yet; yield each (stage, model) with new tasks."""
        async for pair in self.finish_reading():
            yield pair
        async for pair in self._grow_first_stage():
            yield pair
        self._exhausted = True
        async for pair in self._catch_up():
            yield pair
        for key in list(self._pending):
            for pair in await self._gather(key):
                yield pair

    async def finish(
        self, row: TaskRow, answer: Answer, entries: Sequence[Entry | Event]
    ) -> FollowUpResult:
        """Record a task's end and its follow-ups."""
        return await self.finish_all([TaskEnd(row=row, answer=answer, entries=entries)])

    async def finish_all(self, ended: Sequence[TaskEnd]) -> FollowUpResult:
        """Record the ends of several tasks, and their follow-ups, as one unit."""
        grown = await self._follow_and_append(ended)
        pairs = grown.pairs
        keys = [
            key
            for end in ended
            if end.row.group is not None
            for key in self._group_keys(end.row, end.row.group)
        ]
        for key in dict.fromkeys(keys):
            pairs += await self._gather(key)
        return FollowUpResult(pairs=pairs, failed=grown.failed)

    # -- first stage -----------------------------------------------------------

    async def _grow_first_stage(self) -> AsyncIterator[tuple[str, str]]:
        """Plan the specs that are not planned yet.

        Normally those are the ones after the last that was taken. Under other settings
        or code the plan may differ anywhere, so it is compared from the start.
        """
        if self._exhausted and not self._must_catch_up:
            return
        existing = await (
            self._identities() if self._must_catch_up else self._last_spec()
        )
        consumed = 0 if self._must_catch_up else self._consumed
        blocks = first_stage(
            self._job,
            self._dataset,
            self._roles,
            consumed=consumed,
            is_shuffled=self._is_shuffled,
            takes=self._takes,
        )
        for block in self._planned_blocks(blocks):
            missing = block.without(existing)
            if missing.tasks or not self._exhausted:
                for pair in await self._plan_block(missing):
                    yield pair

    def _planned_blocks(self, blocks: Iterator[TaskBlock]) -> Iterator[TaskBlock]:
        """Yield the blocks; raise `RunnerError` if the job's `plan` raises."""
        while True:
            with calling(self._job, "plan"):
                block = next(blocks, None)
            if block is None:
                return
            yield block

    async def _identities(self) -> frozenset[Identity]:
        """Return the identity of each planned task; read only after a change."""
        identities: set[Identity] = set()
        for start in range(1, self._next, PAGE):
            page = range(start, min(start + PAGE, self._next))
            identities.update(identity(row) for row in await self._log.tasks(page))
        return frozenset(identities)

    async def _last_spec(self) -> frozenset[Identity]:
        """Return the tasks of the first-stage spec that was planned last.

        An earlier process may have died between two blocks of it.
        """
        identities: set[Identity] = set()
        last: tuple[str, str] | None = None
        for end in range(self._next, 1, -PAGE):
            page = range(max(1, end - PAGE), end)
            for row in reversed(await self._log.tasks(page)):
                if row.root != row.task:
                    continue
                if last not in {None, (row.stage, row.key)}:
                    return frozenset(identities)
                last = row.stage, row.key
                identities.add(identity(row))
        return frozenset(identities)

    async def _plan_block(self, block: TaskBlock) -> list[tuple[str, str]]:
        tasks = numbered(block.tasks, self._next)
        self._skipped += sum(task.skip is not None for task in tasks)
        event = TasksPlanned(
            first=self._take(len(tasks)),
            count=len(tasks),
            consumed=block.consumed,
            exhausted=block.exhausted,
            places=None if block.positions is None else list(block.positions),
        )
        await self._log.append(Entry(event=event, payload=manifest_bytes(tasks)))
        return _pairs(tasks)

    def _take(self, count: int) -> int:
        """Reserve *count* task numbers; return the first."""
        first = self._next
        self._next += count
        return first

    # -- follow-ups ------------------------------------------------------------

    async def _follow_and_append(self, ended: Sequence[TaskEnd]) -> FollowUpResult:
        """Append the ends of tasks together with their follow-up tasks.

        Only replies have their own follow-ups; a failure is appended without an await
        before, because its slot is already free.
        """
        entries: list[Entry | Event] = []
        following: list[tuple[TaskEnd, list[TaskSpec]]] = []
        failed: set[int] = set()
        for end in ended:
            try:
                specs = self._specs(end)
            except JobFault as fault:
                specs = []
                if end.entries:
                    failed.add(end.row.task)
                    entries += _failed_entries(end, str(fault))
                else:  # it was completed by an earlier process, with other code
                    self._stuck[f"follow_up of {end.row.key} raised {fault}"] = None
            else:
                entries += end.entries
            if specs:
                following.append((end, specs))
        if not following:
            if entries:
                await self._log.append(*entries)
            return FollowUpResult(pairs=[], failed=frozenset(failed))
        # a reader of the plan must extend it before another one reads it
        async with self._growing:
            planned: defaultdict[int, list[PlannedTask]] = defaultdict(list)
            for end, specs in following:
                root = end.row.root
                planned[root] += await self._missing(
                    specs, (end.answer,), root, planned[root]
                )
            tasks = [task for family in planned.values() for task in family]
            await self._append_bounded(tasks, entries)
        return FollowUpResult(pairs=_pairs(tasks), failed=frozenset(failed))

    def _follow_up(self, answers: tuple[Answer, ...]) -> list[TaskSpec]:
        """Return the follow-ups of answers; raise `JobFault` if the job raises."""
        try:
            return list(self._job.follow_up(self._dataset, answers))
        except Exception as error:
            raise job_fault(error, self._job, "follow_up", self.faults) from error

    async def _append_bounded(
        self, tasks: list[PlannedTask], entries: Sequence[Entry | Event] = ()
    ) -> None:
        """Record *tasks*, at most `BLOCK` in a transaction, the last with *entries*.

        Other appends can run between two transactions, so calls never wait for a large
        plan. After a crash between them the cause is not recorded as done, and the next
        process adds the tasks that are missing.
        """
        whole = (len(tasks) - 1) // BLOCK * BLOCK  # index of the last block
        for first in range(0, whole, BLOCK):
            await self._log.append(self._entry(tasks[first : first + BLOCK]))
        together = [*entries]
        if tasks:
            together.append(self._entry(tasks[whole:]))
        if together:
            await self._log.append(*together)

    def follows(self, stage: str) -> bool:
        """Return whether the job may plan follow-ups of a single answer of a stage."""
        return self._follows[stage]

    def _specs(self, end: TaskEnd) -> list[TaskSpec]:
        """Return the follow-ups of a single answer."""
        if not self.follows(end.row.stage) or end.answer.reply is None:
            return []
        if not self._stages[end.row.stage].gathers:
            return self._follow_up((end.answer,))
        if end.row.group is not None:
            return []
        return list(self._job.follow_up_alone(self._dataset, end.answer))

    async def _missing(
        self,
        specs: list[TaskSpec],
        group: tuple[Answer, ...],
        root: int,
        others: Sequence[PlannedTask] = (),
    ) -> list[PlannedTask]:
        """Return the tasks of *specs* that are neither in the log nor in *others*."""
        return follow_ups(
            self._job,
            specs,
            group,
            self._roles,
            root=root,
            existing=await self._log.family(root),
            others=others,
        )

    def _entry(self, block: list[PlannedTask]) -> Entry:
        """Return the event of follow-ups; append it before any await."""
        self._skipped += sum(task.skip is not None for task in block)
        event = TasksPlanned(first=self._take(len(block)), count=len(block), consumed=0)
        return Entry(event=event, payload=manifest_bytes(block))

    def _group_keys(self, row: TaskRow, group: str) -> list[GroupKey]:
        """Return groups of this or later stages that the task's end may complete."""
        names = [stage.name for stage in self._job.stages]
        return [
            (name, model, row.replicate, group)
            for name in names[names.index(row.stage) :]
            if self._stages[name].gathers
            for model in self._related_models(name, row.stage, row.model)
        ]

    def _related_models(
        self, stage: str, ended_stage: str, model: str
    ) -> tuple[str, ...]:
        """Return the models whose groups of *stage* concern *model* in *ended_stage*.

        Its own, if both have the same role. Roles have no models in common: a judge's
        group is about the answers of every subject.
        """
        this_stage = self._stages[stage]
        if this_stage.role == self._stages[ended_stage].role:
            return (model,)
        return self._roles.of(this_stage)

    async def _gather(self, key: GroupKey) -> list[tuple[str, str]]:
        """Follow a group up if each of its tasks, in all stages up to it, is final."""
        # tasks that end together would each find the group complete and read all of it:
        # the first one reads it for the others too
        self._due.add(key)
        async with self._growing:
            if key not in self._due:
                return []
            self._due.remove(key)
            return await self._gather_alone(key)

    async def _gather_alone(self, key: GroupKey) -> list[tuple[str, str]]:
        stage, model, replicate, group = key
        if not self._exhausted:
            self._pending[key] = None
            return []
        names = [s.name for s in self._job.stages]
        for name in names[: names.index(stage) + 1]:
            for related_model in self._related_models(name, stage, model):
                if await self._log.group_is_open(name, related_model, replicate, group):
                    return []
        rows = await self._log.group(stage, model, replicate, group)
        if not rows:
            return []
        answers = tuple([await self._answer(row) for row in rows])
        try:
            specs = self._follow_up(answers)
        except JobFault as fault:
            location = f"group {group} of stage {stage} and {model}"
            self._stuck[f"follow_up of {location} raised {fault}"] = None
            return []
        planned = await self._missing(specs, answers, rows[0].root)
        await self._append_bounded(planned)
        return _pairs(planned)

    async def _answer(self, row: TaskRow) -> Answer:
        stored = await self._log.reply(row.task)
        return parsed_answer(self._stages, self._dataset, row, stored, self.faults)

    # -- after a crash, or a change of code ------------------------------------

    async def finish_reading(self) -> AsyncIterator[tuple[str, str]]:
        """Parse the answers that were stored but not parsed when a writer died."""
        before = await self._log.last_seq()
        after = 0
        while rows := await self._log.unread_answers(after=after, limit=PAGE):
            after = rows[-1].task
            for row in rows:
                if row.updated_seq > before:
                    continue  # an answer of this process, which parses it elsewhere
                answer = await self._answer(row)
                end = completed_event(row.task, row.attempts, answer.parsed)
                grown = await self.finish(row, answer, [end])
                for pair in grown.pairs:
                    yield pair

    async def _catch_up(self) -> AsyncIterator[tuple[str, str]]:
        """Derive follow-ups again from final tasks; add those that are missing."""
        for stage in self._job.stages:
            is_followed = self._job.follows(self._dataset, stage)
            if not is_followed or not (self._must_catch_up or stage.gathers):
                continue
            for model in self._roles.of(stage):
                after = 0
                while rows := await self._log.final_tasks(
                    stage.name, model, after=after, limit=PAGE
                ):
                    after = rows[-1].task
                    for pair in await self._follow_again(rows):
                        yield pair

    async def _follow_again(self, rows: Sequence[TaskRow]) -> list[tuple[str, str]]:
        """Derive the follow-ups of some tasks of one stage, in one transaction."""
        gathers = self._stages[rows[0].stage].gathers
        ended = []
        for row in rows:
            if gathers and row.group is not None:
                key = (row.stage, row.model, row.replicate, row.group)
                self._pending[key] = None
            elif self._follows[row.stage]:
                answer = await self._answer(row)
                ended.append(TaskEnd(row=row, answer=answer, entries=()))
        return (await self._follow_and_append(ended)).pairs


def _failed_entries(end: TaskEnd, fault: str) -> list[Entry | Event]:
    """Return the entries of *end* with a failure in place of the completion."""
    error = JobFault.__name__
    return [
        TaskFailed(task=entry.task, attempt=entry.attempt, error=error, fault=fault)
        if isinstance(entry, TaskCompleted)
        else entry
        for entry in end.entries
    ]


def _pairs(tasks: Sequence[PlannedTask]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((task.stage, task.model) for task in tasks))
