"""Rules about probabilities, thresholds and the states that follow from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.evidence_retrieval.consistency.rule import Broken, Rule, View
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.metrics.columns import Bools, Floats, Ints
from jobs.metrics.selective import STATES, Edge, States, assign

TOLERANCE = 1e-9
"""Of probabilities that a file prints with few digits."""


def recomputed(view: View, edge: Edge) -> States | None:
    """The state of each row by its probability and thresholds; UNKNOWN without them."""
    p, low, high = view.prediction.prob, *_thresholds(view)
    if p is None or low is None or high is None:
        return None
    rows = ~(np.isnan(p) | np.isnan(low) | np.isnan(high)) & ~(low > high)
    states = np.full(len(p), UNKNOWN, dtype=np.int8)
    states[rows] = assign(p[rows], low[rows], high[rows], edge=edge)
    return states


def states_in_force(view: View) -> States | None:
    """The file's own states, else those that follow from the thresholds."""
    if view.prediction.state is not None:
        return view.prediction.state
    return recomputed(view, view.settings.gate_edge)


def _thresholds(view: View) -> tuple[Floats | None, Floats | None]:
    return view.prediction.tau_neg, view.prediction.tau_pos


def _contradicted(view: View) -> dict[Edge, Bools]:
    """Rows whose stated state is not the recomputed one, under either edge."""
    stated = view.prediction.state
    found: dict[Edge, Bools] = {}
    edges: tuple[Edge, ...] = ("lt", "le")
    for edge in edges:
        state = recomputed(view, edge)
        if stated is not None and state is not None:
            found[edge] = (stated != UNKNOWN) & (state != UNKNOWN) & (stated != state)
    return found


def _contradict_thresholds(view: View) -> Iterator[Broken]:
    found = _contradicted(view)
    if not found or not all(rows.any() for rows in found.values()):
        return  # one of the two edges explains every state
    lt, le = (int(found[edge].sum()) for edge in ("lt", "le"))
    yield Broken(
        rows=found[view.settings.gate_edge],
        where="state",
        message=(
            f"{lt} of {len(view.queries)} states do not follow from p and the "
            f"thresholds where NEG is p < tau_neg, {le} where it is p <= tau_neg."
        ),
        values=lambda i: _said(view, i),
    )


def _other_edge(view: View) -> Iterator[Broken]:
    found = _contradicted(view)
    edge = view.settings.gate_edge
    other: Edge = "le" if edge == "lt" else "lt"
    if found and not found[other].any():
        yield Broken(
            rows=found[edge],
            where="state",
            message=(
                f"States at a threshold follow the edge rule {other}, not {edge}, "
                "which figures here go by."
            ),
            values=lambda i: _said(view, i),
        )


def _said(view: View, i: int) -> str:
    """A row's state and what it should be by its own numbers."""
    p, low, high = view.prediction.prob, *_thresholds(view)
    state = recomputed(view, view.settings.gate_edge)
    stated = view.prediction.state
    if p is None or low is None or high is None or state is None or stated is None:
        return ""
    return (
        f"{STATES[stated[i]]} stated, {STATES[state[i]]} by p {p[i]} and thresholds "
        f"{low[i]} and {high[i]}"
    )


def _crossed(view: View) -> Iterator[Broken]:
    low, high = _thresholds(view)
    if low is not None and high is not None:
        yield Broken(
            rows=low > high,
            where="tau_neg",
            message="tau_neg lies above tau_pos, so that no state can be told.",
            values=lambda i: f"tau_neg {low[i]}, tau_pos {high[i]}",
        )


def _vary_in_fold(view: View) -> Iterator[Broken]:
    for name, column in zip(("tau_neg", "tau_pos"), _thresholds(view), strict=True):
        if column is not None:
            yield _varying(name, column, _first_by_fold(view, column))


def _varying(name: str, column: Floats, first: Floats) -> Broken:
    return Broken(
        rows=~(np.isnan(column) | np.isnan(first)) & (column != first),
        where=name,
        message=f"{name} varies within a fold, which has one pair of thresholds.",
        values=lambda i: f"{column[i]}, but {first[i]} on the fold's first row",
    )


def _same_everywhere(view: View) -> Iterator[Broken]:
    """Fitted thresholds differ a little from fold to fold; constants do not."""
    low, high = _thresholds(view)
    if low is None or high is None:
        return
    folds = view.queries.fold
    rows = (folds != UNKNOWN) & ~np.isnan(low) & ~np.isnan(high)
    has_folds = len(np.unique(folds[rows])) > 1
    firsts = (_first_by_fold(view, column)[rows] for column in (low, high))
    if has_folds and all(len(np.unique(first)) == 1 for first in firsts):
        yield Broken(
            rows=rows,
            where="tau_neg, tau_pos",
            message=(
                "The thresholds are the same in all folds; fitted ones would differ, "
                "so these were set by hand or on all data at once."
            ),
            values=lambda i: f"{low[i]} and {high[i]}",
        )


def _first_by_fold(view: View, column: Floats) -> Floats:
    """The first value that a row's fold has in *column*; NaN outside of any fold."""
    folds = view.queries.fold
    first = np.full(len(column), np.nan)
    for fold in np.unique(folds[folds != UNKNOWN]):
        own = np.flatnonzero((folds == fold) & ~np.isnan(column))
        if len(own):
            first[folds == fold] = column[own[0]]
    return first


def _not_monotone(view: View) -> Iterator[Broken]:
    """Isotonic and Platt calibration keep the order of raw probabilities."""
    raw, p = view.prediction.prob_raw, view.prediction.prob
    if raw is None or p is None:
        return
    rows = np.zeros(len(p), dtype=np.bool_)
    for fold in np.unique(view.queries.fold):
        own = np.flatnonzero(
            (view.queries.fold == fold) & ~np.isnan(raw) & ~np.isnan(p)
        )
        rows[_falling(own, raw, p)] = True
    yield Broken(
        rows=rows,
        where="p",
        message=(
            "Calibrated probabilities do not rise with the raw ones within a fold, "
            "which no single monotone calibration gives."
        ),
        values=lambda i: f"{p[i]} from raw {raw[i]}, below that of a smaller raw value",
    )


def _falling(rows: Ints, raw: Floats, p: Floats) -> Ints:
    """Those whose p lies below that of a row with a smaller raw value."""
    order = rows[np.lexsort((p[rows], raw[rows]))]
    if not len(order):
        return order
    highest = np.maximum.accumulate(p[order])
    starts = np.searchsorted(raw[order], raw[order], side="left")
    before = np.where(starts > 0, highest[starts - 1], -np.inf)
    return order[p[order] < before - TOLERANCE]


RULES: tuple[Rule[View], ...] = (
    Rule(
        code="state_contradicts_thresholds",
        severity="error",
        broken=_contradict_thresholds,
    ),
    Rule(code="state_of_other_edge", severity="warn", broken=_other_edge),
    Rule(code="thresholds_crossed", severity="error", broken=_crossed),
    Rule(code="thresholds_vary_in_fold", severity="error", broken=_vary_in_fold),
    Rule(code="same_thresholds_in_all_folds", severity="warn", broken=_same_everywhere),
    Rule(code="calibration_not_monotone", severity="error", broken=_not_monotone),
)
