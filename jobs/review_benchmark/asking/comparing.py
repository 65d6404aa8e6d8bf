"""What compares an agent's conclusion with those of the authors: a judge, or vectors.

Pure. A judge is shown the conclusion beside the authors' own, and beside those of a few
other reviews: how alike conclusions are that do not belong together is what a
threshold is drawn from.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from jobs.chat import is_longer_than
from jobs.review_benchmark.asking import keys
from jobs.review_benchmark.asking import request as asking
from jobs.review_benchmark.asking.request import Said
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.review import Review
from runner.job import TaskSpec
from runner.messages import Request


def truths(dataset: Dataset) -> Iterator[TaskSpec]:
    """The vectors of what authors concluded; none unless vectors are compared."""
    if dataset.verdict != "embedding":
        return
    for review in dataset.concluded:
        yield TaskSpec(
            stage="embed",
            key=keys.truth_key(review.id, review.conclusion),
            skip=_skip(dataset, asking.embed(review.conclusion)),
        )


def compared(
    dataset: Dataset, review: Review, text: str, model: str
) -> Iterator[TaskSpec]:
    """What compares a conclusion; nothing where its words do.

    Args:
        dataset: reviews and settings.
        review: what is concluded about.
        text: the conclusion.
        model: the subject model that has drawn it.
    """
    match dataset.verdict:
        case "judge":
            for truth in (review, *mismatched(dataset, review)):
                yield _judge(dataset, review, truth, text, model)
        case "embedding":
            yield TaskSpec(
                stage="embed",
                key=keys.said_key(review.id, text, model),
                skip=_skip(dataset, asking.embed(text)),
                context=asking.carrying_said(Said(text=text)),
            )
        case _:
            return


def mismatched(dataset: Dataset, review: Review) -> list[Review]:
    """The other reviews whose authors a conclusion is held against, by hash order."""
    others = (other for other in dataset.concluded if other.id != review.id)
    return sorted(
        others,
        key=lambda other: sha256(f"{review.id}\0{other.id}".encode()).digest(),
    )[: dataset.settings.null_pairs]


def _judge(
    dataset: Dataset, review: Review, truth: Review, text: str, model: str
) -> TaskSpec:
    key = keys.judged_key(review.id, truth.id, (text, truth.conclusion), model)
    return TaskSpec(
        stage="judge",
        key=key,
        skip=_skip(dataset, asking.judge(dataset, key, text, truth.conclusion)),
        context=asking.carrying_said(Said(text=text, truth=truth.id)),
    )


def _skip(dataset: Dataset, request: Request) -> str | None:
    """Why a request is not sent; None where it is."""
    return (
        "too_long"
        if is_longer_than(request, dataset.settings.max_prompt_tokens)
        else None
    )
