"""The leakage checks of a run of our own, over everything that was predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.gating.deep_checks import deep_checks
from jobs.evidence_retrieval.gating.nested import Folds
from jobs.evidence_retrieval.leakage import (
    duplicate_texts,
    foreign_candidates,
    gold_features,
    gold_in_instructions,
    looked,
    shared_posts,
    thresholds_from_test,
)
from jobs.evidence_retrieval.predicting.choice_checks import choice_checks
from jobs.evidence_retrieval.predicting.deciding import Decided
from jobs.evidence_retrieval.predicting.gated import Gated
from jobs.evidence_retrieval.queries import LeakCheck, Queries
from runner.scorecard import Finding

NO_GOLD = "there is no gold"
NO_FOLDS = "there are no folds"
NO_GATE = "no gate was fitted"
ON_REQUEST = "needs --deep-checks"


def leaks(
    dataset: Dataset, queries: Queries, decided: Sequence[Decided], folds: Folds
) -> tuple[LeakCheck, ...]:
    """What the cheap checks find, and the expensive ones where the settings ask."""
    fitted = tuple(_fitted(decided))
    is_deep = dataset.settings.deep_checks
    without_gold = "" if dataset.gold else NO_GOLD
    without_gate = "" if fitted else NO_GATE
    return (
        looked(
            "duplicate post texts across folds",
            duplicate_texts(dataset.posts, folds.of),
            not_checked="" if folds.of else NO_FOLDS,
        ),
        looked(
            "gold sentences in the instructions of prompts",
            gold_in_instructions(dataset, dataset.prompts.instructions()),
            not_checked=without_gold,
        ),
        looked(
            "candidates of another post",
            foreign_candidates(
                dataset.posts, queries, (each.predictions for each in decided)
            ),
        ),
        looked(
            "posts shared by the test, tuning and fitting parts",
            (
                found
                for where, own in fitted
                for found in shared_posts(where, [f.split for f in own.result.folds])
            ),
            not_checked=without_gate,
        ),
        looked(
            "features that are the gold",
            (
                found
                for where, own in fitted
                for found in gold_features(where, own.of.rows, own.y)
            ),
            not_checked=without_gate,
        ),
        looked(
            "thresholds chosen on test posts",
            (
                found
                for where, own in fitted
                for found in thresholds_from_test(
                    where, own.spec, own.of.rows, own.y, own.result
                )
            ),
            not_checked=without_gate,
        ),
        looked(
            "predictions under scrambled, removed and shuffled gold",
            _deep(queries, decided, fitted, folds),
            not_checked=without_gold or ("" if is_deep else ON_REQUEST),
        ),
    )


def _fitted(decided: Sequence[Decided]) -> Iterator[tuple[str, Gated]]:
    """Each gate that was fitted, once: configurations that share it share its leaks."""
    seen = set()
    for each in decided:
        for own in each.gates.values():
            if own.result.folds and id(own) not in seen:
                seen.add(id(own))
                yield each.where, own


def _deep(
    queries: Queries,
    decided: Sequence[Decided],
    fitted: Sequence[tuple[str, Gated]],
    folds: Folds,
) -> Iterator[Finding]:
    for where, own in fitted:
        yield from deep_checks(where, own.spec, own.of.rows, own.y, folds)
    for each in decided:
        if each.grid is not None:
            splits = [choice.split for choice in each.chosen]
            yield from choice_checks(each.where, each.grid, queries, splits)
