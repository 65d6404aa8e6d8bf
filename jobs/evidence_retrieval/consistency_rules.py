"""States the rules that rows must satisfy: labels, rankings, K, states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from jobs.evidence_retrieval.queries import UNKNOWN, Predictions, Queries
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.columns import Bools, Floats, Ints, mean
from jobs.kit.metrics.selective import NEG, STATES, Edge, States, assign
from runner.scorecard import Finding

Severity: TypeAlias = Literal["error", "warn", "info"]
"""Impossible, suspicious, or for information."""

SEVERITIES: Mapping[str, Severity] = {
    "incomplete_posts": "warn",
    "positive_without_gold": "warn",
    "negative_with_gold": "error",
    "empty_pool": "info",
    "state_contradicts_thresholds": "error",
    "state_of_other_edge": "warn",
    "thresholds_crossed": "error",
    "thresholds_vary_in_fold": "error",
    "same_thresholds_in_all_folds": "warn",
    "calibration_not_monotone": "error",
    "neg_with_k": "warn",
    "shown_without_k": "warn",
    "k_above_pool": "warn",
    "gamma_without_effect": "warn",
    "recall_no_share_of_gold": "error",
    "precision_no_share_of_k": "error",
    "mrr_no_reciprocal": "error",
    "mrr_rounded": "info",
    "rank_contradicts_recall": "error",
    "stated_differs": "error",
    "filled_on_negatives": "warn",
    "decision_wrongly_judged": "error",
    "gold_not_listed": "info",
    "list_shorter_than_pool": "info",
    "list_longer_than_pool": "error",
    "lists_end_early": "info",
}
"""Severity by the code of each rule for rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionView:
    """Predictions of one model under one configuration, with the labels."""

    queries: Queries
    prediction: Predictions
    settings: EvidenceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Rows that violate a rule."""

    code: str  #: of the rule, one of `SEVERITIES`
    rows: Bools  #: (Q,) mask of the rows
    where: str  #: the column or list
    message: str  #: one sentence
    values: Callable[[int], str]
    """Describes the stated and the expected value of a row, for the example."""

    def findings(self, queries: Queries, name: str) -> Iterator[Finding]:
        """Yield a finding about all rows, if there are any."""
        rows = np.flatnonzero(self.rows)
        if len(rows):
            first = int(rows[0])
            yield Finding(
                code=self.code,
                severity=SEVERITIES[self.code],
                where=f"{name} {self.where}".strip(),
                message=self.message,
                n=len(rows),
                example=f"{queries.key(first)}: {self.values(first)}",
            )


TruthRule: TypeAlias = Callable[[Queries], Iterable[Violation]]
PredictionRule: TypeAlias = Callable[[PredictionView], Iterable[Violation]]
"""Rules that each row must satisfy; a violation for each column that breaks them."""


def _incomplete(queries: Queries) -> Iterator[Violation]:
    """Check that every post has every criterion, so that N is posts x criteria."""
    per_post = np.bincount(queries.post, minlength=len(queries.posts))
    first_of_post = np.zeros(len(queries), dtype=np.bool_)
    first_of_post[np.unique(queries.post, return_index=True)[1]] = True
    posts, criteria = len(queries.posts), len(queries.criteria)
    yield Violation(
        code="incomplete_posts",
        rows=first_of_post & (per_post[queries.post] < criteria),
        where="queries",
        message=(
            f"There are {len(queries)} queries, but {posts} posts x {criteria} "
            f"criteria are {posts * criteria}; posts without every criterion are left "
            "out of figures by post."
        ),
        values=lambda i: f"{per_post[queries.post[i]]} of {criteria} criteria",
    )


def _gold_and_truth(queries: Queries) -> Iterator[Violation]:
    gold = queries.gold
    if gold is None:
        return
    has_gold = np.array([bool(uids) for uids in gold], dtype=np.bool_)
    yield Violation(
        code="positive_without_gold",
        rows=(queries.y == 1) & ~has_gold,
        where="gold",
        message=(
            "Queries with evidence name no gold sentence; they count 0 in ranking "
            "figures."
        ),
        values=lambda _: "has_evidence is 1 and gold is empty",
    )
    yield Violation(
        code="negative_with_gold",
        rows=(queries.y == 0) & has_gold,
        where="gold",
        message="Queries without evidence name gold sentences.",
        values=lambda i: f"has_evidence is 0 and gold is {'|'.join(gold[i])}",
    )


def _empty_pools(queries: Queries) -> Iterator[Violation]:
    yield Violation(
        code="empty_pool",
        rows=queries.pool == 0,
        where="pool",
        message="Posts without sentences cannot be ranked.",
        values=lambda _: "0 candidates",
    )


TRUTH_RULES: tuple[TruthRule, ...] = (_incomplete, _gold_and_truth, _empty_pools)


def _gold_not_listed(view: PredictionView) -> Iterator[Violation]:
    gold = view.queries.gold
    if gold is not None:
        for name, lists in view.prediction.lists.items():
            yield _unlisted(name, gold, lists)


def _unlisted(
    name: str, gold: Sequence[Sequence[str]], lists: Sequence[Sequence[str]]
) -> Violation:
    missing = {
        i: uids
        for i, gold_uids in enumerate(gold)
        if gold_uids and (uids := set(gold_uids).difference(lists[i]))
    }
    total = sum(map(len, missing.values()))
    rows = np.zeros(len(gold), dtype=np.bool_)
    rows[list(missing)] = True
    return Violation(
        code="gold_not_listed",
        rows=rows,
        where=name,
        message=f"{total} gold sentences are not in their list at all, at any rank.",
        values=lambda i: (
            f"{len(missing[i])} of {len(set(gold[i]))} missing, such as "
            f"{min(missing[i])}"
        ),
    )


def _off_the_pool(view: PredictionView) -> Iterator[Violation]:
    pool, lists = view.queries.pool, _lengths(view)
    for name, lengths in lists.items():
        yield _off_pool("list_shorter_than_pool", name, pool, lengths, lengths < pool)
    for name, lengths in lists.items():
        yield _off_pool("list_longer_than_pool", name, pool, lengths, lengths > pool)


def _off_pool(
    code: str, name: str, pool: Ints, lengths: Ints, rows: Bools
) -> Violation:
    relation = "fewer" if code == "list_shorter_than_pool" else "more"
    return Violation(
        code=code,
        rows=(pool != UNKNOWN) & rows,
        where=name,
        message=f"Lists rank {relation} sentences than the post has.",
        values=lambda i: f"{lengths[i]} of {pool[i]} candidates",
    )


def _end_early(view: PredictionView) -> Iterator[Violation]:
    """Check that lists reach each cut-off: else recall@20 equals recall@10."""
    for name, lengths in _lengths(view).items():
        longest = int(lengths.max(initial=0))
        beyond = [k for k in sorted(view.settings.k_values) if k > longest]
        if beyond:
            yield _ending(name, lengths, longest, beyond)


def _ending(name: str, lengths: Ints, longest: int, beyond: Sequence[int]) -> Violation:
    cutoffs = ", ".join(map(str, beyond))
    return Violation(
        code="lists_end_early",
        rows=lengths == longest,
        where=name,
        message=(
            f"Lists end at {longest}: figures at {cutoffs} equal those at "
            f"{longest} for that reason alone."
        ),
        values=lambda _: f"{longest} sentences",
    )


def _lengths(view: PredictionView) -> dict[str, Ints]:
    return {
        name: np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        for name, lists in view.prediction.lists.items()
    }


RANKING_RULES: tuple[PredictionRule, ...] = (
    _gold_not_listed,
    _off_the_pool,
    _end_early,
)


TOLERANCE = 1e-9
"""Tolerance for probabilities that a file rounds."""


def recomputed(view: PredictionView, edge: Edge) -> States | None:
    """Return states by probability and thresholds; UNKNOWN without them."""
    p, low, high = view.prediction.prob, *_thresholds(view)
    if p is None or low is None or high is None:
        return None
    rows = ~(np.isnan(p) | np.isnan(low) | np.isnan(high)) & ~(low > high)
    states = np.full(len(p), UNKNOWN, dtype=np.int8)
    states[rows] = assign(p[rows], low[rows], high[rows], edge=edge)
    return states


def states_in_force(view: PredictionView) -> States | None:
    """Return the states of the file, else those that follow from the thresholds."""
    if view.prediction.state is not None:
        return view.prediction.state
    return recomputed(view, view.settings.gate_edge)


def _thresholds(view: PredictionView) -> tuple[Floats | None, Floats | None]:
    return view.prediction.tau_neg, view.prediction.tau_pos


def _states_and_thresholds(view: PredictionView) -> Iterator[Violation]:
    p, low, high = view.prediction.prob, *_thresholds(view)
    stated, edge = view.prediction.state, view.settings.gate_edge
    other: Edge = "le" if edge == "lt" else "lt"
    state, by_other = recomputed(view, edge), recomputed(view, other)
    if stated is None or p is None or low is None or high is None:
        return
    if state is None or by_other is None:
        return

    def contradicted(states: States) -> Bools:
        both = (stated != UNKNOWN) & (states != UNKNOWN)
        rows: Bools = both & (stated != states)
        return rows

    def values(i: int) -> str:
        return (
            f"{STATES[stated[i]]} stated, {STATES[state[i]]} by p {p[i]} and "
            f"thresholds {low[i]} and {high[i]}"
        )

    rows = contradicted(state)
    counts = {edge: int(rows.sum()), other: int(contradicted(by_other).sum())}
    if all(counts.values()):  # neither kind of edge explains every state
        yield Violation(
            code="state_contradicts_thresholds",
            rows=rows,
            where="state",
            message=(
                f"{counts['lt']} of {len(view.queries)} states do not follow from p "
                "and the thresholds where NEG is p < tau_neg, "
                f"{counts['le']} where it is p <= tau_neg."
            ),
            values=values,
        )
    else:
        # no violation if this kind of edge explains them too
        yield Violation(
            code="state_of_other_edge",
            rows=rows,
            where="state",
            message=(
                f"States at a threshold follow the edge rule {other}, not "
                f"{edge}, which this scoring uses."
            ),
            values=values,
        )


def _crossed(view: PredictionView) -> Iterator[Violation]:
    low, high = _thresholds(view)
    if low is not None and high is not None:
        yield Violation(
            code="thresholds_crossed",
            rows=low > high,
            where="tau_neg",
            message="tau_neg is above tau_pos, so no state can be assigned.",
            values=lambda i: f"tau_neg {low[i]}, tau_pos {high[i]}",
        )


def _varies_in_fold(
    name: Literal["tau_neg", "tau_pos"], view: PredictionView
) -> Iterator[Violation]:
    column: Floats | None = getattr(view.prediction, name)
    if column is None:
        return
    first = _first_by_fold(view, column)
    yield Violation(
        code="thresholds_vary_in_fold",
        rows=~(np.isnan(column) | np.isnan(first)) & (column != first),
        where=name,
        message=f"{name} varies within a fold, which has one pair of thresholds.",
        values=lambda i: f"{column[i]}, but {first[i]} on the fold's first row",
    )


def _same_everywhere(view: PredictionView) -> Iterator[Violation]:
    """Check that thresholds differ between folds, as fitted ones do."""
    low, high = _thresholds(view)
    if low is None or high is None:
        return
    folds = view.queries.fold
    rows = (folds != UNKNOWN) & ~np.isnan(low) & ~np.isnan(high)
    has_folds = len(np.unique(folds[rows])) > 1
    firsts = (_first_by_fold(view, column)[rows] for column in (low, high))
    if has_folds and all(len(np.unique(first)) == 1 for first in firsts):
        yield Violation(
            code="same_thresholds_in_all_folds",
            rows=rows,
            where="tau_neg, tau_pos",
            message=(
                "The thresholds are the same in all folds; fitted ones would differ, "
                "so these were set by hand or on all data at once."
            ),
            values=lambda i: f"{low[i]} and {high[i]}",
        )


def _first_by_fold(view: PredictionView, column: Floats) -> Floats:
    """Return the first value of *column* in a row's fold; NaN outside of folds."""
    folds = view.queries.fold
    first = np.full(len(column), np.nan)
    for fold in np.unique(folds[folds != UNKNOWN]):
        fold_rows = np.flatnonzero((folds == fold) & ~np.isnan(column))
        if len(fold_rows):
            first[folds == fold] = column[fold_rows[0]]
    return first


