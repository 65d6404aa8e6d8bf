"""Answers to records: the only part of scoring that knows where work was made.

A native answer is completed from the dataset (truth, questions); an imported one brings
its own in the task's context, except for flat replies, which are native in all but
their origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.importing.context import (
    UNKNOWN_SKIP,
    decode_paper,
    decode_question,
)
from jobs.paper_investigation.record import Batch, Item, PaperRecord
from jobs.paper_investigation.request import batch_of, paper_of
from runner.job import Answer, Answers, Task


def records(dataset: Dataset, answers: Answers) -> Iterator[PaperRecord]:
    """One record a family, in the run's order."""
    for family in answers.families():
        yield record_of(dataset, family)


def record_of(dataset: Dataset, family: tuple[Answer, ...]) -> PaperRecord:
    """The record of one family: an extraction and its questions, or a question."""
    first, *rest = family
    if first.task.stage != "extract":
        return _questions_alone(dataset, first)
    if first.task.context is not None:
        return _imported(dataset, first, rest)
    return _native(dataset, first, rest)


def _native(dataset: Dataset, first: Answer, rest: list[Answer]) -> PaperRecord:
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
    )


def _imported(dataset: Dataset, first: Answer, rest: list[Answer]) -> PaperRecord:
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


def _lacks_text(dataset: Dataset, pmcid: str) -> bool:
    """Whether bench and papers are at hand and show that there is no text."""
    is_known = dataset.settings.papers is not None and dataset.paper(pmcid) is not None
    return is_known and pmcid not in dataset.papers


def _imported_item(answer: Answer) -> Item:
    stored = decode_question(answer.task.context or "")
    return Item(
        question=stored.question,
        task=answer.task.number,
        reply=answer.chat,
        absent=_absence(answer, answer.error),
        had_paper=stored.had_paper,
        recorded=stored.recorded,
    )


def _questions_alone(dataset: Dataset, answer: Answer) -> PaperRecord:
    """The record of a question, or a batch, that no extraction came before."""
    pmcid = paper_of(answer.task.key)
    if answer.task.stage == "question" and answer.task.context is not None:
        asked, strays = [_imported_item(answer)], 0
    else:
        items, strays = _items(dataset, pmcid, [answer])
        asked = [item for item in items if item.task is not None]
    return PaperRecord(
        pmcid=pmcid,
        model=answer.task.model,
        replicate=answer.task.replicate,
        mode="questions",
        items=tuple(asked),
        strays=strays,
    )


def _items(
    dataset: Dataset, pmcid: str, answers: Iterable[Answer]
) -> tuple[tuple[Item, ...], int]:
    """All questions of a paper with their answers, and how many answers fit none.

    Whether a question was asked alone or in a batch, its answer is its answer. Where a
    changed setting had it asked in both ways, the way of the present settings counts.
    """
    questions = dataset.questions_of(pmcid)
    preferred = "batch" if dataset.settings.batch_questions else "question"
    had_paper = not dataset.settings.closed_book or pmcid in dataset.papers
    found: dict[str, Item] = {}
    strays = 0
    for answer in answers:
        task = answer.task
        asked = _asked(dataset, task, questions)
        strays += not asked
        batch = Batch.of(tuple(asked.values())) if task.stage == "batch" else None
        for key, question in asked.items():
            if key not in found or task.stage == preferred:
                found[key] = Item(
                    question=question,
                    task=task.number,
                    stage=task.stage,
                    reply=answer.chat,
                    absent=_absence(answer, answer.error),
                    batch=batch,
                    had_paper=had_paper,
                )
    items = (found.get(key) or Item(question=q) for key, q in questions.items())
    return tuple(items), strays


def _asked(
    dataset: Dataset, task: Task, questions: Mapping[str, Question]
) -> dict[str, Question]:
    """The questions that *task* asks, as far as the data still holds them."""
    if task.stage == "batch":
        try:
            return {question.key: question for question in batch_of(dataset, task)}
        except KeyError:
            return {}
    key = task.key.partition("/")[2]
    return {key: questions[key]} if key in questions else {}


def _absence(answer: Answer, failed: str | None) -> str | None:
    """Why there is no reply; None where there is one. *failed*: a failure's word."""
    if answer.reply is not None:
        return None
    if answer.skip is not None:
        return answer.skip
    return failed if answer.error is not None else "open"
