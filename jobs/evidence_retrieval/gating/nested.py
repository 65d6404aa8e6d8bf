"""The nested evaluation: every post is judged by a gate that never saw it.

The order of things is the point. Rows come without gold. For each fold the gold of the
posts to learn from and of those to tune on is looked up, and only theirs; the gate that
comes out is asked about the fold's own posts, whose gold no function here reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.gating.classifier import CannotFitError
from jobs.evidence_retrieval.gating.gate import (
    FittedGate,
    GateSpec,
    Labelled,
    Rows,
    fit,
)
from jobs.evidence_retrieval.gating.splits import Split, split
from jobs.evidence_retrieval.gating.thresholds import reached
from jobs.metrics import assign
from jobs.metrics.columns import Bools, Floats, Ints
from jobs.metrics.gate import States

UNKNOWN = -1
"""In a column of gold: unjudged; in one of states: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """How posts are divided."""

    names: tuple[str, ...]  #: in display order
    of: Mapping[str, str]  #: fold by post
    seed: int
    tune_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldResult:
    """What one fold's gate is, and how it was come by."""

    split: Split
    gate: FittedGate | None  #: None: there was nothing to learn from
    reason: str  #: why; empty where there is a gate
    on_tune: Mapping[str, float | None]
    tune_p: Floats  #: calibrated, of the tuning rows
    tune_y: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What gates say of each row; NaN and UNKNOWN where there is none."""

    raw: Floats
    probability: Floats
    tau_neg: Floats
    tau_pos: Floats
    state: States

    @classmethod
    def none(cls, n: int) -> Decisions:
        """Of *n* rows, before any gate was asked."""
        return cls(
            raw=np.full(n, np.nan),
            probability=np.full(n, np.nan),
            tau_neg=np.full(n, np.nan),
            tau_pos=np.full(n, np.nan),
            state=np.full(n, UNKNOWN, dtype=np.int8),
        )

    def decide(
        self, chosen: Bools, gate: FittedGate | None, rows: Rows, spec: GateSpec
    ) -> None:
        """Fill in the *chosen* rows; without a gate the model's own word stands."""
        own = rows.where(chosen)
        if gate is None:
            self.raw[chosen] = self.probability[chosen] = own.stated
            return
        p = gate.probability(own)
        taus = gate.thresholds
        self.raw[chosen] = gate.raw(own)
        self.probability[chosen] = p
        self.tau_neg[chosen] = taus.tau_neg
        self.tau_pos[chosen] = taus.tau_pos
        self.state[chosen] = assign(p, taus.tau_neg, taus.tau_pos, edge=spec.edge)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """Decisions of all rows, each by its own fold's gate."""

    decisions: Decisions
    folds: tuple[FoldResult, ...]


def splits(folds: Folds, rows: Rows, y: Ints) -> Iterator[Split]:
    """The split of each fold; the posts with gold are those that can be learnt from."""
    judged = sorted(
        {post for post, own in zip(rows.posts, y.tolist(), strict=True) if own >= 0}
    )
    for name in folds.names:
        yield split(
            name,
            folds.of,
            judged,
            seed=folds.seed,
            tune_fraction=folds.tune_fraction,
        )


def nested(spec: GateSpec, rows: Rows, y: Ints, folds: Folds) -> Nested:
    """Every row decided by the gate of its fold.

    Args:
        spec: what to fit.
        rows: queries in canonical order.
        y: 1, 0 or UNKNOWN a row.
        folds: of the posts; a post without a fold is neither learnt from nor decided.
    """
    decisions = Decisions.none(len(rows))
    results = []
    for own in splits(folds, rows, y):
        result = fit_fold(spec, rows, y, own)
        decisions.decide(rows_of(rows, own.test), result.gate, rows, spec)
        results.append(result)
    return Nested(decisions=decisions, folds=tuple(results))


def fit_fold(spec: GateSpec, rows: Rows, y: Ints, own: Split) -> FoldResult:
    """The gate of one fold; reads the gold of its fitting and tuning posts only."""
    learn = _labelled(rows, y, own.fit)
    tune = _labelled(rows, y, own.tune)
    try:
        gate = fit(spec, learn, tune)
    except CannotFitError as error:
        nothing = np.empty(0)
        return FoldResult(
            split=own,
            gate=None,
            reason=str(error),
            on_tune={},
            tune_p=nothing,
            tune_y=nothing.astype(np.bool_),
        )
    p = gate.probability(tune.rows)
    return FoldResult(
        split=own,
        gate=gate,
        reason="",
        on_tune=reached(tune.y, p, gate.thresholds, spec.edge),
        tune_p=p,
        tune_y=tune.y,
    )


def rows_of(rows: Rows, posts: Sequence[str]) -> Bools:
    """Which rows are of some posts."""
    wanted = frozenset(posts)
    return np.array([post in wanted for post in rows.posts], dtype=np.bool_)


def _labelled(rows: Rows, y: Ints, posts: Sequence[str]) -> Labelled:
    chosen = rows_of(rows, posts) & (y != UNKNOWN)
    return Labelled(rows=rows.where(chosen), y=y[chosen] == 1)
