"""Several orders of one pool made into one score a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jobs.evidence_retrieval.stages.ordering import DECIMALS
from jobs.metrics.columns import Floats

RRF = 60
"""Constant of reciprocal rank fusion (Cormack and others, 2009)."""


def reciprocal_ranks(orders: Sequence[Sequence[int]], k: int = 0) -> Floats:
    """The mean of 1 / (k + rank) over *orders*, by place in the pool.

    With k = 0 the mean reciprocal rank, by which replicates are merged; with `RRF` it
    orders as reciprocal rank fusion does. Rounded to ten decimals.
    """
    parts: list[list[float]] = [[] for _ in orders[0]]
    for order in orders:
        for rank, place in enumerate(order, start=1):
            parts[place].append(1 / (k + rank))
    sums = [math.fsum(own) for own in parts]
    means: Floats = np.round(np.array(sums) / len(orders), DECIMALS)
    return means
