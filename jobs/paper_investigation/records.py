"""Builds records, the input of all scoring: the data of a run about one paper.

A record is one paper under one model in one replicate, built from native or imported
answers; everything else in scoring uses only records. A native answer is completed from
the dataset (truth, questions); an imported one has these in the task's context, except
for flat replies, which are like native ones.

The importer writes the context, scoring reads it. Fields with their default value are
left out of its JSON, since it is stored with every task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from jobs.paper_investigation.data import (
    InvestigationDataset,
    Options,
    PaperQuestion,
    QuestionKind,
)
from jobs.paper_investigation.prompts import batch_of, paper_of
from runner.job import Answer, Answers, Task
from runner.messages import Reply

Mode: TypeAlias = Literal["investigate", "extract", "questions"]

Fact: TypeAlias = str | bool | float | list[str] | None
"""A verdict, recall or score stated in an imported file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionBatch:
    """Expected structure of one reply to several questions, in order."""

    keys: tuple[str, ...]
    kinds: tuple[QuestionKind, ...]
    options: tuple[Options | None, ...]

    @classmethod
    def of(cls, questions: tuple[PaperQuestion, ...]) -> QuestionBatch:
        """Return the structure of a batch of *questions*."""
        return cls(
            keys=tuple(question.key for question in questions),
            kinds=tuple(question.kind for question in questions),
            options=tuple(question.options for question in questions),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPaper:
    """Data of a file about a paper, other than the reply."""

    mode: Mode
    truth: tuple[str, ...] = ()  #: curated variants, as spelled
    title: str | None = None
    pmid: str | None = None
    had_paper: bool = True  #: whether the paper's text was in the prompt
    fixed_links: bool = False
    """Whether each question belongs only to the variant under which the file has it."""
    recorded: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuestion:
    """Data of a file about a question, other than the reply."""

    question: PaperQuestion
    had_paper: bool = True
    recorded: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionItem(StoredQuestion):
    """A question about a paper, with its reply or the reason for none."""

    task: int | None = None  #: number of its task; None: never sent
    stage: str = "question"
    reply: Reply | None = None
    absent: str | None = None  #: reason why a planned question has no reply
    batch: QuestionBatch | None = None  #: if the reply answers several questions

    @property
    def key(self) -> str:
        """Identity in the run: paper, pipeline and id."""
        return f"{self.question.pmcid}/{self.question.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRecord(StoredPaper):
    """Data of one paper, model and replicate.

    In mode `questions` a paper has one record for each of its question tasks, since
    these were planned one by one.
    """

    pmcid: str
    model: str
    replicate: int
    task: int | None = None  #: number of the extraction; None in mode questions
    reply: Reply | None = None  #: to the extraction
    absent: str | None = None  #: reason why the extraction has no reply
    items: tuple[QuestionItem, ...] = ()  #: pipeline order, then file order
    strays: int = 0  #: number of replies about items that the data no longer has
    unlabelled: int = 0  #: number of questions of its paper that are not judged


UNKNOWN_SKIP = "unknown_skip"
"""Skip reason of a paper whose file states none."""


def encode(stored: StoredPaper | StoredQuestion) -> str:
    """Encode the context of an imported task, as JSON."""
    return msgspec.json.encode(_sparse(stored)).decode()


decode_paper = msgspec.json.Decoder(StoredPaper).decode
"""Decodes the context of an imported extraction."""

decode_question = msgspec.json.Decoder(StoredQuestion).decode
"""Decodes the context of an imported question."""


def _sparse(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    field_values = (
        (data_field, getattr(value, data_field.name))
        for data_field in dataclasses.fields(value)
    )
    return {
        data_field.name: _sparse(content)
        if dataclasses.is_dataclass(content)
        else content
        for data_field, content in field_values
        if content != _default(data_field)
    }


def _default(data_field: dataclasses.Field[Any]) -> object:
    if data_field.default_factory is dataclasses.MISSING:
        return data_field.default
    return data_field.default_factory()


def records(dataset: InvestigationDataset, answers: Answers) -> Iterator[PaperRecord]:
    """Yield one record per family, in the run's order, then those of unsent papers.

    A run without a bench extracts, and does not plan papers that have no text.
    """
    sent: set[tuple[str, str, int]] = set()
    for family in answers.families():
        record = record_of(dataset, family)
        sent.add((record.model, record.pmcid, record.replicate))
        yield record
    if not answers.imported and dataset.settings.mode == "extract":
        yield from _never_sent(dataset, answers, sent)


def _never_sent(
    dataset: InvestigationDataset,
    answers: Answers,
    sent: Container[tuple[str, str, int]],
) -> Iterator[PaperRecord]:
    reasons = {paper: dataset.skip_reason(paper.pmcid) for paper in dataset.bench}
    for paper, reason in reasons.items():
        for model in answers.models:
            for replicate in range(1, answers.replicates + 1):
                if reason and (model, paper.pmcid, replicate) not in sent:
                    yield PaperRecord(
                        pmcid=paper.pmcid,
                        model=model,
                        replicate=replicate,
                        mode=dataset.settings.mode,
                        title=paper.title,
                        pmid=paper.pmid,
                        truth=paper.variants,
                        absent=reason,
                    )


def record_of(dataset: InvestigationDataset, family: tuple[Answer, ...]) -> PaperRecord:
    """Return the record of a family: an extraction and questions, or a question."""
    first, *rest = family
    if first.task.stage != "extract":
        return _questions_alone(dataset, first)
    if first.task.context is not None:
        return _imported(dataset, first, rest)
    return _native(dataset, first, rest)


def _native(
    dataset: InvestigationDataset, first: Answer, rest: list[Answer]
) -> PaperRecord:
    pmcid = first.task.key
    paper = dataset.paper(pmcid)
    items, strays = _items(dataset, pmcid, rest)
    return PaperRecord(
        pmcid=pmcid,
        model=first.task.model,
        replicate=first.task.replicate,
        mode="extract" if dataset.settings.mode == "extract" else "investigate",
        title=paper.title if paper else None,
        pmid=paper.pmid if paper else None,
        truth=paper.variants if paper else (),
        task=first.task.number,
        reply=first.chat if paper else None,
        absent=_absence(first, "extraction_failed") if paper else "not_in_bench",
        items=items,
        strays=strays,
        unlabelled=len(dataset.questions_of(pmcid)) - len(items),
    )


def _imported(
    dataset: InvestigationDataset, first: Answer, rest: list[Answer]
) -> PaperRecord:
    stored = decode_paper(first.task.context or "")
    absent = _absence(first, "extraction_failed")
    if absent == UNKNOWN_SKIP and _lacks_text(dataset, first.task.key):
        absent = "no_paper_text"
    return PaperRecord(
        pmcid=first.task.key,
        model=first.task.model,
        replicate=first.task.replicate,
        mode=stored.mode,
        title=stored.title,
        pmid=stored.pmid,
        truth=stored.truth,
        task=first.task.number,
        reply=first.chat,
        absent=absent,
        had_paper=stored.had_paper,
        items=tuple(_imported_item(answer) for answer in rest),
        fixed_links=stored.fixed_links,
        recorded=stored.recorded,
    )


def _lacks_text(dataset: InvestigationDataset, pmcid: str) -> bool:
    """Return whether bench and papers are available and show that there is no text."""
    is_known = dataset.settings.papers is not None and dataset.paper(pmcid) is not None
    return is_known and pmcid not in dataset.papers


def _imported_item(answer: Answer) -> QuestionItem:
    stored = decode_question(answer.task.context or "")
    return QuestionItem(
        question=stored.question,
        task=answer.task.number,
        reply=answer.chat,
        absent=_absence(answer, answer.error),
        had_paper=stored.had_paper,
        recorded=stored.recorded,
    )


def _questions_alone(dataset: InvestigationDataset, answer: Answer) -> PaperRecord:
    """Return the record of a question, or a batch, without an extraction."""
    pmcid = paper_of(answer.task.key)
    if answer.task.stage == "question" and answer.task.context is not None:
        question_items, strays = [_imported_item(answer)], 0
    else:
        items, strays = _items(dataset, pmcid, [answer])
        question_items = [item for item in items if item.task is not None]
    return PaperRecord(
        pmcid=pmcid,
        model=answer.task.model,
        replicate=answer.task.replicate,
        mode="questions",
        items=tuple(question_items),
        strays=strays,
    )


def _items(
    dataset: InvestigationDataset, pmcid: str, answers: Iterable[Answer]
) -> tuple[tuple[QuestionItem, ...], int]:
    """Return all judged questions with their answers, and the number of unmatched ones.

    A question may be sent alone or in a batch. If a changed setting caused both, the
    answer according to the current settings counts.
    """
    questions = dataset.questions_of(pmcid)
    preferred = "batch" if dataset.settings.batch_questions else "question"
    had_paper = not dataset.settings.closed_book or pmcid in dataset.papers
    by_key: dict[str, QuestionItem] = {}
    strays = 0
    for answer in answers:
        task = answer.task
        task_questions = _task_questions(dataset, task, questions)
        strays += not task_questions
        batch = (
            QuestionBatch.of(tuple(task_questions.values()))
            if task.stage == "batch"
            else None
        )
        for key, question in task_questions.items():
            if key not in by_key or task.stage == preferred:
                by_key[key] = QuestionItem(
                    question=question,
                    task=task.number,
                    stage=task.stage,
                    reply=answer.chat,
                    absent=_absence(answer, answer.error),
                    batch=batch,
                    had_paper=had_paper,
                )
    items = (
        by_key.get(key) or QuestionItem(question=q)
        for key, q in questions.items()
        if q.is_labelled
    )
    return tuple(items), strays


def _task_questions(
    dataset: InvestigationDataset, task: Task, questions: Mapping[str, PaperQuestion]
) -> dict[str, PaperQuestion]:
    """Return the questions of *task* that the data still has."""
    if task.stage == "batch":
        try:
            return {question.key: question for question in batch_of(dataset, task)}
        except KeyError:
            return {}
    key = task.key.partition("/")[2]
    return {key: questions[key]} if key in questions else {}


def _absence(answer: Answer, failed: str | None) -> str | None:
    """Return the reason for a missing reply, or None; *failed* is that of failures."""
    if answer.reply is not None:
        return None
    if answer.skip is not None:
        return answer.skip
    return failed if answer.error is not None else "open"
