"""Runs the leakage checks of a run, with experiments on scrambled gold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.leakage import (
    duplicate_texts,
    foreign_candidates,
    gold_features,
    gold_in_instructions,
    leak,
    leak_check,
    shared_posts,
    thresholds_from_test,
)
from jobs.evidence_retrieval.predictions.classifier import Split
from jobs.evidence_retrieval.predictions.config_predictions import ConfigPredictions
from jobs.evidence_retrieval.predictions.fitted_gate import FeatureRows, gate_json
from jobs.evidence_retrieval.predictions.fold_gates import (
    GateOutput,
    Grid,
    choose,
)
from jobs.evidence_retrieval.predictions.gate import (
    FoldAssignment,
    FoldResult,
    GateSpec,
    Nested,
    apply_gate,
    fit_fold,
    nested,
    rows_of,
    splits,
)
from jobs.evidence_retrieval.queries import UNKNOWN, LeakCheck, Queries
from jobs.kit.metrics import delong
from jobs.kit.metrics.columns import Bools, Ints
from runner.scorecard import Finding

STANDARD_ERRORS = 4
"""Allowed distance from 0.5 of the AUROC of shuffled gold: by chance 1 in 16,000."""


def deep_checks(
    where: str,
    spec: GateSpec,
    rows: FeatureRows,
    y: Ints,
    folds: FoldAssignment,
) -> Iterator[Finding]:
    """Yield the findings of the experiments on a gate.

    Args:
        where: model and configuration, for the findings.
        spec: specification of the gate.
        rows: queries in canonical order.
        y: 1, 0 or UNKNOWN per row.
        folds: folds of the posts.
    """
    chance = np.random.default_rng(folds.seed)
    for split in splits(folds, rows.posts, y):
        at = f"{where}, fold {split.fold}"
        test = rows_of(rows, split.test)
        before = fit_fold(spec, rows, y, split)
        scrambled = _permuted(y, test, chance)
        after = fit_fold(
            spec, rows, scrambled, _split(split.fold, rows, scrambled, folds)
        )
        if _output_bytes(after, rows, test) != _output_bytes(before, rows, test):
            yield leak(
                "gold_scramble",
                at,
                "With the gold of the test posts permuted, their predictions change.",
            )
        remaining, left = rows.select(~test), y[~test]
        without = fit_fold(
            spec, remaining, left, _split(split.fold, remaining, left, folds)
        )
        if _learnt(without) != _learnt(before):
            yield leak(
                "test_removal",
                at,
                "With the test posts taken away, something else is fitted.",
            )
    shuffled = _permuted(y, np.ones(len(y), dtype=np.bool_), chance)
    yield from _after_shuffle(
        where, rows, shuffled, nested(spec, rows, shuffled, folds)
    )


def _after_shuffle(
    where: str, rows: FeatureRows, y: Ints, nested_fit: Nested
) -> Iterator[Finding]:
    # by fold: over all, the prevalences of the folds alone would move the area off 0.5
    for fold_result in nested_fit.folds:
        judged = rows_of(rows, fold_result.split.test) & (y != UNKNOWN)
        judged &= ~np.isnan(nested_fit.probability)
        area = delong(y[judged] == 1, nested_fit.probability[judged])
        if area is None or fold_result.gate is None:
            continue
        if abs(area.auroc - 0.5) > STANDARD_ERRORS * area.se:
            yield leak(
                "label_shuffle",
                f"{where}, fold {fold_result.split.fold}",
                f"With all gold shuffled and everything fitted again, AUROC is "
                f"{area.auroc:.4f}, more than {STANDARD_ERRORS} standard errors "
                f"({area.se:.4f}) off 0.5.",
            )


def _split(fold: str, rows: FeatureRows, y: Ints, folds: FoldAssignment) -> Split:
    """Return the split of one fold, computed again."""
    return next(split for split in splits(folds, rows.posts, y) if split.fold == fold)


def _permuted(y: Ints, among: Bools, chance: np.random.Generator) -> Ints:
    """Shuffle the judged values of *y* within the rows of *among*."""
    indices = np.flatnonzero(among & (y != UNKNOWN))
    permuted = y.copy()
    permuted[indices] = y[chance.permutation(indices)]
    return permuted


def _output_bytes(
    result: FoldResult, rows: FeatureRows, test: Bools
) -> tuple[bytes, ...]:
    columns = (
        column.tobytes() for column in apply_gate(result.gate, rows.select(test))
    )
    return (*columns, _learnt(result))


def _learnt(result: FoldResult) -> bytes:
    fitted = None if result.gate is None else gate_json(result.gate)
    return json.dumps(fitted).encode()


def choice_checks(
    where: str,
    grid: Grid,
    queries: Queries,
    splits: Sequence[Split],
) -> Iterator[Finding]:
    """Yield the findings of the experiments on a choice.

    Args:
        where: model and configuration, for the findings.
        grid: the candidates of the choice.
        queries: queries with gold labels.
        splits: splits of the folds.
    """
    for split in splits:
        before = choose(grid, queries, split)
        test_posts = frozenset(split.test)
        tested = [
            i
            for i, post in enumerate(queries.post)
            if queries.posts[post] in test_posts
        ]
        for code, action, changed in (
            ("gold_scramble", "permuted", _reversed(queries, tested)),
            ("test_removal", "taken away", _removed(queries, tested)),
        ):
            if choose(grid, changed, split) != before:
                yield leak(
                    code,
                    f"{where}, fold {split.fold}",
                    f"With the gold of the test posts {action}, the fold's choice from "
                    "a grid changes.",
                )


def _reversed(queries: Queries, tested: Sequence[int]) -> Queries:
    """Reverse the gold of the tested queries."""
    y = queries.y.copy()
    y[list(tested)] = y[list(reversed(tested))]
    if queries.gold is None:
        return replace(queries, y=y)
    gold = [*queries.gold]
    for i, other in zip(tested, reversed(tested), strict=True):
        gold[i] = queries.gold[other]
    return replace(queries, y=y, gold=gold)


def _removed(queries: Queries, tested: Sequence[int]) -> Queries:
    y = queries.y.copy()
    y[list(tested)] = UNKNOWN
    return replace(queries, y=y)


def leak_checks(
    dataset: EvidenceDataset,
    queries: Queries,
    decided: Sequence[ConfigPredictions],
    folds: FoldAssignment,
) -> tuple[LeakCheck, ...]:
    """Return the cheap checks, and the expensive ones if the settings request them."""
    fitted = tuple(_fitted(decided))
    without_gold = "" if dataset.gold else "there is no gold"
    without_gate = "" if fitted else "no gate was fitted"
    on_request = "" if dataset.settings.deep_checks else "needs --deep-checks"
    return (
        leak_check(
            "duplicate post texts across folds",
            duplicate_texts(dataset.posts, folds.of),
            not_checked="" if folds.of else "there are no folds",
        ),
        leak_check(
            "gold sentences in the instructions of prompts",
            gold_in_instructions(dataset, dataset.prompts.instructions()),
            not_checked=without_gold,
        ),
        leak_check(
            "candidates of another post",
            foreign_candidates(
                dataset.posts, queries, (one.predictions for one in decided)
            ),
        ),
        leak_check(
            "posts shared by the test, tuning and fitting parts",
            chain.from_iterable(
                shared_posts(where, [fold.split for fold in gated.result.folds])
                for where, gated in fitted
            ),
            not_checked=without_gate,
        ),
        leak_check(
            "features that are the gold",
            chain.from_iterable(
                gold_features(where, gated.of.rows, gated.y) for where, gated in fitted
            ),
            not_checked=without_gate,
        ),
        leak_check(
            "thresholds chosen on test posts",
            chain.from_iterable(
                thresholds_from_test(
                    where, gated.spec, gated.of.rows, gated.y, gated.result
                )
                for where, gated in fitted
            ),
            not_checked=without_gate,
        ),
        leak_check(
            "predictions under scrambled, removed and shuffled gold",
            _deep(queries, decided, fitted, folds),
            not_checked=without_gold or on_request,
        ),
    )


def _fitted(decided: Sequence[ConfigPredictions]) -> Iterator[tuple[str, GateOutput]]:
    """Yield each fitted gate once; configurations that share one share its leaks."""
    seen = set()
    for config_predictions in decided:
        for gated in config_predictions.gates.values():
            if gated.result.folds and id(gated) not in seen:
                seen.add(id(gated))
                yield config_predictions.where, gated


def _deep(
    queries: Queries,
    decided: Sequence[ConfigPredictions],
    fitted: Sequence[tuple[str, GateOutput]],
    folds: FoldAssignment,
) -> Iterator[Finding]:
    for where, gated in fitted:
        yield from deep_checks(where, gated.spec, gated.of.rows, gated.y, folds)
    for config_predictions in decided:
        if config_predictions.grid is not None:
            splits = [choice.split for choice in config_predictions.chosen]
            yield from choice_checks(
                config_predictions.where, config_predictions.grid, queries, splits
            )
