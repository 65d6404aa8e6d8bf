"""Fakes for tests of jobs: a run's answers without a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from jobs.kit.replies import AnswerSubset
from runner.job import Answer, Dataset, ImportedAnswer, Job, Stage, Task, TaskSpec
from runner.messages import AnyReply, Reply
from runner.scorecard import Cell, Scorecard, StreamedLine, StreamedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswers(AnswerSubset):
    """Answers that a test makes up."""

    @classmethod
    def of(cls, families: Iterable[tuple[Answer, ...]]) -> MemoryAnswers:
        """The answers of *families*, with the models in order of first sight."""
        held = tuple(families)
        firsts = [family[0].task for family in held]
        return cls(
            held=held,
            models=tuple(dict.fromkeys(task.model for task in firsts)),
            replicates=max((task.replicate for task in firsts), default=1),
        )

    @classmethod
    def of_run(
        cls,
        job: Job,
        dataset: Dataset,
        answer: Callable[[Task], str | AnyReply | None],
        models: tuple[str, ...] = ("model",),
        replicates: int = 1,
    ) -> MemoryAnswers:
        """The answers of a run in which *answer* stands for the models.

        It gives a reply's text, a whole reply, or None where a task finally fails.
        *models* are the subjects; any other role has one model, such as "the-judge".
        """
        run = _Run(
            job=job,
            dataset=dataset,
            answer=answer,
            models=models,
            replicates=replicates,
        )
        held = tuple(
            tuple(run.family(spec, model, replicate))
            for spec in job.plan(dataset)
            for model in run.models_for(spec)
            for replicate in run.times(spec)
        )
        return cls(held=held, models=models, replicates=replicates)

    @classmethod
    def of_import(cls, imported: Iterable[ImportedAnswer]) -> MemoryAnswers:
        """The answers that a run has after an import."""
        families: list[list[Answer]] = []
        for number, imported_answer in enumerate(imported, start=1):
            if not imported_answer.descends:
                families.append([])
            families[-1].append(_answer(number, imported_answer))
        return replace(cls.of(map(tuple, families)), imported=True)


@dataclass(slots=True, kw_only=True)
class _Run:
    """A run without waiting, limits or a log."""

    job: Job
    dataset: Dataset
    answer: Callable[[Task], str | AnyReply | None]
    models: tuple[str, ...]
    replicates: int
    tasks: int = 0

    def models_for(self, spec: TaskSpec) -> tuple[str, ...]:
        """The models of the stage's role."""
        role = self._stage(spec).role
        return self.models if role == "subject" else (f"the-{role}",)

    def times(self, spec: TaskSpec) -> range:
        """The replicates in which a spec of the plan is asked."""
        return range(1, (1 if self._stage(spec).once else self.replicates) + 1)

    def family(self, spec: TaskSpec, model: str, replicate: int) -> Iterator[Answer]:
        """An answer and all that descend from it."""
        answer = self._answered(spec, model, replicate)
        yield answer
        stage = self._stage(spec)
        if answer.reply is None or not self.job.follows(self.dataset, stage):
            return
        for later in self.job.follow_up(self.dataset, (answer,)):
            stays = self._stage(later).role == stage.role
            numbers = range(1, self.replicates + 1) if stage.once else (replicate,)
            for later_model in (model,) if stays else self.models_for(later):
                for number in numbers:
                    yield from self.family(later, later_model, number)

    def _answered(self, spec: TaskSpec, model: str, replicate: int) -> Answer:
        self.tasks += 1
        task = Task(
            number=self.tasks,
            stage=spec.stage,
            key=spec.key,
            model=model,
            replicate=replicate,
            context=spec.context,
        )
        if spec.skip is not None:
            return Answer(task=task, skip=spec.skip)
        response = self.answer(task)
        if response is None:
            return Answer(task=task, error="ServerError")
        reply = Reply(text=response) if isinstance(response, str) else response
        parsed = self._stage(spec).parse(self.dataset, task, reply)
        return Answer(task=task, reply=reply, parsed=parsed)

    def _stage(self, spec: TaskSpec) -> Stage:
        (stage,) = (stage for stage in self.job.stages if stage.name == spec.stage)
        return stage


def _answer(number: int, imported_answer: ImportedAnswer) -> Answer:
    spec = imported_answer.spec
    reply = None
    if imported_answer.text is not None:
        reply = Reply(
            text=imported_answer.text, finish_reason=imported_answer.finish_reason
        )
    return Answer(
        task=Task(
            number=number,
            stage=spec.stage,
            key=spec.key,
            model=imported_answer.model,
            replicate=imported_answer.replicate,
            context=spec.context,
        ),
        reply=reply,
        error=imported_answer.error,
        skip=spec.skip,
    )


def artifact_texts(card: Scorecard) -> dict[str, str]:
    """The artifacts of a scoring as files: name to text."""
    files = {artifact.name: [artifact.text] for artifact in card.artifacts}
    for detail in card.details:
        if isinstance(detail, StreamedLine):
            files[detail.artifact].append(detail.text)
    return {name: "".join(pieces) for name, pieces in files.items()}


def table_rows(card: Scorecard, name: str) -> list[dict[str, Cell]]:
    """The rows of one table, by column."""
    (table,) = (table for table in card.tables if table.name == name)
    streamed = (
        detail.cells
        for detail in card.details
        if isinstance(detail, StreamedRow) and detail.table == name
    )
    rows = (*table.rows, *streamed)
    return [dict(zip(table.columns, cells, strict=True)) for cells in rows]
