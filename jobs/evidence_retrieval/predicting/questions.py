"""The queries of a run with their gold and folds: what predictions are held against."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.inputs.criteria import natural_order
from jobs.evidence_retrieval.inputs.folds import assign_folds
from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.metrics.columns import Ints


def queries(dataset: Dataset) -> Queries:
    """Posts times criteria, in file order of posts and then in criterion order."""
    posts, criteria = dataset.posts, dataset.criteria
    fold_of = folds_of(dataset)
    names = natural_order(fold_of.values())
    place = {name: i for i, name in enumerate(names)}
    folds = [place[fold_of[post.id]] if fold_of else UNKNOWN for post in posts]
    evidence = {} if dataset.gold is None else dataset.gold.evidence
    return Queries(
        posts=tuple(post.id for post in posts),
        criteria=tuple(criterion.id for criterion in criteria),
        post=_per_query(range(len(posts)), len(criteria)),
        criterion=np.tile(np.arange(len(criteria), dtype=np.int64), len(posts)),
        pool=_per_query([len(post.sentences) for post in posts], len(criteria)),
        folds=names,
        fold=_per_query(folds, len(criteria)),
        y=_truth(dataset),
        gold=None
        if dataset.gold is None
        else [
            evidence.get((post.id, criterion.id), ())
            for post in posts
            for criterion in criteria
        ],
    )


def folds_of(dataset: Dataset) -> Mapping[str, str]:
    """The fold of each post; none where nothing can be tested for want of gold."""
    if dataset.folds is not None:
        return {post.id: dataset.folds[post.id] for post in dataset.posts}
    if dataset.gold is None:
        return {}
    settings = dataset.settings
    ids = (post.id for post in dataset.posts)
    return assign_folds(ids, settings.n_folds, settings.seed)


def _truth(dataset: Dataset) -> Ints:
    """1 where a query has evidence, 0 where its post was judged and it has none."""
    gold = dataset.gold
    if gold is None:
        return np.full(len(dataset.posts) * len(dataset.criteria), UNKNOWN)
    return np.array(
        [
            int((post.id, criterion.id) in gold.evidence)
            if post.id in gold.posts
            else UNKNOWN
            for post in dataset.posts
            for criterion in dataset.criteria
        ],
        dtype=np.int64,
    )


def _per_query(values: range | list[int], criteria: int) -> Ints:
    return np.repeat(np.array(values, dtype=np.int64), criteria)
