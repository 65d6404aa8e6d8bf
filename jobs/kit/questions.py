"""A job that asks one question about each row of a file, declared in a few lines.

A row is a pydantic model; its fields are the columns of a CSV file or the keys of JSON
lines. The job names the fields that a prompt shows and the field that holds the truth,
and reads a value from a reply:

    >>> class Trial(BaseModel):
    ...     id: str
    ...     abstract: str
    ...     enrolled: int | None = None
    >>> class Participants(QuestionJob):
    ...     name, version, Row = "participants", "1", Trial
    ...     question = "How many people did this trial enrol? Answer with a number."
    ...     show, truth = ("abstract",), "enrolled"
    ...
    ...     def read(self, text):
    ...         return int(text) if text.isdecimal() else None
    ...
    ...     def offline(self, texts):
    ...         return str(len(texts["abstract"].split()))
    >>> job = Participants()
    >>> rows = {"T1": Trial(id="T1", abstract="Ten men took part.", enrolled=10)}
    >>> data = Questions(settings=QuestionSettings(rows="trials.csv"), rows=rows)
    >>> [spec.key for spec in job.plan(data)]
    ['T1']

Everything else follows: the accuracy with its interval, verdicts, the confusion of
answers, the baseline of the most common truth, a figure, a report, `siftlog compare`,
`siftlog explain` and `siftlog import`. A job with several stages, or metrics of its
own, is a `runner.job.Job`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobs.kit.chat import data_block, read_blocks
from jobs.kit.explain import closest, failure_text, pages_text, reply_blocks, select
from jobs.kit.inputs.cells import Filled, InputCell, Text
from jobs.kit.inputs.files import read_table
from jobs.kit.inputs.rows import InputFindings, RowModel, sentence_of
from jobs.kit.job import Deferred
from runner.errors import DatasetError, UsageError
from runner.job import (
    Answer,
    Answers,
    AnySettings,
    ImportedAnswer,
    Importer,
    Job,
    Stage,
    Task,
    TaskSpec,
)
from runner.messages import ChatRequest, Message, ParseFailure, Reply, TextPart
from runner.scorecard import Finding, Scorecard
from store.document import Block, Fact, Heading

STAGE = "question"

Value = Hashable
"""What is read from a reply and compared with the truth, such as a number or a word."""


class QuestionSettings(BaseModel):
    """The settings of every job that asks one question about each row."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Path = Field(description="CSV file or JSON lines, one row for each question")
    limit: int | None = Field(
        None, ge=1, description="ask only about the first rows, this many"
    )
    max_output_tokens: int = Field(256, ge=1, description="longest reply, in tokens")
    temperature: float | None = Field(
        0.0, ge=0.0, description="sampling temperature; none: the endpoint's default"
    )
    level: float = Field(0.95, gt=0.0, lt=1.0, description="confidence level")
    boot_b: int = Field(2000, ge=0, description="bootstrap replicates; 0: no intervals")
    boot_seed: int = Field(20260118, ge=0, description="seed of the bootstrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The rows of a file by key, in file order."""

    settings: QuestionSettings
    rows: Mapping[str, BaseModel]
    findings: tuple[Finding, ...] = ()


class QuestionJob(Job):
    """Base class of a job that asks one question about each row.

    A subclass sets `name`, `version`, `Row`, `question`, `show` and `truth`, and
    implements `read` and `offline`.

    Raises:
        TypeError: `Row` lacks a named field, or `show` names the truth.
    """

    Settings = QuestionSettings

    Row: ClassVar[type[BaseModel]]  #: the columns of the file
    question: ClassVar[str]  #: instructions, the same for every row
    show: ClassVar[tuple[str, ...]]  #: fields that the prompt shows
    truth: ClassVar[str]  #: field of the right value; a row without it is not judged
    key: ClassVar[str] = "id"  #: field that names a row
    cluster: ClassVar[str] = ""
    """Field that names the document of a row, by which intervals are resampled; "":
    each row is one."""

    def __init__(self) -> None:
        self.stages = (Stage(name=STAGE, parse=self.parse, follows=False),)
        fields = self.Row.model_fields
        for name in (self.key, self.truth, *self.show, *filter(None, [self.cluster])):
            if name not in fields:
                raise TypeError(f"{self.Row.__name__} has no field {name!r}")
        if self.truth in self.show:
            raise TypeError(f"show names the truth, {self.truth!r}")

    # What a subclass implements

    @abstractmethod
    def read(self, text: str) -> Value | ParseFailure | None:
        """Read a value from a reply; None, or a `ParseFailure`, if it has none."""

    @abstractmethod
    def offline(self, texts: Mapping[str, str]) -> str:
        """Answer without a model, from the texts that the prompt shows."""

    def is_right(self, value: Value, truth: Value) -> bool:
        """Compare a value with the truth; by default they must be equal."""
        return value == truth

    # The parts of a job

    def load(self, settings: QuestionSettings) -> Questions:
        """Read and validate the rows; each key must occur once."""
        findings = InputFindings()
        rows: dict[str, BaseModel] = {}
        for at in self._table(settings.rows, findings):
            row = self._validated(at)
            key = str(getattr(row, self.key))
            if key in rows:
                raise at.error(f"{self.key} {key!r} occurs twice (remove one)")
            rows[key] = row
            if len(rows) == settings.limit:
                break
        if not rows:
            raise DatasetError(f"{settings.rows.name}: there is no row (add some).")
        return Questions(settings=settings, rows=rows, findings=findings.findings())

    def _table(self, path: Path, findings: InputFindings) -> Iterator[_SheetRow]:
        fields = self.Row.model_fields.items()
        needed = [name for name, info in fields if info.is_required()]
        return read_table(
            path,
            _SheetRow,
            findings=findings,
            needed=needed,
            further=[name for name, _ in fields],
            unit="row",
        )

    def _validated(self, at: _SheetRow) -> BaseModel:
        extra = at.__pydantic_extra__
        cells = {name: cell for name, cell in extra.items() if cell is not None}
        try:
            return self.Row.model_validate(cells)
        except ValidationError as error:
            raise at.error(sentence_of(error)) from error

    def plan(self, dataset: Questions) -> Iterator[TaskSpec]:
        """One task for each row, in file order."""
        return (TaskSpec(stage=STAGE, key=key) for key in dataset.rows)

    def item(self, dataset: Questions, spec: TaskSpec) -> str:
        """The document that a row is part of."""
        return self.document(dataset, spec.key)

    def document(self, dataset: Questions, key: str) -> str:
        """The cluster of a row; its own key without `cluster`."""
        if not self.cluster:
            return key
        return str(getattr(dataset.rows[key], self.cluster))

    def request(self, dataset: Questions, task: Task) -> ChatRequest:
        """The question, then a delimited block for each shown field."""
        row, settings = dataset.rows[task.key], dataset.settings
        blocks = "".join(
            data_block(block_name(name), str(getattr(row, name)), seed=task.key)
            for name in self.show
        )
        parts = (TextPart(text=f"{self.question}\n\n"), TextPart(text=blocks))
        return ChatRequest(
            messages=(Message(role="user", parts=parts),),
            max_tokens=settings.max_output_tokens,
            temperature=settings.temperature,
        )

    def baseline(self, request: ChatRequest) -> str:
        """The offline answer, from the blocks of the prompt."""
        blocks = dict(read_blocks(request.messages[0].text))
        return self.offline({name: blocks[block_name(name)] for name in self.show})

    def parse(
        self, dataset: object, task: object, reply: Reply
    ) -> Value | ParseFailure:
        """The value of a reply."""
        del dataset, task
        value = self.read(reply.text.strip())
        return ParseFailure(reason="no_value") if value is None else value

    def truth_of(self, row: BaseModel) -> Value | None:
        """The right value of a row; None where it is not known."""
        value: Value | None = getattr(row, self.truth)
        return value

    def score(self, dataset: Questions, answers: Answers) -> Scorecard:
        """Accuracy, confusion and everything that follows from them."""
        scorecard: Scorecard = _score(self, dataset, answers)
        return scorecard

    def explain(
        self,
        dataset: Questions,
        answers: Answers | None,
        items: tuple[str, ...],
    ) -> str:
        """A page for each key: what was shown, the truth, and every answer."""
        chosen = select(
            items or tuple(dataset.rows)[:1],
            lambda item: [item] if item in dataset.rows else [],
            kinds="row",
            otherwise=f"name a row by its {self.key}.",
            near=lambda item: closest(item, dataset.rows),
        )
        by_key: dict[str, list[Answer]] = {key: [] for key in chosen}
        for family in () if answers is None else answers.families():
            for answer in family:
                if answer.task.key in by_key:
                    by_key[answer.task.key].append(answer)
        return pages_text(self._page(dataset, key, by_key[key]) for key in chosen)

    def _page(
        self, dataset: Questions, key: str, answers: Iterable[Answer]
    ) -> Iterator[Block]:
        row = dataset.rows[key]
        yield Heading(key, level=1)
        for name in self.show:
            yield Fact(name, str(getattr(row, name)))
        truth = self.truth_of(row)
        yield Fact("truth", "not known" if truth is None else str(truth))
        for answer in answers:
            task = answer.task
            yield f"  {task.model}  replicate {task.replicate}, task {task.number:,}"
            yield from reply_blocks(answer, self._readings(answer, truth))

    def _readings(
        self, answer: Answer, truth: Value | None
    ) -> Iterator[tuple[str, str]]:
        if answer.chat is not None:
            match self.parse(None, answer.task, answer.chat):
                case ParseFailure() as failure:
                    yield "failed", f"could not be read: {failure_text(failure)}"
                case value if truth is None:
                    yield "read", str(value)
                case value:
                    is_right = self.is_right(value, truth)
                    yield "read", f"{value}: {'right' if is_right else 'wrong'}"

    @property
    def importer(self) -> Importer:  # type: ignore[override] # one for each job
        """Reads answers from files with the key and the answer of each row."""
        form = f"CSV or JSON lines: {self.key}, answer[, model]"
        return QuestionImporter(job=self, formats={"answers": form})


_score = Deferred("jobs.kit.question_results:score")


def block_name(field_name: str) -> str:
    """The name of the block that shows a field: its letters."""
    return re.sub("[^a-z]", "", field_name.lower()) or "text"


class _SheetRow(RowModel, extra="allow"):
    """Cells as the file has them; the job's own model validates them."""

    __pydantic_extra__: dict[str, InputCell]


class _AnswerRow(RowModel, extra="allow"):
    """An answer, with the key of its row."""

    answer: Text
    model: Text = ""
    __pydantic_extra__: dict[str, Filled]


@dataclass(slots=True, kw_only=True)
class QuestionImporter:
    """Imports answers from CSV files or JSON lines: the key, `answer`, `model`."""

    job: QuestionJob
    formats: Mapping[str, str]

    def read(
        self,
        files: tuple[Path, ...],
        settings: AnySettings,
        *,
        model: str | None,
        form: str | None,
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """Yield an answer for each row of the files.

        Raises:
            DatasetError: a row is wrong, or its key is not among the rows of the job.
            UsageError: no file is named.
        """
        del form
        if not files:
            raise UsageError("Name a file of answers after the job.")
        known = self.job.load(settings).rows
        for path in files:
            findings = InputFindings()
            columns = (self.job.key,)
            rows = read_table(
                path,
                _AnswerRow,
                findings=findings,
                needed=columns,
                further=columns,
                unit="row",
            )
            for row in rows:
                key = row.__pydantic_extra__[self.job.key]
                if key not in known:
                    near = "".join(closest(key, known)[:1])
                    hint = f"; the nearest is {near}" if near else ""
                    raise row.error(f"no row has the {self.job.key} {key!r}{hint}")
                yield ImportedAnswer(
                    spec=TaskSpec(stage=STAGE, key=key),
                    model=row.model or model or "imported",
                    replicate=replicates.get(path, 1),
                    text=row.answer,
                )
