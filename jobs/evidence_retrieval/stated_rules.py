"""States the rules for results that a file has along with its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial

import numpy as np

from jobs.evidence_retrieval.consistency_rules import (
    PredictionRule,
    PredictionView,
    Violation,
    recomputed,
    states_in_force,
)
from jobs.evidence_retrieval.metrics.judged_predictions import compared
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.kit.metrics.columns import Bools, Floats
from jobs.kit.metrics.ranking import evaluate, select
from jobs.kit.metrics.selective import NEG, POS, States

EXACT = 5e-7
"""Six decimals, which rounding to fewer cannot hide."""

TINY = 1e-12
"""Tolerance, so that a half rounded up or down does not count as different."""

RECALL, PRECISION, MRR = "evidence_recall_at_k", "evidence_precision_at_k", "mrr"

DECISIONS: dict[str, Callable[[States], Bools]] = {
    "screening_correct": lambda states: states != NEG,
    "alert_correct": lambda states: states == POS,
}
"""Columns that state whether a decision is correct, and the decision."""


def digits(value: float) -> int:
    """Return the number of decimals of a printed number."""
    _, _, exponent = Decimal(repr(float(value))).as_tuple()
    return max(0, -int(exponent))


def is_share(value: float, parts: int) -> bool:
    """Return whether a printed number can be a whole number of *parts*."""
    return is_printed(round(value * parts) / parts, value)


def is_printed(exact: float, value: float) -> bool:
    """Return whether a printed number is the *exact* one, rounded."""
    return abs(exact - value) <= max(EXACT, 0.5 * 10.0 ** -digits(value) + TINY)


def _column(view: PredictionView, name: str) -> Floats | None:
    return view.prediction.stated_values.get(name)


def _rows(view: PredictionView, checked: Bools, holds: Callable[[int], bool]) -> Bools:
    """Return those of the *checked* rows for which *holds* is false."""
    rows = np.zeros(len(view.queries), dtype=np.bool_)
    for i in np.flatnonzero(checked).tolist():
        rows[i] = not holds(i)
    return rows


def _positive(view: PredictionView, column: Floats) -> Bools:
    rows: Bools = (view.queries.y == 1) & ~np.isnan(column)
    return rows


def _recall_of_gold(view: PredictionView) -> Iterator[Violation]:
    recall, gold = _column(view, RECALL), view.queries.gold
    if recall is None or gold is None:
        return
    counts = np.array([len(uids) for uids in gold], dtype=np.int64)
    checked = _positive(view, recall) & (counts > 0)
    yield Violation(
        code="recall_no_share_of_gold",
        rows=_rows(view, checked, lambda i: is_share(recall[i], int(counts[i]))),
        where=RECALL,
        message="Recall times the number of gold sentences is not a whole number.",
        values=lambda i: f"{recall[i]} x {counts[i]} gold",
    )


def _precision_of_k(view: PredictionView) -> Iterator[Violation]:
    precision, k = _column(view, PRECISION), view.prediction.k
    if precision is None or k is None:
        return
    pool = view.queries.pool
    k_in_pool = np.where(pool == UNKNOWN, k, np.minimum(k, pool))
    checked = _positive(view, precision) & (k_in_pool > 0)
    yield Violation(
        code="precision_no_share_of_k",
        rows=_rows(
            view,
            checked,
            lambda i: (
                is_share(precision[i], int(k[i]))
                or is_share(precision[i], int(k_in_pool[i]))
            ),
        ),
        where=PRECISION,
        message="Precision times K is not a whole number of sentences.",
        values=lambda i: f"{precision[i]} x K {k[i]}",
    )


def _no_reciprocal(view: PredictionView) -> Iterator[Violation]:
    mrr = _column(view, MRR)
    if mrr is None:
        return
    rank = np.round(1 / np.where(mrr > 0, mrr, 1))
    is_exact = (mrr == 0) | (np.abs(1 / np.maximum(rank, 1) - mrr) < EXACT)
    checked = _positive(view, mrr) & ~is_exact
    wrong = _rows(view, checked, lambda i: is_printed(1 / rank[i], mrr[i]))
    yield Violation(
        code="mrr_no_reciprocal",
        rows=wrong,
        where=MRR,
        message="A reciprocal rank is 1 by a whole number; these are not.",
        values=lambda i: f"{mrr[i]} is 1/{1 / mrr[i]:.3f}",
    )
    yield Violation(
        code="mrr_rounded",
        rows=checked & ~wrong,
        where=MRR,
        message="Reciprocal ranks are right only as rounded to the printed digits.",
        values=lambda i: f"{mrr[i]} for 1/{1 / mrr[i]:.0f}",
    )


def _rank_against_recall(view: PredictionView) -> Iterator[Violation]:
    """Check that the first hit is within K exactly if there is evidence within K."""
    recall, mrr, k = _column(view, RECALL), _column(view, MRR), view.prediction.k
    if recall is None or mrr is None or k is None:
        return
    checked = _positive(view, recall) & ~np.isnan(mrr) & (k != UNKNOWN)

    def holds(i: int) -> bool:
        least = 1 / k[i] if k[i] else np.inf
        is_within = mrr[i] >= least or is_printed(least, mrr[i])
        return bool(is_within == (recall[i] > 0))

    yield Violation(
        code="rank_contradicts_recall",
        rows=_rows(view, checked, holds),
        where=MRR,
        message=(
            "Recall above 0 needs a first hit within K, so mrr of at least 1/K, and "
            "recall 0 needs mrr below it."
        ),
        values=lambda i: f"recall {recall[i]} and mrr {mrr[i]} at K {k[i]}",
    )


def _differ(view: PredictionView) -> Iterator[Violation]:
    """Check stated values against those recomputed from gold and lists."""
    stated = {name: _column(view, name) for name in (RECALL, PRECISION, MRR)}
    if all(column is None for column in stated.values()):
        return
    for name, again in _again(view).items():
        if (column := stated[name]) is not None:
            yield _differing(view, name, column, again)


def _again(view: PredictionView) -> dict[str, Floats]:
    """Return the stated ranking results, recomputed from the final list."""
    queries, k = view.queries, view.prediction.k
    lists = view.prediction.lists.get(view.prediction.final)
    if queries.gold is None or lists is None:
        return {}
    rows = np.flatnonzero(queries.y == 1)
    again = {name: np.full(len(queries), np.nan) for name in (RECALL, PRECISION, MRR)}
    done = 0
    for ranked_hits in compared(queries.gold, lists, rows):
        batch_rows = rows[done : done + len(ranked_hits.lengths)]
        done += len(batch_rows)
        again[MRR][batch_rows] = evaluate(ranked_hits, ())[MRR]
        if k is not None:
            selected = select(ranked_hits, np.maximum(k[batch_rows], 0))
            has_gold = ranked_hits.relevant > 0
            again[RECALL][batch_rows] = selected.recall
            again[PRECISION][batch_rows] = np.where(
                has_gold, selected.precision, np.nan
            )
    return again


def _differing(
    view: PredictionView, name: str, column: Floats, again: Floats
) -> Violation:
    checked = _positive(view, column) & ~np.isnan(again)
    if name != MRR and view.prediction.k is not None:
        checked &= view.prediction.k != UNKNOWN
    # a column has one format: next to 0.3333333333333333, 0.5 is not 0.46
    decimals = max((digits(value) for value in column[checked].tolist()), default=0)
    apart = np.abs(column - again)
    return Violation(
        code="stated_differs",
        rows=checked & (apart > max(EXACT, 0.5 * 10.0**-decimals + TINY)),
        where=name,
        message=f"{name} is not what the list and the gold sentences give.",
        values=lambda i: f"{column[i]} stated, {again[i]} from the list",
    )


def _filled_on_negatives(name: str, view: PredictionView) -> Iterator[Violation]:
    column = _column(view, name)
    if column is not None:
        yield Violation(
            code="filled_on_negatives",
            rows=(view.queries.y == 0) & ~np.isnan(column),
            where=name,
            message=(
                "A ranking column is filled on queries without evidence, which are "
                "left out of every figure."
            ),
            values=lambda i: f"{column[i]} where nothing is gold",
        )


def _wrongly_judged(name: str, view: PredictionView) -> Iterator[Violation]:
    """Check stated correctness of decisions against state and label."""
    column, state = _column(view, name), states_in_force(view)
    if column is None or state is None:
        return
    decides = DECISIONS[name]
    wrong = _wrong(view, column, state, decides)
    filled = int((~np.isnan(column) & (state != UNKNOWN)).sum())
    by_thresholds = recomputed(view, view.settings.gate_edge)
    suffix = ""
    if by_thresholds is not None:
        other = int(_wrong(view, column, by_thresholds, decides).sum())
        suffix = f", {other} by p and the thresholds"
    yield Violation(
        code="decision_wrongly_judged",
        rows=wrong,
        where=name,
        message=(
            f"{name} is not what state and truth give: {int(wrong.sum())} of "
            f"{filled} rows{suffix}."
        ),
        values=lambda i: f"{column[i]:g} stated, {1 - column[i]:g} by state and truth",
    )


def _wrong(
    view: PredictionView,
    column: Floats,
    states: States,
    decides: Callable[[States], Bools],
) -> Bools:
    y = view.queries.y
    comparable = ~np.isnan(column) & (states != UNKNOWN) & (y != UNKNOWN)
    wrong: Bools = comparable & (column != (decides(states) == (y == 1)))
    return wrong


STATED_RULES: tuple[PredictionRule, ...] = (
    _recall_of_gold,
    _precision_of_k,
    _no_reciprocal,
    _rank_against_recall,
    _differ,
    *(partial(_filled_on_negatives, name) for name in (RECALL, PRECISION, MRR)),
    *(partial(_wrongly_judged, name) for name in DECISIONS),
)
