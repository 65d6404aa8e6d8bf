"""The request of a task: which review, which paper, how much of it."""

from __future__ import annotations

from dataclasses import replace

from jobs.chat import chat_request
from jobs.screening.asking import prompts, schemas
from jobs.screening.asking.told import from_abstract, told
from jobs.screening.dataset import Dataset
from jobs.screening.judgement import REASON_CODES
from jobs.screening.settings import StageName
from jobs.screening.validation_set import Record
from runner.job import Task
from runner.messages import ChatRequest


def request(dataset: Dataset, task: Task) -> ChatRequest:
    """The request of *task*; `KeyError` where the data lost its item."""
    match task.stage:
        case "criteria":
            return criteria(dataset, task.key)
        case "title" | "abstract" | "fulltext" as stage:
            return screen(dataset, stage, dataset.record(task.key), task.context)
        case _:
            raise KeyError(task.stage)


def criteria(dataset: Dataset, review: str) -> ChatRequest:
    """What does the review ask for?"""
    part = prompts.review_part(from_abstract(dataset.review(review)).lines)
    asked = dataset.prompts.messages("criteria", review=part)
    return chat_request(dataset.settings, asked, schemas.CRITERIA)


def screen(
    dataset: Dataset, stage: StageName, record: Record, context: str | None
) -> ChatRequest:
    """Does the paper meet the review's criteria?

    Args:
        dataset: texts and settings.
        stage: how much of the paper is read.
        record: the review and the paper.
        context: a model's criteria, if they were asked for.
    """
    settings = dataset.settings
    text = dataset.paper(record.paper)
    shown = text if settings.show_year else replace(text, year=None)
    asked = dataset.prompts.messages(
        stage,
        reason_codes=", ".join(REASON_CODES),
        review=prompts.review_part(
            told(settings, dataset.review(record.review), context).lines,
            record.review if settings.show_ids else "",
        ),
        paper=prompts.paper_part(
            stage,
            shown,
            dataset.fulltext(record.paper) if stage == "fulltext" else "",
            seed=f"{stage}/{record.key}",
            id_=record.paper if settings.show_ids else "",
        ),
    )
    return chat_request(dataset.settings, asked, schemas.SCREEN)
