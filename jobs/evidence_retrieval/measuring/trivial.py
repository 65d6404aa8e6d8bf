"""What retrieval comes to for whoever reads nothing: chance at the same prevalence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from jobs.evidence_retrieval.measuring.results import ModelResults
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.measures import TrivialBaseline
from jobs.metrics.columns import mean, ratio

CHANCE, ORDER = "chance at the prevalence", "a random order of the post's sentences"
LOWER = frozenset({"brier"})


def trivial(own: ModelResults) -> Iterator[TrivialBaseline]:
    """Baselines of separation and alerts, then of the final list."""
    block = own.block
    if block.gated is not None:
        yield from _of_gate(int(block.gated.y.sum()), len(block.gated.y))
    if block.stated is not None:
        stated = block.stated
        n, positives = len(stated.y), int(stated.y.sum())
        yield TrivialBaseline(
            of="alert_precision",
            key="random",
            name=CHANCE,
            value=ratio(positives, n),
            n=n,
            how="queries with evidence / queries with a state",
        )
    if block.final is not None and block.queries.gold is not None:
        rows = [
            i for i in block.final.rows.tolist() if block.queries.pool[i] != UNKNOWN
        ]
        sizes = [
            (int(block.queries.pool[i]), len(set(block.queries.gold[i]))) for i in rows
        ]
        sizes = [(n, gold) for n, gold in sizes if 0 < gold <= n]
        for path, expected in _ORDERED.items():
            yield TrivialBaseline(
                of=path,
                key="random",
                name=ORDER,
                value=mean(expected(n, gold) for n, gold in sizes),
                n=len(sizes),
                how="expected value, mean over queries with evidence in the post",
            )


def _of_gate(positives: int, n: int) -> Iterator[TrivialBaseline]:
    share = ratio(positives, n)
    if share is None:
        return
    for path, value, how in (
        ("auroc", 0.5, "any order"),
        ("auprc", share, "queries with evidence / queries"),
        ("brier", share * (1 - share), "q (1 - q), q = the share with evidence"),
    ):
        yield TrivialBaseline(
            of=path,
            key="random",
            name=CHANCE,
            value=value,
            n=n,
            how=how,
            lower_is_better=path in LOWER,
        )


def expected_recall(k: int) -> Callable[[int, int], float]:
    """Recall among the first *k* in any order of the sentences."""

    def expected(n: int, gold: int) -> float:
        del gold  # each of them is among the first with the same chance
        return min(k, n) / n

    return expected


def expected_ndcg(k: int) -> Callable[[int, int], float]:
    """NDCG of the first *k* in any order."""

    def expected(n: int, gold: int) -> float:
        return gold / n * _discounts(min(k, n)) / _discounts(min(k, gold))

    return expected


@lru_cache(maxsize=1 << 10)
def _discounts(places: int) -> float:
    return math.fsum(1 / math.log2(rank + 1) for rank in range(1, places + 1))


@lru_cache(maxsize=1 << 14)
def expected_reciprocal(n: int, gold: int) -> float:
    """The expected reciprocal rank of the first of *gold* among *n* in any order."""
    ranks = np.arange(1, n - gold + 2)
    # all places before a rank hold none: a product of shares of what is left
    left = n - ranks + 1
    none_before = np.concatenate(([1.0], np.cumprod((left - gold) / left)[:-1]))
    return math.fsum(none_before * gold / left / ranks)


_ORDERED: dict[str, Callable[[int, int], float]] = {
    "recall@10": expected_recall(10),
    "ndcg@10": expected_ndcg(10),
    "mrr": expected_reciprocal,
}
