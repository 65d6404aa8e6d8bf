"""Rules about K, the number of sentences selected for a query."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.evidence_retrieval.consistency.rule import Broken, Rule, View
from jobs.evidence_retrieval.consistency.states import states_in_force
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.metrics.columns import mean
from jobs.metrics.selective import NEG, STATES


def _neg_with_k(view: View) -> Iterator[Broken]:
    k, state = view.prediction.k, states_in_force(view)
    if k is not None and state is not None:
        yield Broken(
            rows=(state == NEG) & (k > 0),
            where="selected_k",
            message="Queries that are skipped (NEG) have sentences selected.",
            values=lambda i: f"NEG with K {k[i]}",
        )


def _shown_without_k(view: View) -> Iterator[Broken]:
    k, state = view.prediction.k, states_in_force(view)
    if k is not None and state is not None:
        yield Broken(
            rows=(state != UNKNOWN)
            & (state != NEG)
            & (k == 0)
            & (view.queries.pool != 0),
            where="selected_k",
            message="Queries that are to be read (not NEG) have no sentence selected.",
            values=lambda i: f"{STATES[state[i]]} with K 0",
        )


def _above_pool(view: View) -> Iterator[Broken]:
    k, pool = view.prediction.k, view.queries.pool
    if k is not None:
        yield Broken(
            rows=(pool != UNKNOWN) & (k > pool),
            where="selected_k",
            message="More sentences are selected than the post has.",
            values=lambda i: f"K {k[i]} of {pool[i]} candidates",
        )


def _without_effect(view: View) -> Iterator[Broken]:
    """A larger share of the mass never needs fewer sentences, and at times more."""
    sweep = view.prediction.sweep
    low, high = min(sweep, default=0.0), max(sweep, default=0.0)
    if low == high:
        return
    rows = (sweep[low] != UNKNOWN) & (sweep[high] != UNKNOWN)
    less, more = (mean(sweep[gamma][rows].tolist()) for gamma in (low, high))
    if less is not None and more is not None and more <= less:
        yield Broken(
            rows=rows,
            where="gamma sweep",
            message=(
                f"Mean K does not grow with gamma: {less} at {low}, {more} at {high}."
            ),
            values=lambda i: f"K {sweep[low][i]} and {sweep[high][i]}",
        )


RULES: tuple[Rule[View], ...] = (
    Rule(code="neg_with_k", severity="warn", broken=_neg_with_k),
    Rule(code="shown_without_k", severity="warn", broken=_shown_without_k),
    Rule(code="k_above_pool", severity="warn", broken=_above_pool),
    Rule(code="gamma_without_effect", severity="warn", broken=_without_effect),
)