def _not_monotone(view: PredictionView) -> Iterator[Violation]:
    """Check that calibration keeps the order of raw probabilities."""
    raw, p = view.prediction.prob_raw, view.prediction.prob
    if raw is None or p is None:
        return
    rows = np.zeros(len(p), dtype=np.bool_)
    for fold in np.unique(view.queries.fold):
        fold_rows = np.flatnonzero(
            (view.queries.fold == fold) & ~np.isnan(raw) & ~np.isnan(p)
        )
        rows[_falling(fold_rows, raw, p)] = True
    yield Violation(
        code="calibration_not_monotone",
        rows=rows,
        where="p",
        message=(
            "Calibrated probabilities do not rise with the raw ones within a fold, "
            "which no single monotone calibration gives."
        ),
        values=lambda i: f"{p[i]} from raw {raw[i]}, below that of a smaller raw value",
    )


def _falling(rows: Ints, raw: Floats, p: Floats) -> Ints:
    """Return the rows whose p is below that of a row with a smaller raw value."""
    order = rows[np.lexsort((p[rows], raw[rows]))]
    if not len(order):
        return order
    highest = np.maximum.accumulate(p[order])
    starts = np.searchsorted(raw[order], raw[order], side="left")
    before = np.where(starts > 0, highest[starts - 1], -np.inf)
    return order[p[order] < before - TOLERANCE]


