"""Answers to records: the only part of scoring that knows where work was made.

A native answer is completed from the dataset (truth, questions); an imported one brings
its own in the task's context, except for flat replies, which are native in all but
their origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.importing.context import (
    UNKNOWN_SKIP,
    decode_paper,
    decode_question,
)
from jobs.paper_investigation.record import Batch, Item, PaperRecord
from jobs.paper_investigation.request import batch_of, paper_of
from runner.job import Answers
from runner.task import Answer


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
        truth=paper.variants if paper else (),
        task=first.task.number,
        reply=first.reply if paper else None,
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
        truth=stored.truth,
        task=first.task.number,
        reply=first.reply,
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
        reply=answer.reply,
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
    questions = {q.key: q for q in dataset.questions.get(pmcid, ())}
    preferred = "batch" if dataset.settings.batch_questions else "question"
    found: dict[str, Item] = {}
    strays = 0
    for answer in answers:
        fitting = tuple(_asked(dataset, answer, questions))
        strays += not fitting
        for item in fitting:
            key = item.question.key
            if key not in found or item.stage == preferred:
                found[key] = item
    items = (found.get(key) or Item(question=q) for key, q in questions.items())
    return tuple(items), strays


def _asked(
    dataset: Dataset, answer: Answer, questions: dict[str, Question]
) -> Iterator[Item]:
    """The questions that *answer* is about, as far as the data still holds them."""
    task = answer.task
    if task.stage == "batch":
        try:
            asked = batch_of(dataset, task)
        except KeyError:
            return
        batch = Batch.of(asked)
    else:
        question = questions.get(task.key.partition("/")[2])
        asked, batch = (question,) if question else (), None
    settings = dataset.settings
    for question in asked:
        yield Item(
            question=question,
            task=task.number,
            stage=task.stage,
            reply=answer.reply,
            absent=_absence(answer, answer.error),
            batch=batch,
            had_paper=not settings.closed_book or question.pmcid in dataset.papers,
        )


def _absence(answer: Answer, failed: str | None) -> str | None:
    """Why there is no reply; None where there is one. *failed*: a failure's word."""
    if answer.reply is not None:
        return None
    if answer.skip is not None:
        return answer.skip
    return failed if answer.error is not None else "open"
