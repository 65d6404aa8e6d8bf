"""Screening measures: how much reading a ranked list of records saves.

`labels` stand in screening order, ties already broken by the job. P is the number of
relevant records among N. Everything is undefined where P is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np

from jobs.kit.metrics.columns import Bools, Column, Floats, Ints, labels


@dataclass(frozen=True, slots=True)
class _Order:
    relevant: Bools
    hits: Ints  #: relevant records among the first k, k from 1

    @property
    def n(self) -> int:
        return len(self.relevant)

    @property
    def p(self) -> int:
        return int(self.hits[-1]) if self.n else 0


def _order(column: Column) -> _Order:
    relevant = labels("labels", column)
    return _Order(relevant, np.cumsum(relevant, dtype=np.int64))


def _reading(order: _Order, level: float) -> int:
    """The first rank at which at least *level* of the relevant records are found.

    Compared in integers on the decimal level: 0.95 * 20 is not 19 in doubles.
    """
    above, below = Decimal(str(level)).as_integer_ratio()
    needed = -(-above * order.p // below)
    return int(np.searchsorted(order.hits, max(needed, 1), side="left")) + 1


Wss = Literal["cohen", "no_offset", "asreview"]


def wss(column: Column, level: float = 0.95, *, form: Wss = "cohen") -> float | None:
    """Work saved over sampling at a recall *level* (Cohen and others, 2006).

    `no_offset` leaves out the subtraction of what random reading saves. `asreview`
    compares with the rank at which a random order finds as many.
    """
    order = _order(column)
    if not order.p:
        return None
    if form == "asreview":
        return _wss_asreview(order, level)
    saved = (order.n - _reading(order, level)) / order.n
    return saved if form == "no_offset" else saved - (1 - level)


def _wss_asreview(order: _Order, level: float) -> float:
    chance = _random_hits(order)
    above, below = Decimal(str(level)).as_integer_ratio()
    i = max(above * order.p // below, 0) or order.p
    by_chance = int(np.searchsorted(chance, i, side="left")) + 1
    here = int(np.searchsorted(order.hits, i, side="left")) + 1
    return (by_chance - here) / order.n


def _random_hits(order: _Order) -> Floats:
    """Return the expected hits of a random order at each rank, rounded half even."""
    return np.round(np.linspace(0, order.p, order.n))


def tnr_at_recall(column: Column, level: float = 0.95) -> float | None:
    """Share of irrelevant records left unread at that recall: normalised WSS.

    Kusa and others, "An analysis of work saved over sampling", 2023.
    """
    order = _order(column)
    if not order.p or order.p == order.n:
        return None
    k = _reading(order, level)
    irrelevant = order.n - order.p
    read = k - int(order.hits[k - 1])
    return (irrelevant - read) / irrelevant


def recall_at_share(
    column: Column, share: float = 0.10, *, ceil: bool = False
) -> float | None:
    """Recall after reading a share of the list: "RRF@10" in some tools.

    The records that fit into the share are read; with *ceil* one more where it does
    not come out even.
    """
    order = _order(column)
    if not order.p:
        return None
    k = _share(order, share, ceil=ceil)
    return int(order.hits[k - 1]) / order.p if k else 0.0


def _share(order: _Order, share: float, *, ceil: bool = False) -> int:
    above, below = Decimal(str(share)).as_integer_ratio()
    exact = above * order.n
    return min(order.n, -(-exact // below) if ceil else exact // below)


def erf(column: Column, share: float = 0.10) -> int | None:
    """Extra relevant records found: more than a random order has, after that share."""
    order = _order(column)
    if not order.p:
        return None
    k = _share(order, share)
    if not k:
        return 0
    return int(order.hits[k - 1]) - int(_random_hits(order)[k - 1])


def atd_records(column: Column) -> float | None:
    """Average time to discovery: the mean rank of the relevant records."""
    order = _order(column)
    ranks = np.flatnonzero(order.relevant) + 1
    return int(ranks.sum()) / order.p if order.p else None


def atd(column: Column) -> float | None:
    """Average time to discovery as a share of the list."""
    records = atd_records(column)
    return None if records is None else records / len(labels("labels", column))


def screening_loss(column: Column) -> float | None:
    """Return how far the recall curve is below the best one, as a share of the range.

    0 is the best order, 1 the worst. Undefined where all records are alike.
    """
    order = _order(column)
    n, p = order.n, order.p
    if p in {0, n}:
        return None
    best = p * (2 * n - (p - 1)) / 2
    return (best - int(order.hits.sum())) / (p * (n - p))


def screening_ndcg(column: Column) -> float | None:
    """NDCG over the whole list."""
    order = _order(column)
    if not order.p:
        return None
    discounts = [1 / math.log2(rank + 1) for rank in range(1, order.n + 1)]
    ideal = math.fsum(discounts[: order.p])
    return math.fsum(np.asarray(discounts)[order.relevant]) / ideal


def screening_ap(column: Column) -> float | None:
    """Average precision over the whole list."""
    order = _order(column)
    if not order.p:
        return None
    ranks = np.flatnonzero(order.relevant) + 1
    return math.fsum(np.arange(1, order.p + 1) / ranks) / order.p


def last_relevant_rank(column: Column) -> int | None:
    """Records to be read until nothing relevant is left."""
    order = _order(column)
    return int(np.flatnonzero(order.relevant)[-1]) + 1 if order.p else None


def recall_curve(column: Column) -> Floats | None:
    """Recall after each record."""
    order = _order(column)
    return order.hits / order.p if order.p else None


def nnr_at_recall(column: Column, level: float = 0.95) -> float | None:
    """Records read for each relevant one, until that recall is reached."""
    order = _order(column)
    if not order.p:
        return None
    k = _reading(order, level)
    return k / int(order.hits[k - 1])
