"""The request of a task: which texts, which schema, how many tokens."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.chat import chat_request
from jobs.evidence_retrieval.asking import prompts, schemas
from jobs.evidence_retrieval.asking.listing import listing
from jobs.evidence_retrieval.dataset import Criterion, Dataset, Post
from runner.job import Task
from runner.messages import ChatRequest, EmbedRequest, Request, RerankRequest, TextPart


def request(dataset: Dataset, task: Task) -> Request:
    """The request of *task*; `KeyError` where the data lost its item."""
    match task.stage:
        case "assess":
            post, criteria = assessed(dataset, task.key)
            sentences = prompts.sentences_part(texts(post))
            if is_batch(dataset, task.key):
                return assess_post(dataset, sentences, criteria)
            return assess(dataset, sentences, *criteria)
        case "rerank":
            listed = listing(dataset, task)
            pool = texts(listed.post)
            candidates = [pool[place] for place in listed.places]
            part = prompts.candidates_part(candidates)
            return rerank(dataset, part, listed.criterion)
        case "embed":
            return embed(dataset, dataset.post(task.key))
        case "rerank_api":
            post, criterion = dataset.query(task.key)
            return rerank_api(post, criterion)
        case _:
            raise KeyError(task.stage)


def is_batch(dataset: Dataset, key: str) -> bool:
    """Whether a key of stage `assess` asks about all criteria of a post."""
    try:
        dataset.query(key)
    except KeyError:
        return True
    return False


def assessed(dataset: Dataset, key: str) -> tuple[Post, tuple[Criterion, ...]]:
    """What a task of stage `assess` is about; `KeyError` where the data lost it."""
    if is_batch(dataset, key):
        return dataset.post(key), dataset.criteria
    post, criterion = dataset.query(key)
    return post, (criterion,)


def texts(post: Post) -> tuple[str, ...]:
    """The sentences of a post as they are sent."""
    return tuple(sentence.text for sentence in post.sentences)


def assess(dataset: Dataset, sentences: TextPart, criterion: Criterion) -> ChatRequest:
    """Is there evidence for one criterion, and where?"""
    asked = dataset.prompts.messages(
        "assess.query",
        sentences=sentences,
        criterion=prompts.criterion_block(criterion),
    )
    return chat_request(dataset.settings, asked, schemas.ASSESS)


def assess_post(
    dataset: Dataset, sentences: TextPart, criteria: Sequence[Criterion]
) -> ChatRequest:
    """The same for all criteria at once, with as many tokens as they have alone."""
    asked = dataset.prompts.messages(
        "assess.post", sentences=sentences, criteria=prompts.criteria_block(criteria)
    )
    most = dataset.settings.max_output_tokens * len(criteria)
    return chat_request(dataset.settings, asked, schemas.ASSESS_POST, max_tokens=most)


def rerank(dataset: Dataset, candidates: TextPart, criterion: Criterion) -> ChatRequest:
    """In which order are the candidates?"""
    asked = dataset.prompts.messages(
        "rerank",
        candidates=candidates,
        criterion=prompts.criterion_block(criterion),
    )
    return chat_request(dataset.settings, asked, schemas.RERANK)


def embed(dataset: Dataset, post: Post) -> EmbedRequest:
    """The vectors of all criteria, then of the post's sentences."""
    prefix = dataset.settings.embed_query_prefix
    return EmbedRequest(
        texts=(*(prefix + each.text for each in dataset.criteria), *texts(post))
    )


def rerank_api(post: Post, criterion: Criterion) -> RerankRequest:
    """The scores of the whole pool, whatever the first stage: one call serves all."""
    return RerankRequest(query=criterion.text, documents=texts(post))
