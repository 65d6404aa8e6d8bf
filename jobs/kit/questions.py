"""A job that asks one question about each row of a file, declared in a few lines.

A row is a model of its columns (`jobs.kit.inputs.rows`), read from a CSV file or JSON
lines. The job names the fields that a prompt shows and the field that holds the truth,
and reads a value from a reply:

    >>> from jobs.kit.inputs.rows import RowSource
    >>> class Trial(RowModel):
    ...     id: cells.Filled
    ...     abstract: cells.Filled
    ...     enrolled: cells.Count | None = None
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
    >>> row = {"id": "T1", "abstract": "Ten men took part.", "enrolled": "10"}
    >>> trial = Trial.at(RowSource(file="trials.csv"), 2, row)
    >>> settings = QuestionSettings(rows="trials.csv")
    >>> data = Questions(settings=settings, rows={"T1": trial})
    >>> [spec.key for spec in job.plan(data)]
    ['T1']

Everything else follows: the accuracy with its interval, verdicts, the confusion of
answers, the baseline of the most common truth, a figure, a report, `siftlog compare`,
`siftlog explain`, `siftlog import`, labels by people as another truth, and redacted
bundles. A job of another form is a `runner.job.Job`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from jobs.kit.chat import data_block, read_blocks
from jobs.kit.explain import closest, failure_text, pages_text, reply_blocks, select
from jobs.kit.importer import FileImporter, ImportFile, ImportForm
from jobs.kit.inputs import cells
from jobs.kit.inputs.files import read_table
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.kit.job import Deferred
from jobs.kit.text_format import plural
from runner.errors import DatasetError
from runner.evaluation import AnyEvaluation
from runner.job import (
    Answer,
    Answers,
    ImportedAnswer,
    Importer,
    Job,
    Stage,
    Task,
    TaskSpec,
)
from runner.job_faults import guarded
from runner.messages import ChatRequest, Message, ParseFailure, Reply, TextPart
from runner.scorecard import Finding, Scorecard
from store.document import Block, Fact, Heading

if TYPE_CHECKING:
    from jobs.kit.evaluation import SourceMeasures
    from runner.labelling import Labelling

STAGE = "question"

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
"""Beginning of a word in the name of a class."""

Value = Hashable
"""Value read from a reply and compared with the truth, such as a number or a word."""


class QuestionSettings(BaseModel):
    """The settings of every job that asks one question about each row."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Path = Field(description="CSV file or JSON lines, one row for each question")
    limit: int = Field(
        0, ge=0, description="number of rows to use, from the first on; 0: all"
    )
    max_output_tokens: int = Field(256, ge=1, description="longest reply, in tokens")
    temperature: float | None = Field(
        0.0, ge=0.0, description="sampling temperature; none: the endpoint's default"
    )
    level: float = Field(0.95, gt=0.0, lt=1.0, description="confidence level")
    boot_b: int = Field(2000, ge=0, description="bootstrap replicates; 0: no intervals")
    boot_seed: int = Field(20260118, ge=0, description="seed of the bootstrap")
    map: tuple[str, ...] = Field(
        (), description="columns of imported files with other names: OLD=NEW"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The rows of a file by key, in file order."""

    settings: QuestionSettings
    rows: Mapping[str, RowModel]
    findings: tuple[Finding, ...] = ()


class QuestionJob(Job):
    """Base class of a job that asks one question about each row.

    A subclass sets `Row`, `question`, `show` and `truth`, and implements `read` and
    `offline`. Its `name` is that of the class unless it sets another.

    Raises:
        TypeError: `Row` lacks a named field, or `show` names the truth.
    """

    Settings = QuestionSettings
    version = "1"

    Row: ClassVar[type[RowModel]]  #: the columns of the file
    question: ClassVar[str]  #: instructions, the same for every row
    show: ClassVar[tuple[str, ...]]  #: fields that the prompt shows
    truth: ClassVar[str]  #: field of the right value; a row without it is not judged
    key: ClassVar[str] = "id"  #: field that names a row
    cluster: ClassVar[str] = ""
    """Field that names the document of a row, by which intervals are resampled; "":
    each row is one."""
    further: ClassVar[SourceMeasures[Any] | None] = None
    """Measures of the job's own, beside the accuracy; `jobs.kit.evaluation`."""
    choices: ClassVar[tuple[str, ...]] = ()
    """Values among which people choose when they label, a key each; (): they type."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Name the job after its class if it has no name: `OpenAccess`, open-access."""
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = _WORD.sub("-", cls.__name__).lower()

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
    def offline(self, texts: dict[str, str]) -> str:
        """Answer without a model, from the texts that the prompt shows."""

    def is_right(self, value: Value, truth: Value) -> bool:
        """Compare a value with the truth; by default they must be equal."""
        return value == truth

    # The parts of a job

    def load(self, settings: QuestionSettings) -> Questions:
        """Read and validate the rows; each key must occur once."""
        findings = InputFindings()
        rows: dict[str, RowModel] = {}
        for row in read_table(settings.rows, self.Row, findings=findings, unit="row"):
            key = str(getattr(row, self.key))
            if key in rows:
                raise row.error(f"{self.key} {key!r} occurs twice (remove one)")
            rows[key] = row
            if len(rows) == settings.limit:
                break
        if not rows:
            raise DatasetError(f"{settings.rows.name}: it has no rows (add some).")
        return Questions(settings=settings, rows=rows, findings=findings.findings())

    def plan(self, dataset: Questions) -> Iterator[TaskSpec]:
        """One task for each row, in file order."""
        return (TaskSpec(stage=STAGE, key=key) for key in dataset.rows)

    def titles(self, dataset: Questions) -> Iterator[tuple[str, str]]:
        """The rows that have a column `title`, with it."""
        for key, row in dataset.rows.items():
            yield key, str(getattr(row, "title", "") or "")

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

    @guarded
    def parse(
        self, dataset: object, task: object, reply: Reply
    ) -> Value | ParseFailure:
        """The value of a reply; a failure also where `read` raises."""
        del dataset, task
        value = self.read(reply.text.strip())
        return ParseFailure(reason="no_value") if value is None else value

    def truth_of(self, row: RowModel) -> Value | None:
        """The right value of a row; None where it is not known."""
        value: Value | None = getattr(row, self.truth)
        return value

    def score(self, dataset: Questions, answers: Answers) -> Scorecard:
        """Accuracy, confusion and everything that follows from them."""
        scorecard: Scorecard = _score(self, dataset, answers)
        return scorecard

    def describe(self, dataset: Questions) -> Iterator[str]:
        """The question, the fields that models see, and how many rows there are."""
        yield f"Question: {self.question}"
        rows = plural(len(dataset.rows), "row")
        yield f"Asked of {rows}; models see {', '.join(self.show)}."

    def explain(
        self, dataset: Questions, answers: Answers | None, items: tuple[str, ...]
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
        key_column: dict[str, Any] = {self.key: (cells.Filled, ...)}
        form = ImportForm(
            recognised=f"CSV or JSON lines with {self.key}, answer[, model]",
            needs=(self.key, "answer"),
        )

        class KeyedImporter(QuestionImporter):
            job: ClassVar[QuestionJob] = self
            row: ClassVar[type[AnswerRow]] = create_model(
                "KeyedAnswer", __base__=AnswerRow, **key_column
            )
            forms: ClassVar[Mapping[str, ImportForm]] = {"answers": form}
            fields: ClassVar[Sequence[str]] = (self.key, "answer", "model")

        return KeyedImporter()

    @property
    def labelling(self) -> Labelling:
        """People label the right value of each row."""
        labelling: Labelling = _labelling(self)
        return labelling

    @property
    def evaluation(self) -> AnyEvaluation:  # type: ignore[override] # of its measures
        """Computes all metrics from the numbers of rows, further measures included."""
        evaluation: AnyEvaluation = _evaluation(self)
        return evaluation


_score = Deferred("jobs.kit.question_results:score")
_labelling = Deferred("jobs.kit.question_labelling:RowLabelling")
_evaluation = Deferred("jobs.kit.question_results:evaluation")


def block_name(field_name: str) -> str:
    """The name of the block that shows a field: its letters."""
    return re.sub("[^a-z]", "", field_name.lower()) or "text"


class AnswerRow(RowModel):
    """The columns of a file of answers, beside the key."""

    answer: cells.Text = ""
    model: cells.Text = ""


class QuestionImporter(FileImporter[QuestionSettings]):
    """Imports answers from CSV files or JSON lines: the key, `answer`, `model`."""

    no_files = "Name a file of answers after the job."

    job: ClassVar[QuestionJob]
    row: ClassVar[type[AnswerRow]]

    def answers(
        self, files: Sequence[ImportFile], settings: QuestionSettings
    ) -> Iterator[ImportedAnswer]:
        """Yields an answer for each row; its key must be among the rows of the job."""
        rows, findings = self.job.load(settings).rows, InputFindings()
        for file in files:
            for row in read_table(
                file.path, self.row, findings=findings, renamed=file.renamed, unit="row"
            ):
                key = str(getattr(row, self.job.key))
                if key not in rows:
                    near = "".join(closest(key, rows)[:1])
                    hint = f"; the nearest is {near}" if near else ""
                    raise row.error(f"no row has the {self.job.key} {key!r}{hint}")
                yield ImportedAnswer(
                    spec=TaskSpec(stage=STAGE, key=key),
                    model=row.model or file.model or "imported",
                    replicate=file.replicate or 1,
                    text=row.answer,
                )
