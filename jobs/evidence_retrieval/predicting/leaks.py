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
    shared_posts,
    thresholds_from_test,
)
from jobs.evidence_retrieval.predicting.choice_checks import choice_checks
from jobs.evidence_retrieval.predicting.deciding import Decided
from jobs.evidence_retrieval.prompts import INSTRUCTIONS
from jobs.evidence_retrieval.queries import Queries
from runner.scorecard import Finding


def leaks(
    dataset: Dataset, queries: Queries, decided: Sequence[Decided], folds: Folds
) -> Iterator[Finding]:
    """What the cheap checks find, and the expensive ones where the settings ask."""
    yield from duplicate_texts(dataset.posts, folds.of)
    yield from gold_in_instructions(dataset, INSTRUCTIONS)
    yield from foreign_candidates(
        dataset, queries, (each.predictions for each in decided)
    )
    checked = set()
    for each in decided:
        where = each.where
        for own in each.gates.values():
            # configurations that share a gate share what is wrong with it
            if not own.result.folds or id(own) in checked:
                continue
            checked.add(id(own))
            rows = own.of.rows
            yield from shared_posts(where, [fold.split for fold in own.result.folds])
            yield from gold_features(where, rows, own.y)
            yield from thresholds_from_test(where, own.spec, rows, own.y, own.result)
            if dataset.settings.deep_checks:
                yield from deep_checks(where, own.spec, rows, own.y, folds)
        if each.grid is not None and dataset.settings.deep_checks:
            splits = [choice.split for choice in each.chosen]
            yield from choice_checks(where, each.grid, queries, splits)
