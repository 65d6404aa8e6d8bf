"""Makes the request and the item key of a task.

The key of a paper is `<review>:<id>`; that of a conclusion is `<review>#<digest>` of
the papers it is drawn from, so that another threshold makes another task. What compares
conclusions names reviews and the subject model, and has a digest of the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from jobs.kit.chat import chat_request
from jobs.review_benchmark import prompts
from jobs.review_benchmark.data import GROUPS, RATIONALE, TERMS, WORDS, Review
from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.settings import Scale
from runner.job import Task
from runner.messages import ChatRequest, EmbedRequest, Request, Schema, TextPart

DIGEST = 10
"""Hex digits of a digest in a key."""


def paper_key(review: str, paper: int) -> str:
    """The key of a paper that is scored for a review."""
    return f"{review}:{paper}"


def paper_of_key(key: str) -> tuple[str, int]:
    """Review and paper of a key; raise `ValueError` where it is of no paper."""
    review, _, paper = key.rpartition(":")
    return review, int(paper)


def conclusion_key(review: str, papers: Iterable[int]) -> str:
    """The key of a conclusion from papers, in the order in which they are shown."""
    return f"{review}#{_digest(','.join(map(str, papers)))}"


def review_of_key(key: str) -> str:
    """The review of a key of a conclusion, or of what its authors concluded."""
    return key.rpartition("#")[0]


def truth_key(review: str, conclusion: str) -> str:
    """The key of what a review's authors concluded."""
    return f"{review}#{_digest(conclusion)}"


def compared_key(review: str, conclusion: str, model: str) -> str:
    """The key of a subject model's conclusion alone."""
    return f"{review}#{_digest(conclusion)}/{model}"


def judged_key(review: str, truth: str, texts: tuple[str, str], model: str) -> str:
    """The key of two conclusions that a judge is shown.

    Args:
        review: what the subject model concludes about.
        truth: the review whose authors' conclusion stands beside it.
        texts: its conclusion and theirs.
        model: the subject model.
    """
    return f"{review}~{truth}#{_digest(*texts)}/{model}"


def is_first(key: str) -> bool:
    """Whether the model's conclusion is called A: a coin that the key tosses."""
    return sha256(key.encode()).digest()[-1] % 2 == 0


def _digest(*texts: str) -> str:
    joined = "\0".join(texts)
    return sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConclusionText:
    """A subject model's conclusion, as the context of a task that compares it."""

    text: str
    truth: str = ""  #: a review whose authors it is held against; empty: no certain one


_SCALES: Final[dict[Scale, str]] = {
    "1-5": "score.from_1_to_5",
    "0-1": "score.from_0_to_1",
}
"""The prompt of each scale."""

_numbers = msgspec.json.Decoder(list[int])
_conclusion_decoder = msgspec.json.Decoder(ConclusionText)


def request(dataset: ReviewDataset, task: Task) -> Request:
    """The request of *task*; `KeyError` where the data lost its item."""
    match task.stage:
        case "plan":
            return plan(dataset, dataset.review(task.key))
        case "score":
            review, number = paper_of_key(task.key)
            return score(dataset, dataset.review(review), paper(dataset, number))
        case "conclude":
            review = review_of_key(task.key)
            papers = [
                paper(dataset, number)
                for number in documents_from_context(task.context)
            ]
            return conclude(dataset, dataset.review(review), papers)
        case "judge":
            conclusion = conclusion_from_context(task.context)
            truth = dataset.review(conclusion.truth).conclusion
            return judge(dataset, task.key, conclusion.text, truth)
        case "embed" if task.context is not None:
            return EmbedRequest(texts=(conclusion_from_context(task.context).text,))
        case "embed":
            text = dataset.review(review_of_key(task.key)).conclusion
            return EmbedRequest(texts=(text,))
        case _:
            raise KeyError(task.stage)


def plan(dataset: ReviewDataset, review: Review) -> ChatRequest:
    """What shall be searched?"""
    settings = dataset.settings
    years = review.date_range if settings.use_date_range else None
    return _chat(
        dataset,
        "plan",
        prompts.PLAN,
        most_groups=str(GROUPS),
        most_synonyms=str(TERMS),
        most_words=str(WORDS),
        review=prompts.review_part(review, title=True),
        search=prompts.plan_part(settings.queries, years),
    )


def score(dataset: ReviewDataset, review: Review, paper: DatabasePaper) -> ChatRequest:
    """How relevant is the paper?"""
    scale = dataset.settings.scale
    seed = f"score/{paper_key(review.id, paper.id)}"
    return _chat(
        dataset,
        _SCALES[scale],
        prompts.SCORE[scale],
        rationale_chars=str(RATIONALE),
        review=prompts.review_part(review),
        paper=prompts.paper_part(paper, seed=seed),
    )


def conclude(
    dataset: ReviewDataset, review: Review, papers: Sequence[DatabasePaper]
) -> ChatRequest:
    """What do the included papers come to?"""
    return _chat(
        dataset,
        "conclude",
        prompts.CONCLUDE,
        review=prompts.review_part(review, criteria=False),
        papers=prompts.papers_part(papers),
    )


def judge(dataset: ReviewDataset, key: str, conclusion: str, truth: str) -> ChatRequest:
    """How alike are two conclusions? Which one is called A hangs on the task's key."""
    pair = (conclusion, truth) if is_first(key) else (truth, conclusion)
    both = prompts.conclusions_part(*pair)
    return _chat(dataset, "judge", prompts.JUDGE, conclusions=both)


def _chat(
    dataset: ReviewDataset, prompt: str, schema: Schema, **parts: str | TextPart
) -> ChatRequest:
    messages = dataset.prompts.messages(prompt, **parts)
    return chat_request(dataset.settings, messages, schema)


def conclusion_to_context(conclusion: ConclusionText) -> str:
    """A conclusion, as the context of a task."""
    return msgspec.json.encode(conclusion).decode()


def conclusion_from_context(context: str | None) -> ConclusionText:
    """The conclusion in a context; raise `KeyError` where there is none."""
    if context is None:
        raise KeyError("context")
    return _conclusion_decoder.decode(context)


def documents_to_context(papers: Sequence[int]) -> str:
    """Ids of papers, as the context of a task."""
    return msgspec.json.encode(papers).decode()


def documents_from_context(context: str | None) -> list[int]:
    """The ids in a context; raise `KeyError` where there are none."""
    if context is None:
        raise KeyError("context")
    return _numbers.decode(context)


def paper(dataset: ReviewDataset, number: int) -> DatabasePaper:
    """A paper of the database; raise `KeyError` where it has none of this id."""
    database_paper = (
        None if dataset.database is None else dataset.database.paper(number)
    )
    if database_paper is None:
        raise KeyError(number)
    return database_paper
