"""Evaluates gates by nested folds: a post is judged by a gate that never saw it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.predictions.classifier import CannotFitError, Split, split
from jobs.evidence_retrieval.predictions.fitted_gate import FeatureRows, FittedGate
from jobs.evidence_retrieval.predictions.gate import (
    GateSpec,
    LabelledRows,
    fit,
    reached,
)
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.kit.metrics.columns import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldAssignment:
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
class Nested:
    """All rows, each by its own fold's gate; NaN where a post has no fold."""

    raw: Floats  #: before calibration
    probability: Floats  #: the model's own word where the fold has no gate
    folds: tuple[FoldResult, ...]


def splits(folds: FoldAssignment, posts: Sequence[str], y: Ints) -> Iterator[Split]:
    """The split of each fold; the posts with gold are those that can be learnt from.

    Args:
        folds: of the posts.
        posts: that of each row.
        y: 1, 0 or UNKNOWN a row.
    """
    judged = sorted(
        {post for post, label in zip(posts, y.tolist(), strict=True) if label >= 0}
    )
    for name in folds.names:
        yield split(
            name,
            folds.of,
            judged,
            seed=folds.seed,
            tune_fraction=folds.tune_fraction,
        )


def nested(spec: GateSpec, rows: FeatureRows, y: Ints, folds: FoldAssignment) -> Nested:
    """Every row decided by the gate of its fold.

    Args:
        spec: what to fit.
        rows: queries in canonical order.
        y: 1, 0 or UNKNOWN a row.
        folds: of the posts; a post without a fold is neither learnt from nor decided.
    """
    raw, probability = np.full((2, len(rows)), np.nan)
    results = []
    for fold_split in splits(folds, rows.posts, y):
        result = fit_fold(spec, rows, y, fold_split)
        test = rows_of(rows, fold_split.test)
        raw[test], probability[test] = apply_gate(result.gate, rows.select(test))
        results.append(result)
    return Nested(raw=raw, probability=probability, folds=tuple(results))


def apply_gate(gate: FittedGate | None, rows: FeatureRows) -> tuple[Floats, Floats]:
    """Raw and calibrated probabilities of *rows*; as stated where there is no gate."""
    if gate is None:
        return rows.stated, rows.stated
    return gate.raw(rows), gate.probability(rows)


def fit_fold(
    spec: GateSpec, rows: FeatureRows, y: Ints, fold_split: Split
) -> FoldResult:
    """The gate of one fold; reads the gold of its fitting and tuning posts only."""
    learn = _labelled(rows, y, fold_split.fit)
    tune = _labelled(rows, y, fold_split.tune)
    try:
        gate = fit(spec, learn, tune)
    except CannotFitError as error:
        empty = np.empty(0)
        return FoldResult(
            split=fold_split,
            gate=None,
            reason=str(error),
            on_tune={},
            tune_p=empty,
            tune_y=empty.astype(np.bool_),
        )
    p = gate.probability(tune.rows)
    return FoldResult(
        split=fold_split,
        gate=gate,
        reason="",
        on_tune=reached(tune.y, p, gate.thresholds, spec.edge),
        tune_p=p,
        tune_y=tune.y,
    )


def rows_of(rows: FeatureRows, posts: Sequence[str]) -> Bools:
    """Which rows are of some posts."""
    post_ids = frozenset(posts)
    return np.array([post in post_ids for post in rows.posts], dtype=np.bool_)


def _labelled(rows: FeatureRows, y: Ints, posts: Sequence[str]) -> LabelledRows:
    chosen = rows_of(rows, posts) & (y != UNKNOWN)
    return LabelledRows(rows=rows.select(chosen), y=y[chosen] == 1)
