"""Measures of one ranked list, from the ranks at which it holds its gold.

A query that has evidence and no gold in its list, or none to find at all, counts 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from jobs.evidence_retrieval.verification.choices import Choices
from jobs.evidence_retrieval.verification.queries import Found


def recall(found: Found, k: int, choices: Choices) -> float:
    """Share of the gold among the first *k*."""
    del choices
    return found.within(k) / found.gold if found.gold else 0.0


def precision(found: Found, k: int, choices: Choices) -> float:
    """Share of the first *k* that is gold; 0 of none is 0."""
    below = min(k, found.length) if choices.precision_over == "k_eff" else k
    return found.within(k) / below if below else 0.0


def hit(found: Found, k: int, choices: Choices) -> float:
    """Whether any gold is among the first *k*."""
    del choices
    return float(found.within(k) > 0)


def reciprocal_rank(found: Found, k: int, choices: Choices) -> float:
    """1 / rank of the first gold, 0 where it stands below *k*."""
    del choices
    return 1 / found.ranks[0] if found.within(k) else 0.0


def average_precision(found: Found, k: int, choices: Choices) -> float:
    """Precision at each gold among the first *k*, by the chosen denominator."""
    top = found.ranks[: found.within(k)]
    total = 0.0
    for so_far, rank in enumerate(top, 1):
        total += so_far / rank
    below = {"gold": found.gold, "min": min(found.gold, k), "found": len(top)}
    divisor = below[choices.ap_denominator]
    return total / divisor if divisor else 0.0


def ndcg(found: Found, k: int, choices: Choices) -> float:
    """Discounted gain of the first *k* by that of the best list there could be."""
    del choices
    best = _discounted(range(1, min(found.gold, k) + 1))
    return _discounted(found.ranks[: found.within(k)]) / best if best else 0.0


def _discounted(ranks: range | tuple[int, ...]) -> float:
    total = 0.0
    for rank in ranks:
        total += 1 / math.log2(rank + 1)
    return total


MEASURES: Mapping[str, Callable[[Found, int, Choices], float]] = {
    "recall": recall,
    "precision": precision,
    "hit": hit,
    "mrr": reciprocal_rank,
    "map": average_precision,
    "ndcg": ndcg,
}
