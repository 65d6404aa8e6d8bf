"""Builds the request and the item key of a task.

The key of a paper is `<review>:<id>`; that of a conclusion is `<review>#<digest>` of
the papers it is drawn from, so that another threshold makes another task. Keys of
comparisons name reviews and the subject model, and have a digest of the texts.
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
    """Return the key of a paper that is scored for a review."""
    return f"{review}:{paper}"


def paper_of_key(key: str) -> tuple[str, int]:
    """Return review and paper of a key; raise `ValueError` if it is of no paper."""
    review, _, paper = key.rpartition(":")
    return review, int(paper)


def conclusion_key(review: str, papers: Iterable[int]) -> str:
    """Return the key of a conclusion from papers, in the order of the prompt."""
    return f"{review}#{_digest(','.join(map(str, papers)))}"


def review_of_key(key: str) -> str:
    """Return the review of a conclusion's key, of an agent or of the authors."""
    return key.rpartition("#")[0]


def truth_key(review: str, conclusion: str) -> str:
    """Return the key of the authors' conclusion of a review."""
    return f"{review}#{_digest(conclusion)}"


def compared_key(review: str, conclusion: str, model: str) -> str:
    """Return the key of a subject model's single conclusion."""
    return f"{review}#{_digest(conclusion)}/{model}"


def judged_key(review: str, truth: str, texts: tuple[str, str], model: str) -> str:
    """Return the key of two conclusions for a judge.

    Args:
        review: the review of the subject model's conclusion.
        truth: the review of the authors' conclusion.
        texts: the subject model's conclusion and the authors'.
        model: the subject model.
    """
    return f"{review}~{truth}#{_digest(*texts)}/{model}"


def is_first(key: str) -> bool:
    """Return whether the model's conclusion is called A: a coin toss by the key."""
    return sha256(key.encode()).digest()[-1] % 2 == 0


def _digest(*texts: str) -> str:
    joined = "\0".join(texts)
    return sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConclusionText:
    """A subject model's conclusion, as the context of a task that compares it."""

    text: str
    truth: str = ""  #: review of the authors' conclusion; empty: no certain one


_SCALES: Final[dict[Scale, str]] = {
    "1-5": "score.from_1_to_5",
    "0-1": "score.from_0_to_1",
}
"""Prompt of each scale."""

_numbers = msgspec.json.Decoder(list[int])
_conclusion_decoder = msgspec.json.Decoder(ConclusionText)


def request(dataset: ReviewDataset, task: Task) -> Request:
    """Return the request of *task*; raise `KeyError` if the data lack its item."""
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
    """Request a search plan."""
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
    """Request the relevance of a paper."""
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
    """Request the conclusion from the included papers."""
    return _chat(
        dataset,
        "conclude",
        prompts.CONCLUDE,
        review=prompts.review_part(review, criteria=False),
        papers=prompts.papers_part(papers),
    )


def judge(dataset: ReviewDataset, key: str, conclusion: str, truth: str) -> ChatRequest:
    """Request the similarity of two conclusions; the task's key decides which is A."""
    pair = (conclusion, truth) if is_first(key) else (truth, conclusion)
    both = prompts.conclusions_part(*pair)
    return _chat(dataset, "judge", prompts.JUDGE, conclusions=both)


def _chat(
    dataset: ReviewDataset, prompt: str, schema: Schema, **parts: str | TextPart
) -> ChatRequest:
    messages = dataset.prompts.messages(prompt, **parts)
    return chat_request(dataset.settings, messages, schema)


def conclusion_to_context(conclusion: ConclusionText) -> str:
    """Encode a conclusion as the context of a task."""
    return msgspec.json.encode(conclusion).decode()


def conclusion_from_context(context: str | None) -> ConclusionText:
    """Decode the conclusion in a context; raise `KeyError` if there is none."""
    if context is None:
        raise KeyError("context")
    return _conclusion_decoder.decode(context)


def documents_to_context(papers: Sequence[int]) -> str:
    """Encode ids of papers as the context of a task."""
    return msgspec.json.encode(papers).decode()


def documents_from_context(context: str | None) -> list[int]:
    """Decode the ids in a context; raise `KeyError` if there are none."""
    if context is None:
        raise KeyError("context")
    return _numbers.decode(context)


def paper(dataset: ReviewDataset, number: int) -> DatabasePaper:
    """Return a paper of the database; raise `KeyError` if it has no such id."""
    database_paper = (
        None if dataset.database is None else dataset.database.paper(number)
    )
    if database_paper is None:
        raise KeyError(number)
    return database_paper
