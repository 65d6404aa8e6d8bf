"""Extends a job by the stages that were added to a finished run.

`siftlog add-stage` records the declaration of a stage in the log of the run
(`StageAdded`). Each later command reads it from there, so the file may change or
vanish. A declaration is data: reading a log that came from elsewhere runs no code of
its author. What reads a form of declarations is an entry point (group `siftlog.stages`)
under the suffix of its files.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias, cast

from runner.errors import UsageError
from runner.fingerprint import STAGES
from runner.installed import entry_points
from runner.job import (
    Answer,
    Answers,
    Dataset,
    Job,
    QuotedPassage,
    Stage,
    Task,
    TaskSpec,
)
from runner.messages import Content, Request
from runner.plan import stage_of
from runner.registry import job_of
from runner.scorecard import Scorecard
from store.document import PageText
from store.lineage import StageAdded
from store.read.status import added_stages, run_started


class AddedStage(ABC):
    """A stage that is about the answers, or the texts, of another one.

    Its methods get the job without it, are pure, and see only tasks of this stage
    unless stated otherwise.
    """

    stage: Stage  #: with its model
    after: str  #: the stage that it is about
    follows_answers: bool  #: it is about answers; otherwise about texts

    def judges(self, stage: str) -> bool:
        """Return whether it is about the answers of a stage."""
        return self.follows_answers and stage == self.after

    @abstractmethod
    def plan(self, job: Job, dataset: Dataset) -> Iterator[TaskSpec]:
        """Yield a spec for each text; none for a stage about answers."""

    @abstractmethod
    def follow_up(self, answer: Answer) -> TaskSpec | None:
        """Return the spec about an answer of the stage `after`; None without one."""

    @abstractmethod
    def request(self, job: Job, dataset: Dataset, task: Task) -> Request:
        """Build the request of a task."""

    @abstractmethod
    def baseline(self, request: Request) -> Content | None:
        """Answer a request of this stage offline; None: it is of another one."""

    @abstractmethod
    def scored(
        self, card: Scorecard, job: Job, dataset: Dataset, answers: Answers
    ) -> Scorecard:
        """Return the scorecard of the run's own stages with the scores of this one.

        Args:
            card: the scorecard.
            job: the job without this stage.
            dataset: the data of the run.
            answers: answers of this stage and of the one that it is about.
        """

    @abstractmethod
    def explained(
        self, job: Job, dataset: Dataset, answers: Answers, items: Sequence[str]
    ) -> PageText:
        """Show what the stage says of items; empty if it is about none of them.

        Args:
            job: the job without this stage.
            dataset: the data of the run.
            answers: answers of this stage and of the one that it is about.
            items: keys of tasks, or their parts.
        """


StageReader: TypeAlias = Callable[[str, str, str], AddedStage]
"""Reads a declaration: its text, its file for errors, and the model of the stage."""


def stage_reader(form: str) -> StageReader:
    """Return what reads declarations of a form, such as "toml".

    Raises:
        UsageError: nothing does.
    """
    for point in entry_points(group=STAGES, name=form):
        return cast("StageReader", point.load())
    forms = ", ".join(f".{point.name}" for point in entry_points(group=STAGES))
    raise UsageError(
        f"A stage cannot be declared in a file that ends in {form or 'nothing'!r}; "
        f"write one that ends in {forms}, as docs/add-stage.md shows."
    )


def stages_in(
    reader: sqlite3.Connection, through_seq: int | None = None
) -> list[AddedStage]:
    """Return the stages that were added to a run, oldest first.

    Args:
        reader: of the run's log.
        through_seq: the last event that counts; None: all do.
    """
    return [declared(*added) for added in added_stages(reader, through_seq)]


def declared(event: StageAdded, declaration: bytes) -> AddedStage:
    """Return the stage that an event added."""
    read = stage_reader(event.form)
    return read(declaration.decode(), event.file, event.model)


def job_in(reader: sqlite3.Connection) -> Job:
    """Load the job of a run, extended by the stages that were added to it.

    Raises:
        UsageError: the job is missing, or cannot be loaded.
        RunnerError: its package or file is broken.
    """
    first = run_started(reader)
    job = job_of(first)
    for added in stages_in(reader):
        job = extended(job, added, is_imported=first.imported)
    return job


def extended(job: Job, added: AddedStage, *, is_imported: bool = False) -> Job:
    """Return *job* with a further stage.

    Its class is a subclass in the same module, so that its code has the same hash.

    Args:
        job: the job.
        added: the stage.
        is_imported: whether the tasks of the other stages are those of an import, so
            that the job plans none.
    """
    kind = type(original(job))
    members = {"__module__": kind.__module__, "__doc__": kind.__doc__, "name": job.name}
    longer_kind = type(kind.__name__, (_Extended, kind), members)
    longer = cast("_Extended", object.__new__(longer_kind))
    # a method that the instance replaced is reached through `base`
    vars(longer).update(
        (k, v) for k, v in vars(job).items() if k not in vars(_Extended)
    )
    longer.base, longer.added = job, added
    longer.is_imported = is_imported
    longer.stages = (*job.stages, added.stage)
    return longer


def plans_added_only(job: Job) -> bool:
    """Return whether only added stages are planned: the run was imported."""
    return isinstance(job, _Extended) and job.is_imported


def original(job: Job) -> Job:
    """Return a job without added stages."""
    return original(job.base) if isinstance(job, _Extended) else job


class _Extended(Job):
    """A job with an added stage: passes on all that concerns its other stages."""

    base: Job
    added: AddedStage
    is_imported: bool

    @property
    def _is_base_planned(self) -> bool:
        return isinstance(self.base, _Extended) or not self.is_imported

    def plan(self, dataset: Dataset, /) -> Iterator[TaskSpec]:
        if self._is_base_planned:
            yield from self.base.plan(dataset)
        texts = original(self.base) if self.is_imported else self.base
        yield from self.added.plan(texts, dataset)

    def request(self, dataset: Dataset, task: Task, /) -> Request:
        if task.stage == self.added.stage.name:
            return self.added.request(self.base, dataset, task)
        return self.base.request(dataset, task)

    def baseline(self, request: Request, /) -> Content:
        content = self.added.baseline(request)
        return self.base.baseline(request) if content is None else content

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...], /
    ) -> Iterator[TaskSpec]:
        stage = stage_of(self, group[0].task.stage)
        if self._is_base_planned and (
            stage.gathers or self.base.follows(dataset, stage)
        ):
            yield from self.base.follow_up(dataset, group)
        if self.added.judges(stage.name):
            yield from filter(None, map(self.added.follow_up, group))

    def follow_up_alone(
        self, dataset: Dataset, answer: Answer, /
    ) -> Iterator[TaskSpec]:
        if self._is_base_planned:
            yield from self.base.follow_up_alone(dataset, answer)
        if self.added.judges(answer.task.stage):
            yield from filter(None, (self.added.follow_up(answer),))

    def follows_alone(self, dataset: Dataset, stage: Stage, /) -> bool:
        return self.added.judges(stage.name) or (
            self._is_base_planned and self.base.follows_alone(dataset, stage)
        )

    def follows(self, dataset: Dataset, stage: Stage, /) -> bool:
        if stage is self.added.stage:
            return False
        return self.added.judges(stage.name) or (
            self._is_base_planned and self.base.follows(dataset, stage)
        )

    def quotes(self, dataset: Dataset, answer: Answer, /) -> Iterator[QuotedPassage]:
        if answer.task.stage != self.added.stage.name:
            yield from self.base.quotes(dataset, answer)

    def score(self, dataset: Dataset, answers: Answers, /) -> Scorecard:
        return self.base.score(dataset, answers)

    def reaches(self, dataset: Dataset, /) -> Collection[str]:
        return (*self.base.reaches(dataset), self.added.stage.name)
