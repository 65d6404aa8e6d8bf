"""A query's replicates made into one: means, merged orders, and how far they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.asking.orders import by_relevance
from jobs.evidence_retrieval.parsing.values import Assessment
from jobs.evidence_retrieval.stages.fusion import reciprocal_ranks
from jobs.evidence_retrieval.stages.ordering import DECIMALS, ranked
from jobs.metrics import std
from jobs.metrics.columns import Floats

MOST = 100
"""The largest relevance that a model can give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """What the readable replicates of an assessment say together."""

    probability: float  #: their mean
    deviation: float | None  #: standard deviation between them; None for one alone
    relevance: Floats  #: (sentences,) mean from 0 to 1; what was not listed has 0
    order: tuple[int, ...]  #: a permutation of the pool
    listed: int  #: sentences that any replicate listed
    largest: float  #: relevance among them, 0 where none is listed
    replicates: int  #: how many could be read


def merge(
    by_replicate: Mapping[int, Assessment], lexical: Sequence[float]
) -> tuple[Assessed, list[tuple[int, ...]]]:
    """The replicates of one query as one, and the order that each gives by itself.

    Args:
        by_replicate: the readable ones; at least one.
        lexical: bm25 scores of the pool, which order what a model leaves level.
    """
    own = [by_replicate[number] for number in sorted(by_replicate)]
    orders = [by_relevance(lexical, each.relevance) for each in own]
    n = len(lexical)
    summed = [
        math.fsum(each.relevance.get(place, 0) for each in own) for place in range(n)
    ]
    relevance = np.round(np.array(summed) / (len(own) * MOST), DECIMALS)
    probabilities = [each.probability for each in own]
    merged = Assessed(
        probability=math.fsum(probabilities) / len(own),
        deviation=std(probabilities),
        relevance=relevance,
        order=merged_order(orders),
        listed=len({place for each in own for place in each.relevance}),
        largest=float(relevance.max(initial=0.0)),
        replicates=len(own),
    )
    return merged, orders


def merged_order(orders: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Orders merged by mean reciprocal rank, ties by place; one order stays itself."""
    if len(orders) == 1:
        return orders[0]
    return tuple(ranked(reciprocal_ranks(orders).tolist()))