STATE_RULES: tuple[PredictionRule, ...] = (
    _states_and_thresholds,
    _crossed,
    partial(_varies_in_fold, "tau_neg"),
    partial(_varies_in_fold, "tau_pos"),
    _same_everywhere,
    _not_monotone,
)


def _k_and_state(view: PredictionView) -> Iterator[Violation]:
    k, state = view.prediction.k, states_in_force(view)
    if k is None or state is None:
        return
    yield Violation(
        code="neg_with_k",
        rows=(state == NEG) & (k > 0),
        where="selected_k",
        message="Queries that are skipped (NEG) have sentences selected.",
        values=lambda i: f"NEG with K {k[i]}",
    )
    is_read = (state != UNKNOWN) & (state != NEG)
    yield Violation(
        code="shown_without_k",
        rows=is_read & (k == 0) & (view.queries.pool != 0),
        where="selected_k",
        message="Queries that are to be read (not NEG) have no sentence selected.",
        values=lambda i: f"{STATES[state[i]]} with K 0",
    )


def _above_pool(view: PredictionView) -> Iterator[Violation]:
    k, pool = view.prediction.k, view.queries.pool
    if k is not None:
        yield Violation(
            code="k_above_pool",
            rows=(pool != UNKNOWN) & (k > pool),
            where="selected_k",
            message="More sentences are selected than the post has.",
            values=lambda i: f"K {k[i]} of {pool[i]} candidates",
        )


def _without_effect(view: PredictionView) -> Iterator[Violation]:
    """Check that mean K grows with gamma, the share of the mass."""
    sweep = view.prediction.sweep
    low, high = min(sweep, default=0.0), max(sweep, default=0.0)
    if low == high:
        return
    rows = (sweep[low] != UNKNOWN) & (sweep[high] != UNKNOWN)
    less, more = (mean(sweep[gamma][rows].tolist()) for gamma in (low, high))
    if less is not None and more is not None and more <= less:
        yield Violation(
            code="gamma_without_effect",
            rows=rows,
            where="gamma sweep",
            message=(
                f"Mean K does not grow with gamma: {less} at {low}, {more} at {high}."
            ),
            values=lambda i: f"K {sweep[low][i]} and {sweep[high][i]}",
        )


SELECTION_RULES: tuple[PredictionRule, ...] = (
    _k_and_state,
    _above_pool,
    _without_effect,
)
