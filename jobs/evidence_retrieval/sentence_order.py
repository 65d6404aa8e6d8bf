"""Orders the sentences of a post, and lists the candidates of each rerank call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from jobs.evidence_retrieval.data import Criterion, EvidenceDataset, Post
from jobs.evidence_retrieval.parsing import Ordering
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.lexical import Bm25
from runner.job import Task


def spans(n: int, size: int, stride: int) -> tuple[range, ...]:
    """Return the indices that each window covers, in the order of the requests.

    The last one starts at the front and is as long as the others: if the stride does
    not divide evenly, it overlaps more.
    """
    starts = [*range(n - size, 0, -stride), 0]
    return tuple(range(start, min(start + size, n)) for start in starts)


def moved(order: Sequence[int], span: range, indices: Sequence[int]) -> tuple[int, ...]:
    """Return *order* with the entries of *span* permuted by *indices*."""
    window = order[span.start : span.stop]
    return (
        *order[: span.start],
        *(window[index] for index in indices),
        *order[span.stop :],
    )


DECIMALS = 10


def ranked(scores: Sequence[float]) -> list[int]:
    """Return indices into the pool by descending score, ties by index.

    Scores are compared to ten decimals.
    """
    rounded = [round(score, DECIMALS) for score in scores]
    return sorted(range(len(rounded)), key=lambda index: -rounded[index])


def shuffled(n: int, seed: int, query: str, replicate: int) -> list[int]:
    """Return *n* indices in an order that depends only on the arguments."""

    def key(index: int) -> bytes:
        text = f"{seed}:{query}:{replicate}:{index}"
        return hashlib.sha256(text.encode()).digest()

    return sorted(range(n), key=key)


LOCAL = frozenset({"bm25", "document"})
"""First stages that need no answer."""


def lexical(dataset: EvidenceDataset, post: Post) -> Bm25:
    """Return BM25 over a post, with the word weights of the settings."""
    return Bm25([sentence.text for sentence in post.sentences], dataset.idf)


def local_order(
    dataset: EvidenceDataset, post: Post, criterion: Criterion
) -> tuple[int, ...]:
    """Return the order of a first stage that is `LOCAL`."""
    if dataset.settings.first_stage == "document":
        return tuple(range(len(post.sentences)))
    return tuple(ranked(lexical(dataset, post).scores(criterion.text)))


def assessed_order(
    dataset: EvidenceDataset,
    post: Post,
    criterion: Criterion,
    relevance: Mapping[int, float],
) -> tuple[int, ...]:
    """Sort by descending relevance; ties and unlisted sentences by bm25, then index.

    Args:
        dataset: inputs with the word weights.
        post: the post.
        criterion: the query of bm25.
        relevance: by index, of one reply or the mean of several; unlisted ones have 0.
    """
    return by_relevance(lexical(dataset, post).scores(criterion.text), relevance)


def by_relevance(
    lexical_scores: Sequence[float], relevance: Mapping[int, float]
) -> tuple[int, ...]:
    """Sort in the same way, by bm25 scores already computed."""
    return tuple(
        sorted(
            ranked(lexical_scores),
            key=lambda index: -round(relevance.get(index, 0), DECIMALS),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankWindow:
    """The candidates of one window."""

    post: Post
    criterion: Criterion
    order: tuple[int, ...]  #: of the whole pool before this window, best first
    window: int
    spans: tuple[range, ...]  #: of all windows over it

    @property
    def indices(self) -> tuple[int, ...]:
        """The candidates as indices into the post, in the order of the prompt."""
        span = self.spans[self.window]
        return self.order[span.start : span.stop]

    @property
    def is_last(self) -> bool:
        """Whether the order after this window is the final one."""
        return self.window == len(self.spans) - 1

    def after(self, answer: Ordering) -> tuple[int, ...]:
        """Return the order of the whole pool after this window."""
        return moved(self.order, self.spans[self.window], answer.indices)


def listing(dataset: EvidenceDataset, task: Task) -> RerankWindow:
    """Return the window of a `rerank` task; raise `KeyError` if the data lost it."""
    query, _, number = task.key.rpartition("#")
    post, criterion = dataset.query(query)
    n = len(post.sentences)
    settings = dataset.settings
    order = _carried(task, n)
    if order is None:
        if settings.first_stage not in LOCAL:
            raise KeyError(task.key)
        order = local_order(dataset, post, criterion)
    window = int(number) if number.isdecimal() else -1
    if window == 0:
        order = _in_prompt_order(settings, order, query, task.replicate)
    window_spans = spans(
        depth(settings, n), settings.rerank_window, settings.rerank_stride
    )
    if not 0 <= window < len(window_spans):
        raise KeyError(task.key)
    return RerankWindow(
        post=post, criterion=criterion, order=order, window=window, spans=window_spans
    )


def final_order(
    dataset: EvidenceDataset, answers: Iterable[tuple[Task, object]]
) -> tuple[int, ...] | None:
    """Return the order of the pool after the last window of one query.

    Args:
        dataset: inputs with the post.
        answers: the query's tasks of stage `rerank`, of one model and replicate, with
            their parsed replies.

    Returns:
        A permutation of the indices into the post, the candidates before the rest; None
        if the last window has no readable answer.
    """
    for task, answer in answers:
        if isinstance(answer, Ordering):
            rerank_window = listing(dataset, task)
            if rerank_window.is_last:
                return rerank_window.after(answer)
    return None


def depth(settings: EvidenceSettings, n: int) -> int:
    """Return the number of candidates in a pool of *n*."""
    return min(settings.rerank_depth or n, n)


def carrying(order: Iterable[int]) -> str:
    """Encode an order as a task's context."""
    return msgspec.json.encode(tuple(order)).decode()


def _carried(task: Task, n: int) -> tuple[int, ...] | None:
    if task.context is None:
        return None
    order = msgspec.json.decode(task.context, type=tuple[int, ...])
    if sorted(order) != list(range(n)):
        raise KeyError(task.key)
    return order


def _in_prompt_order(
    settings: EvidenceSettings, order: tuple[int, ...], query: str, replicate: int
) -> tuple[int, ...]:
    """Return the candidates in the order of the settings, then the rest, unchanged.

    Replicates after the first are shuffled, to reveal position bias.
    """
    n = depth(settings, len(order))
    candidates, rest = order[:n], order[n:]
    if settings.order == "shuffled" or replicate > 1:
        # sorted first, so that equal candidates are shuffled equally
        in_post = sorted(candidates)
        permutation = shuffled(n, settings.seed, query, replicate)
        return (*(in_post[index] for index in permutation), *rest)
    if settings.order == "document":
        return (*sorted(candidates), *rest)
    return order
