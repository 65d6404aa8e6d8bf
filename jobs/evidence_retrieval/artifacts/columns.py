"""Columns of one model's per-query file, a value for every query of the sheet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.queries import SCORED, UNJUDGED, UNKNOWN
from jobs.metrics.columns import Floats, Ints
from jobs.metrics.selective import NEG, POS, STATES, States
from runner.scorecard import Cell

PER_QUERY = (
    "fold_id",
    "post_id",
    "criterion_id",
    "p4_prob_raw",
    "p4_prob_calibrated",
    "has_evidence_gold",
    "state",
    "tau_neg",
    "tau_pos",
    "n_candidates",
    "selected_k",
    "evidence_recall_at_k",
    "evidence_precision_at_k",
    "mrr",
    "screening_correct",
    "alert_correct",
    "gold_sent_uids",
    "model",
    "config",
    "n_gold",
    "status",
)
"""Those of the prediction format, then what makes it complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerQuery:
    """What stands in a row beside the sheet's own columns."""

    block: Block
    state: States
    recall: Floats
    precision: Floats
    mrr: Floats


def per_query(block: Block) -> PerQuery:
    """The measured columns; the ranking ones are undefined on negatives."""
    n = len(block.queries)
    state: States = np.full(n, UNKNOWN, dtype=np.int8)
    if block.prediction.state is not None:
        state[:] = block.prediction.state
    if block.stated is not None:
        state[block.stated.rows] = block.stated.state
    chosen, final = block.chosen, block.final
    found: dict[str, Floats] = {}
    for name, own in (
        ("evidence_recall_at_k", chosen and (chosen.found, chosen.recall)),
        ("evidence_precision_at_k", chosen and (chosen.found, chosen.precision)),
        ("mrr", final and (final.rows, final.values["mrr"])),
    ):
        column = np.full(n, np.nan)
        rows, values = own or block.given.get(name) or _nothing()
        if not len(rows):
            rows, values = block.given.get(name) or _nothing()
        column[rows] = values
        found[name] = column
    return PerQuery(
        block=block,
        state=state,
        recall=found["evidence_recall_at_k"],
        precision=found["evidence_precision_at_k"],
        mrr=found["mrr"],
    )


def _nothing() -> tuple[Ints, Floats]:
    return np.empty(0, dtype=np.int64), np.empty(0)


def rows(columns: PerQuery) -> Iterator[tuple[Cell, ...]]:
    """The lines of the file, in the sheet's order."""
    block = columns.block
    queries, said = block.queries, block.prediction
    for i in range(len(queries)):
        y, state = int(queries.y[i]), int(columns.state[i])
        is_known = UNKNOWN not in {y, state}
        gold = queries.gold[i] if queries.gold is not None else None
        fold = int(queries.fold[i])
        status = said.status[i]
        yield (
            queries.folds[fold] if fold != UNKNOWN else None,
            queries.posts[queries.post[i]],
            queries.criteria[queries.criterion[i]],
            _float(said.prob_raw, i),
            _float(said.prob, i),
            None if y == UNKNOWN else y,
            None if state == UNKNOWN else STATES[state],
            _float(said.tau_neg, i),
            _float(said.tau_pos, i),
            _int(queries.pool, i),
            _int(said.k, i),
            _float(columns.recall, i),
            _float(columns.precision, i),
            _float(columns.mrr, i),
            int((state != NEG) == (y == 1)) if is_known else None,
            int((state == POS) == (y == 1)) if is_known else None,
            None if gold is None else "|".join(gold),
            said.model,
            said.config,
            None if gold is None else len(gold),
            UNJUDGED if y == UNKNOWN and status == SCORED else status,
        )


def _float(column: Floats | None, i: int) -> float | None:
    if column is None or math.isnan(column[i]):
        return None
    return float(column[i])


def _int(column: Ints | None, i: int) -> int | None:
    if column is None or column[i] == UNKNOWN:
        return None
    return int(column[i])
