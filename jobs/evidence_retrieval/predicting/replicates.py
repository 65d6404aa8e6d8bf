"""How far a model's replicates differ from each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobs.evidence_retrieval.predicting.outputs import SubjectOutputs
from jobs.evidence_retrieval.predicting.pool import Pool
from jobs.metrics import flip_rate, kendall_tau, mean

FLIP_RATE, ORDER_TAU = "flip_rate", "replicate_tau"


class Replicates:
    """First replicates against later ones, over the queries of a run."""

    def __init__(self) -> None:
        self._decisions: list[tuple[bool, bool]] = []
        self._taus: list[float] = []

    def add(
        self,
        pool: Pool,
        subject: SubjectOutputs,
        assess_orders: Sequence[Sequence[tuple[int, ...]]],
        tau: float,
    ) -> None:
        """Take in a post.

        Orders are those of reranks, whose later replicates list the candidates in
        another order, so that a model that goes by position shows; else those of the
        assessments.
        """
        for key, own_orders in zip(pool.keys, assess_orders, strict=True):
            stated = subject.assessed.get(key, {})
            called = [stated[number].probability >= tau for number in sorted(stated)]
            self._decisions += [(called[0], later) for later in called[1:]]
            reranked = subject.orders.get(key, {})
            orders = [reranked[number] for number in sorted(reranked)] or own_orders
            self._taus += _taus(orders)

    def numbers(self) -> dict[str, float | None]:
        """The flip rate of decisions, and the mean Kendall tau between orders."""
        return {
            FLIP_RATE: flip_rate(self._decisions),
            ORDER_TAU: mean(self._taus),
        }


def _taus(orders: Sequence[tuple[int, ...]]) -> Iterable[float]:
    for later in orders[1:]:
        tau = kendall_tau(orders[0], later)
        if tau is not None:
            yield tau
