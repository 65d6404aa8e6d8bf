"""What a gate sees of a query. Nothing in this module is given gold.

A value that does not exist (the second score of a pool of one, the deviation of a
single replicate) is 0, and an indicator beside it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jobs.metrics.columns import Floats, Ints

FARTHEST = 0.005
"""A probability counts as no nearer to 0 or 1: models state whole percents."""

SHAPE = ("max", "second", "mean", "sd", "gap", "entropy")
CRITERION = "criterion:"


def score_shape(scores: Floats) -> Floats:
    """`SHAPE` of each column of (sentences, queries) scores; NaN where undefined.

    The gap is the largest score less the second, the entropy (in nats) that of the
    scores' softmax.
    """
    n, queries = scores.shape
    shape = np.full((len(SHAPE), queries), np.nan)
    if not n:
        return shape
    falling = -np.sort(-scores, axis=0)
    shape[0] = falling[0]
    if n > 1:
        shape[1] = falling[1]
        shape[4] = falling[0] - falling[1]
    # added up row by row: a column's sum must not depend on those beside it
    average = _down(falling) / n
    shape[2] = average
    shape[3] = np.sqrt(_down((falling - average) ** 2) / n)
    raised = np.exp(falling - falling[0])
    shares = raised / _down(raised)
    shape[5] = -_down(shares * np.log(np.where(shares > 0, shares, 1.0)))
    return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """One row a query, every value finite."""

    names: tuple[str, ...]
    values: Floats  #: (queries, features)


def features(
    *,
    probability: Floats,
    deviation: Floats,
    shape: Floats,
    listed: Floats,
    relevance: Floats,
    pool: Ints,
    criterion: Ints,
    criteria: Sequence[str],
) -> Features:
    """What is known of each query before anybody looks at its gold.

    Args:
        probability: as the model stated it; NaN where it stated none.
        deviation: standard deviation of replicates; NaN where there is one.
        shape: (`SHAPE`, queries) of the scores of the last stage that measures.
        listed: sentences that the model listed; NaN where it said nothing.
        relevance: the largest relevance among them, 0 to 1; NaN likewise.
        pool: sentences of the post.
        criterion: place among *criteria*.
        criteria: their ids, all of the criteria file, used or not.
    """
    safe = np.clip(probability, FARTHEST, 1 - FARTHEST)
    measured = {
        "log_odds": np.log(safe) - np.log1p(-safe),
        **{f"score_{name}": row for name, row in zip(SHAPE, shape, strict=True)},
        "listed": listed,
        "max_relevance": relevance,
        "log_pool": np.log1p(pool.astype(np.float64)),
        "replicate_sd": deviation,
    }
    absent = {
        f"no_{name}": np.isnan(column).astype(np.float64)
        for name, column in measured.items()
        if name != "log_pool"
    }
    # in an order of their own, so that no file's order can reach a coefficient
    one_hot = {
        CRITERION + criteria[place]: (criterion == place).astype(np.float64)
        for place in sorted(range(len(criteria)), key=criteria.__getitem__)
    }
    filled = {name: np.nan_to_num(column) for name, column in measured.items()}
    columns = {**filled, **absent, **one_hot}
    return Features(names=tuple(columns), values=np.column_stack([*columns.values()]))


def _down(table: npt.NDArray[np.float64]) -> Floats:
    total = np.zeros(table.shape[1])
    for row in table:
        total += row
    return total
