"""Three experiments that a leak-free gate must survive, whatever the data.

A scramble of test gold and the removal of the test posts must leave what is said of,
and fitted for, a fold as it is, to the byte. With all gold shuffled there is nothing to
learn, so whoever still does well has seen what he should not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval.gating.gate import GateSpec, Rows
from jobs.evidence_retrieval.gating.nested import (
    FoldResult,
    Folds,
    Nested,
    asked,
    fit_fold,
    nested,
    rows_of,
    splits,
)
from jobs.evidence_retrieval.gating.splits import Split
from jobs.evidence_retrieval.gating.stored import gate_json
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.metrics import delong
from jobs.metrics.columns import Bools, Ints
from runner.scorecard import Finding

STANDARD_ERRORS = 4
"""How far the AUROC of shuffled gold may lie from 0.5: by chance once in 16,000."""

FitFold: TypeAlias = Callable[[GateSpec, Rows, Ints, Split], FoldResult]
FitAll: TypeAlias = Callable[[GateSpec, Rows, Ints, Folds], Nested]


def deep_checks(
    where: str,
    spec: GateSpec,
    rows: Rows,
    y: Ints,
    folds: Folds,
    *,
    fit_one: FitFold = fit_fold,
    fit_all: FitAll = nested,
) -> Iterator[Finding]:
    """What the experiments find.

    Args:
        where: model and configuration, for the findings.
        spec: of the gate.
        rows: queries in canonical order.
        y: 1, 0 or UNKNOWN a row.
        folds: of the posts.
        fit_one: how one fold is fitted.
        fit_all: how all of them are.
    """
    chance = np.random.default_rng(folds.seed)
    for own in splits(folds, rows.posts, y):
        at = f"{where}, fold {own.fold}"
        test = rows_of(rows, own.test)
        before = fit_one(spec, rows, y, own)
        scrambled = _permuted(y, test, chance)
        after = fit_one(spec, rows, scrambled, _split(own.fold, rows, scrambled, folds))
        if _said(after, rows, test) != _said(before, rows, test):
            yield _leak(
                "gold_scramble",
                at,
                "With the gold of the test posts permuted, their predictions change.",
            )
        kept, left = rows.where(~test), y[~test]
        without = fit_one(spec, kept, left, _split(own.fold, kept, left, folds))
        if _learnt(without) != _learnt(before):
            yield _leak(
                "test_removal",
                at,
                "With the test posts taken away, something else is fitted.",
            )
    shuffled = _permuted(y, np.ones(len(y), dtype=np.bool_), chance)
    yield from _after_shuffle(
        where, rows, shuffled, fit_all(spec, rows, shuffled, folds)
    )


def _after_shuffle(where: str, rows: Rows, y: Ints, found: Nested) -> Iterator[Finding]:
    # by fold: pooled, the folds' different prevalences alone move the area off 0.5
    for own in found.folds:
        judged = rows_of(rows, own.split.test) & (y != UNKNOWN)
        judged &= ~np.isnan(found.probability)
        area = delong(y[judged] == 1, found.probability[judged])
        if area is None or own.gate is None:
            continue
        if abs(area.auroc - 0.5) > STANDARD_ERRORS * area.se:
            yield _leak(
                "label_shuffle",
                f"{where}, fold {own.split.fold}",
                f"With all gold shuffled and everything fitted again, AUROC is "
                f"{area.auroc:.4f}, more than {STANDARD_ERRORS} standard errors "
                f"({area.se:.4f}) off 0.5.",
            )


def _split(fold: str, rows: Rows, y: Ints, folds: Folds) -> Split:
    """The split of one fold, made again from what is given."""
    return next(own for own in splits(folds, rows.posts, y) if own.fold == fold)


def _permuted(y: Ints, among: Bools, chance: np.random.Generator) -> Ints:
    """*y* with the judged values *among* some rows in another order."""
    places = np.flatnonzero(among & (y != UNKNOWN))
    permuted = y.copy()
    permuted[places] = y[chance.permutation(places)]
    return permuted


def _said(result: FoldResult, rows: Rows, test: Bools) -> tuple[bytes, ...]:
    own = (column.tobytes() for column in asked(result.gate, rows.where(test)))
    return (*own, _learnt(result))


def _learnt(result: FoldResult) -> bytes:
    fitted = None if result.gate is None else gate_json(result.gate)
    return json.dumps(fitted).encode()


def _leak(code: str, where: str, message: str) -> Finding:
    return Finding(code=code, severity="error", where=where, message=message)
