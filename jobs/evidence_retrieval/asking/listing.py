"""What one rerank call lists, and the order of the pool after its answer.

The order travels in the task's context: the first window has that of the first stage,
where an answer gave it, and each further window has the whole pool as the windows
before it left it. So a task is all that is needed to list its candidates again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from jobs.evidence_retrieval.asking.orders import LOCAL, local_order
from jobs.evidence_retrieval.asking.windows import moved, spans
from jobs.evidence_retrieval.dataset import Criterion, Dataset, Post
from jobs.evidence_retrieval.parsing.values import Ordering
from jobs.evidence_retrieval.settings import Settings
from jobs.evidence_retrieval.stages.ordering import shuffled
from runner.job import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The candidates of one window."""

    post: Post
    criterion: Criterion
    order: tuple[int, ...]  #: of the whole pool before this window, best first
    window: int
    spans: tuple[range, ...]  #: of all windows over it

    @property
    def places(self) -> tuple[int, ...]:
        """The candidates as places in the post, in the order of the prompt."""
        span = self.spans[self.window]
        return self.order[span.start : span.stop]

    @property
    def is_last(self) -> bool:
        """Whether the order after this window is the final one."""
        return self.window == len(self.spans) - 1

    def after(self, answer: Ordering) -> tuple[int, ...]:
        """The order of the whole pool after this window."""
        return moved(self.order, self.spans[self.window], answer.places)


def listing(dataset: Dataset, task: Task) -> Listing:
    """What a task of stage `rerank` lists; `KeyError` where the data lost it."""
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
        order = _as_listed(settings, order, query, task.replicate)
    found = spans(depth(settings, n), settings.rerank_window, settings.rerank_stride)
    if not 0 <= window < len(found):
        raise KeyError(task.key)
    return Listing(
        post=post, criterion=criterion, order=order, window=window, spans=found
    )


def final_order(
    dataset: Dataset, answers: Iterable[tuple[Task, object]]
) -> tuple[int, ...] | None:
    """The order of the pool after the last window of one query.

    Args:
        dataset: whose post.
        answers: the query's tasks of stage `rerank`, of one model and replicate, with
            what their replies were read as.

    Returns:
        A permutation of the places in the post, the candidates before the rest; None
        where the last window has no answer that could be read.
    """
    for task, answer in answers:
        if isinstance(answer, Ordering):
            listed = listing(dataset, task)
            if listed.is_last:
                return listed.after(answer)
    return None


def depth(settings: Settings, n: int) -> int:
    """How many of a pool of *n* are candidates."""
    return min(settings.rerank_depth or n, n)


def carrying(order: Iterable[int]) -> str:
    """An order as a task's context."""
    return msgspec.json.encode(tuple(order)).decode()


def _carried(task: Task, n: int) -> tuple[int, ...] | None:
    if task.context is None:
        return None
    order = msgspec.json.decode(task.context, type=tuple[int, ...])
    if sorted(order) != list(range(n)):
        raise KeyError(task.key)
    return order


def _as_listed(
    settings: Settings, order: tuple[int, ...], query: str, replicate: int
) -> tuple[int, ...]:
    """The candidates in the order of the settings; the rest keeps its own below.

    Replicates after the first are shuffled, so that the bias by position shows.
    """
    n = depth(settings, len(order))
    candidates, rest = order[:n], order[n:]
    if settings.order == "shuffled" or replicate > 1:
        # from the order of the post: the same candidates are shuffled the same way
        in_post = sorted(candidates)
        listed = shuffled(n, settings.seed, query, replicate)
        return (*(in_post[place] for place in listed), *rest)
    if settings.order == "document":
        return (*sorted(candidates), *rest)
    return order
