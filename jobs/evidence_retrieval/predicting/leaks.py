"""The leakage checks of a run of our own, over everything that was predicted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.gated import Gated
from jobs.evidence_retrieval.prompts import INSTRUCTIONS
from jobs.evidence_retrieval.queries import Predictions, Queries
from runner.scorecard import Finding


def leaks(
    dataset: Dataset,
    queries: Queries,
    predictions: Iterable[Predictions],
    gated: Sequence[tuple[str, Config, Gated]],
    folds: Folds,
) -> Iterator[Finding]:
    """What the cheap checks find, and the expensive ones where the settings ask."""
    yield from duplicate_texts(dataset.posts, folds.of)
    yield from gold_in_instructions(dataset, INSTRUCTIONS)
    yield from foreign_candidates(dataset, queries, predictions)
    checked = set()
    for model, config, own in gated:
        # configurations that share a gate share what is wrong with it
        if not own.result.folds or id(own.result) in checked:
            continue
        checked.add(id(own.result))
        where = f"{model}, {config.name}"
        rows = own.of.rows
        yield from shared_posts(where, [each.split for each in own.result.folds])
        yield from gold_features(where, rows, own.y)
        yield from thresholds_from_test(where, own.spec, rows, own.y, own.result)
        if dataset.settings.deep_checks:
            yield from deep_checks(where, own.spec, rows, own.y, folds)
