"""Metrics query by query, for comparing models of this run with those of others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.comparing import (
    ACCURACY,
    GATE_FAMILY,
    OF_THE_GATE,
    RANKING_FAMILY,
    ranking_names,
)
from jobs.evidence_retrieval.measuring.measure import Quotient
from jobs.evidence_retrieval.measuring.results import ModelResults
from jobs.evidence_retrieval.measuring.sections import measures
from jobs.metrics.classification import at_threshold
from jobs.metrics.columns import Ints
from jobs.metrics.intervals import without_interval
from runner.scorecard import Comparable, ItemValues, Labels

CURVES = ("auroc", "auprc")
BRIER = "brier"
STATES = ("none", "evidence")
"""By the decision, False or True."""

SUMS = (
    BRIER,
    "evidence_recall@K",
    "evidence_precision@K",
    "screening_sensitivity",
    "alert_precision",
    "alert_recall",
)


def comparable(own: ModelResults) -> Comparable:
    """Makers of the values of a model's headline metrics, by path."""
    block, known = own.block, own.by_path()
    made: dict[str, Callable[[], ItemValues]] = {}
    for path in (*CURVES, *ranking_names(block.settings), *SUMS):
        if path in known and "not recomputable" not in (known[path].note or ""):
            definition = without_interval(known[path].definition)
            make = _curve if path in CURVES else _sums
            made[path] = partial(make, block, path, definition)
    if ACCURACY in known and block.gated is not None and block.gated.is_probability:
        definition = without_interval(known[ACCURACY].definition)
        made[ACCURACY] = partial(_right, block, definition)
    return made


def _family(block: Block, path: str) -> str:
    if path in {*OF_THE_GATE, ACCURACY}:
        return GATE_FAMILY
    return RANKING_FAMILY if path in ranking_names(block.settings) else ""


def labels(own: ModelResults) -> Labels:
    """Whether each judged query is said to have evidence, at tau; of probabilities."""
    block = own.block
    said: list[str | None] = [None] * len(block.queries)
    if block.gated is not None and block.gated.is_probability:
        decided = at_threshold(block.gated.p, block.settings.tau).tolist()
        for row, is_evidence in zip(block.gated.rows.tolist(), decided, strict=True):
            said[row] = STATES[is_evidence]
    rows = np.flatnonzero(block.judged).tolist()
    return Labels(
        what="decision",
        categories=STATES,
        items=[block.queries.key(row) for row in rows],
        said=[said[row] for row in rows],
    )


def _right(block: Block, definition: str) -> ItemValues:
    """Whether the decision at tau is right for each judged query."""
    rows = np.flatnonzero(block.judged)
    right = np.full(len(block.queries), np.nan)
    if block.gated is not None:
        decided = at_threshold(block.gated.p, block.settings.tau)
        right[block.gated.rows] = decided == block.gated.y
    return ItemValues(
        kind="mean",
        items=[block.queries.key(i) for i in rows.tolist()],
        clusters=_posts(block, rows),
        cluster="post",
        first=[None if np.isnan(x) else x for x in right[rows].tolist()],
        definition=definition,
        family=GATE_FAMILY,
    )


def _curve(block: Block, path: str, definition: str) -> ItemValues:
    """Truth and score of every judged query."""
    rows = np.flatnonzero(block.judged)
    score = np.full(len(block.queries), np.nan)
    if block.gated is not None:
        score[block.gated.rows] = block.gated.p
    return ItemValues(
        kind="auroc" if path == "auroc" else "auprc",
        items=[block.queries.key(i) for i in rows.tolist()],
        clusters=_posts(block, rows),
        cluster="post",
        first=block.queries.y[rows].astype(np.float64).tolist(),
        second=[None if np.isnan(p) else p for p in score[rows].tolist()],
        definition=definition,
        family=_family(block, path),
    )


def _sums(block: Block, path: str, definition: str) -> ItemValues:
    """What each judged query adds; undefined where the metric leaves it out.

    Queries that are left out are given too: their posts are drawn all the same.
    """
    rows = np.flatnonzero(block.judged)
    sampled = next(m.sampled for m in measures(block) if m.path == path)
    if not isinstance(sampled, Quotient):
        raise TypeError(f"{path} is no sum over queries.")
    size = len(block.queries)
    above, below = np.full(size, np.nan), np.full(size, np.nan)
    above[sampled.rows] = sampled.above
    is_mean = sampled.below is None
    below[sampled.rows] = 1.0 if sampled.below is None else sampled.below
    return ItemValues(
        kind="mean" if is_mean else "ratio",
        items=[block.queries.key(i) for i in rows.tolist()],
        clusters=_posts(block, rows),
        cluster="post",
        first=[None if np.isnan(x) else x for x in above[rows].tolist()],
        second=None
        if is_mean
        else [None if np.isnan(x) else x for x in below[rows].tolist()],
        definition=definition,
        lower_is_better=path == BRIER,
        family=_family(block, path),
    )


def _posts(block: Block, rows: Ints) -> list[str]:
    queries = block.queries
    return [queries.posts[i] for i in queries.post[rows].tolist()]
