"""The order of a post's sentences under each first stage, as places in the post.

Planning and prediction both derive an order here, so what was listed in a prompt can
be told again from data, settings and answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.evidence_retrieval.dataset import Criterion, Dataset, Post
from jobs.evidence_retrieval.stages.ordering import DECIMALS, ranked
from jobs.lexical import Bm25

LOCAL = frozenset({"bm25", "document"})
"""First stages that need no answer."""


def lexical(dataset: Dataset, post: Post) -> Bm25:
    """BM25 over a post, with the word weights that the settings ask for."""
    return Bm25([sentence.text for sentence in post.sentences], dataset.idf)


def local_order(dataset: Dataset, post: Post, criterion: Criterion) -> tuple[int, ...]:
    """The order of a first stage that is `LOCAL`."""
    if dataset.settings.first_stage == "document":
        return tuple(range(len(post.sentences)))
    return tuple(ranked(lexical(dataset, post).scores(criterion.text)))


def assessed_order(
    dataset: Dataset, post: Post, criterion: Criterion, relevance: Mapping[int, float]
) -> tuple[int, ...]:
    """Falling relevance; ties and unlisted sentences by bm25, then by place.

    Args:
        dataset: for the word weights.
        post: whose sentences.
        criterion: which bm25 goes by.
        relevance: by place, of one reply or the mean of several; unlisted ones have 0.
    """
    return by_relevance(lexical(dataset, post).scores(criterion.text), relevance)


def by_relevance(
    lexical_scores: Sequence[float], relevance: Mapping[int, float]
) -> tuple[int, ...]:
    """The same, from bm25 scores that are there already."""
    return tuple(
        sorted(
            ranked(lexical_scores),
            key=lambda place: -round(relevance.get(place, 0), DECIMALS),
        )
    )
