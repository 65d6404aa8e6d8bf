"""Builds the request of a task: texts, JSON schema, token limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from jobs.evidence_retrieval.data import Criterion, EvidenceDataset, Post
from jobs.evidence_retrieval.sentence_order import listing
from jobs.kit.chat import chat_request, data_block
from runner.job import Task
from runner.messages import ChatRequest, EmbedRequest, Request, RerankRequest, TextPart
from runner.structured import schema_of


def sentences_part(sentences: Iterable[str]) -> TextPart:
    """Return the part with a post's sentences; a prompt cache may end after it."""
    return TextPart(text=data_block("sentences", _numbered(sentences)), cache=True)


def candidates_part(sentences: Iterable[str]) -> TextPart:
    """Return the part with the sentences to order."""
    return TextPart(text=data_block("candidates", _numbered(sentences)))


def criterion_block(criterion: Criterion) -> str:
    """Return the block of a criterion."""
    return data_block("criterion", criterion.text)


def criteria_block(criteria: Sequence[Criterion]) -> str:
    """Return the block of several criteria, a line of JSON each."""
    lines = (
        json.dumps({"id": criterion.id, "text": criterion.text}, ensure_ascii=False)
        for criterion in criteria
    )
    return data_block("criteria", "\n".join(lines))


def _numbered(sentences: Iterable[str]) -> str:
    return "\n".join(f"[{n}] {text}" for n, text in enumerate(sentences, start=1))


Percent = Annotated[int, Field(ge=0, le=100)]


class Evidence(BaseModel):
    """A sentence by its number, and how relevant it is."""

    n: int
    relevance: Percent


class AssessmentReply(BaseModel):
    """Which sentences are evidence, and how likely it is that there is any."""

    sentences: list[Evidence]
    evidence_probability: Percent


class AssessedCriterion(BaseModel):
    """The same for the criterion of that id."""

    id: str
    sentences: list[Evidence]
    evidence_probability: Percent


class PostAssessmentReply(BaseModel):
    """One entry a criterion."""

    criteria: list[AssessedCriterion]


class RankingReply(BaseModel):
    """The numbers of all candidates, the most relevant first."""

    ranking: list[int]


ASSESS = schema_of(AssessmentReply, "assessment")
ASSESS_POST = schema_of(PostAssessmentReply, "assessments")
RERANK = schema_of(RankingReply, "ranking")


def request(dataset: EvidenceDataset, task: Task) -> Request:
    """Build the request of *task*; raise `KeyError` if the data lost its item."""
    match task.stage:
        case "assess":
            post, criteria = assessed(dataset, task.key)
            sentences = sentences_part(texts(post))
            if is_batch(dataset, task.key):
                return assess_post(dataset, sentences, criteria)
            return assess(dataset, sentences, *criteria)
        case "rerank":
            rerank_window = listing(dataset, task)
            pool = texts(rerank_window.post)
            candidates = [pool[index] for index in rerank_window.indices]
            part = candidates_part(candidates)
            return rerank(dataset, part, rerank_window.criterion)
        case "embed":
            return embed(dataset, dataset.post(task.key))
        case "rerank_api":
            post, criterion = dataset.query(task.key)
            return rerank_api(post, criterion)
        case _:
            raise KeyError(task.stage)


def is_batch(dataset: EvidenceDataset, key: str) -> bool:
    """Return whether a key of stage `assess` is about all criteria of a post."""
    try:
        dataset.query(key)
    except KeyError:
        return True
    return False


def assessed(dataset: EvidenceDataset, key: str) -> tuple[Post, tuple[Criterion, ...]]:
    """Return post and criteria of an `assess` task; raise `KeyError` if lost."""
    if is_batch(dataset, key):
        return dataset.post(key), dataset.criteria
    post, criterion = dataset.query(key)
    return post, (criterion,)


def texts(post: Post) -> tuple[str, ...]:
    """Return the sentences of a post as they are sent."""
    return tuple(sentence.text for sentence in post.sentences)


def assess(
    dataset: EvidenceDataset, sentences: TextPart, criterion: Criterion
) -> ChatRequest:
    """Build the request for the evidence for one criterion."""
    messages = dataset.prompts.messages(
        "assess.query",
        sentences=sentences,
        criterion=criterion_block(criterion),
    )
    return chat_request(dataset.settings, messages, ASSESS)


def assess_post(
    dataset: EvidenceDataset, sentences: TextPart, criteria: Sequence[Criterion]
) -> ChatRequest:
    """Build the request for all criteria, with the sum of their token limits."""
    messages = dataset.prompts.messages(
        "assess.post", sentences=sentences, criteria=criteria_block(criteria)
    )
    most = dataset.settings.max_output_tokens * len(criteria)
    return chat_request(dataset.settings, messages, ASSESS_POST, max_tokens=most)


def rerank(
    dataset: EvidenceDataset, candidates: TextPart, criterion: Criterion
) -> ChatRequest:
    """Build the request to order the candidates."""
    messages = dataset.prompts.messages(
        "rerank",
        candidates=candidates,
        criterion=criterion_block(criterion),
    )
    return chat_request(dataset.settings, messages, RERANK)


def embed(dataset: EvidenceDataset, post: Post) -> EmbedRequest:
    """Build the request for vectors of all criteria, then of the post's sentences."""
    prefix = dataset.settings.embed_query_prefix
    return EmbedRequest(
        texts=(
            *(prefix + criterion.text for criterion in dataset.criteria),
            *texts(post),
        )
    )


def rerank_api(post: Post, criterion: Criterion) -> RerankRequest:
    """Build the request for scores of the whole pool: one call for all first stages."""
    return RerankRequest(query=criterion.text, documents=texts(post))
