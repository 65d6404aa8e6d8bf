"""The request of a task: which review, which papers, which conclusions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from jobs.chat import chat_request
from jobs.review_benchmark.answered import RATIONALE
from jobs.review_benchmark.asking import keys, prompts, schemas
from jobs.review_benchmark.database.paper import Paper
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.query import GROUPS, TERMS, WORDS
from jobs.review_benchmark.settings import Scale
from runner.job import Task
from runner.messages import ChatRequest, EmbedRequest, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A subject model's conclusion, as the context of a task that compares it."""

    text: str
    truth: str = ""  #: a review whose authors it is held against; empty: no certain one


_SCALES: Final[dict[Scale, str]] = {
    "1-5": "score.from_1_to_5",
    "0-1": "score.from_0_to_1",
}
"""The prompt of each scale."""

_numbers = msgspec.json.Decoder(list[int])
_said = msgspec.json.Decoder(Said)


def request(dataset: Dataset, task: Task) -> Request:
    """The request of *task*; `KeyError` where the data lost its item."""
    match task.stage:
        case "plan":
            return plan(dataset, dataset.review(task.key))
        case "score":
            review, number = keys.paper_of_key(task.key)
            return score(dataset, dataset.review(review), paper(dataset, number))
        case "conclude":
            review = keys.review_of_key(task.key)
            papers = [paper(dataset, number) for number in carried(task.context)]
            return conclude(dataset, dataset.review(review), papers)
        case "judge":
            said = carried_said(task.context)
            truth = dataset.review(said.truth).conclusion
            return judge(dataset, task.key, said.text, truth)
        case "embed" if task.context is not None:
            return embed(carried_said(task.context).text)
        case "embed":
            return embed(dataset.review(keys.review_of_key(task.key)).conclusion)
        case _:
            raise KeyError(task.stage)


def plan(dataset: Dataset, review: Review) -> ChatRequest:
    """What shall be searched?"""
    settings = dataset.settings
    years = review.date_range if settings.use_date_range else None
    asked = dataset.prompts.messages(
        "plan",
        most_groups=str(GROUPS),
        most_synonyms=str(TERMS),
        most_words=str(WORDS),
        review=prompts.review_part(review, title=True),
        search=prompts.plan_part(settings.queries, years),
    )
    return chat_request(dataset.settings, asked, schemas.PLAN)


def score(dataset: Dataset, review: Review, paper: Paper) -> ChatRequest:
    """How relevant is the paper?"""
    scale = dataset.settings.scale
    seed = f"score/{keys.paper_key(review.id, paper.id)}"
    asked = dataset.prompts.messages(
        _SCALES[scale],
        rationale_chars=str(RATIONALE),
        review=prompts.review_part(review),
        paper=prompts.paper_part(paper, seed=seed),
    )
    return chat_request(dataset.settings, asked, schemas.SCORE[scale])


def conclude(dataset: Dataset, review: Review, papers: Sequence[Paper]) -> ChatRequest:
    """What do the included papers come to?"""
    asked = dataset.prompts.messages(
        "conclude",
        review=prompts.review_part(review, criteria=False),
        papers=prompts.papers_part(papers),
    )
    return chat_request(dataset.settings, asked, schemas.CONCLUDE)


def judge(dataset: Dataset, key: str, said: str, truth: str) -> ChatRequest:
    """How alike are two conclusions? Which one is called A hangs on the task's key."""
    pair = (said, truth) if keys.is_first(key) else (truth, said)
    asked = dataset.prompts.messages(
        "judge", conclusions=prompts.conclusions_part(*pair)
    )
    return chat_request(dataset.settings, asked, schemas.JUDGE)


def embed(text: str) -> EmbedRequest:
    """The vector of a conclusion."""
    return EmbedRequest(texts=(text,))


def carrying_said(said: Said) -> str:
    """A conclusion, as the context of a task."""
    return msgspec.json.encode(said).decode()


def carried_said(context: str | None) -> Said:
    """The conclusion in a context; raise `KeyError` where there is none."""
    if context is None:
        raise KeyError("context")
    return _said.decode(context)


def carrying(papers: Sequence[int]) -> str:
    """Ids of papers, as the context of a task."""
    return msgspec.json.encode(papers).decode()


def carried(context: str | None) -> list[int]:
    """The ids in a context; raise `KeyError` where there are none."""
    if context is None:
        raise KeyError("context")
    return _numbers.decode(context)


def paper(dataset: Dataset, number: int) -> Paper:
    """A paper of the database; raise `KeyError` where it has none of this id."""
    found = None if dataset.database is None else dataset.database.paper(number)
    if found is None:
        raise KeyError(number)
    return found
