"""The leakage checks of work made elsewhere: those that its files can answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.gating.thresholds import targets_of
from jobs.evidence_retrieval.leakage import (
    duplicate_texts,
    foreign_candidates,
    given_thresholds,
    looked,
)
from jobs.evidence_retrieval.queries import UNKNOWN, LeakCheck, Predictions, Queries

NOT_IN_FILES = "the files do not say"


def given_leaks(
    dataset: Dataset, queries: Queries, predictions: Sequence[Predictions]
) -> tuple[LeakCheck, ...]:
    """What can be looked for, and of the rest why it cannot."""
    fold_of = {
        queries.posts[post]: queries.folds[fold]
        for post, fold in zip(queries.post.tolist(), queries.fold.tolist(), strict=True)
        if fold != UNKNOWN
    }
    known = {post.id for post in dataset.posts}
    pools_known = known.issuperset(queries.posts)
    has_lists = any(own.lists for own in predictions)
    return (
        looked(
            "duplicate post texts across folds",
            duplicate_texts(dataset.posts, fold_of),
            not_checked=_first(
                "" if known else "the texts need --posts or --sentences",
                "" if fold_of else "there are no folds",
            ),
        ),
        looked(
            "candidates of another post",
            foreign_candidates(dataset.posts, queries, predictions),
            not_checked=_first(
                "" if has_lists else "there are no rankings",
                "" if pools_known else "the pools need --posts or --sentences",
            ),
        ),
        looked(
            "thresholds chosen on test posts",
            (
                found
                for own in predictions
                for found in given_thresholds(
                    queries, own, targets_of(dataset.settings)
                )
            ),
            not_checked=_first(*_no_thresholds(queries, predictions)),
        ),
        *(
            looked(name, (), not_checked=NOT_IN_FILES)
            for name in (
                "gold sentences in the instructions of prompts",
                "posts shared by the test, tuning and fitting parts",
                "features that are the gold",
                "predictions under scrambled, removed and shuffled gold",
            )
        ),
    )


def _no_thresholds(
    queries: Queries, predictions: Sequence[Predictions]
) -> Iterator[str]:
    """Why thresholds cannot be compared with those that the rows themselves want."""
    if not queries.folds:
        yield "there are no folds"
    if (queries.y == UNKNOWN).all():
        yield "there is no gold"
    if all(own.prob is None for own in predictions):
        yield "there are no probabilities"
    columns = [t for own in predictions for t in (own.tau_neg, own.tau_pos)]
    if not any(
        column is not None and ((column > 0) & (column < np.inf)).any()
        for column in columns
    ):
        yield "no threshold lies above 0 and below infinity"


def _first(*reasons: str) -> str:
    return next(filter(None, reasons), "")
