"""Folds: which posts are tested together, read or drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.dataset import Dataset, Post
from jobs.evidence_retrieval.inputs.criteria import natural_order
from jobs.evidence_retrieval.settings import Settings
from jobs.inputs.files import read_csv
from jobs.inputs.rows import InputFindings
from runner.errors import DatasetError


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldSize:
    """How much of the data a fold tests."""

    fold: str
    posts: int
    queries: int  #: posts times criteria
    positives: int | None  #: None: there is no gold


def assign_folds(post_ids: Iterable[str], n_folds: int, seed: int) -> dict[str, str]:
    """Folds "0" to "n-1" by post, whatever the order in which posts are given.

    Distinct ids in ascending order as text, shuffled by NumPy's default generator, and
    cut into blocks of n div n_folds posts; the last block takes the remainder too.

    Raises:
        DatasetError: there are fewer posts than folds.
    """
    posts = sorted(set(post_ids))
    if len(posts) < n_folds:
        raise DatasetError(
            f"{len(posts)} posts cannot be cut into {n_folds} folds (use more posts, "
            "or a smaller --n-folds)."
        )
    shuffled = np.random.default_rng(seed).permutation(len(posts)).tolist()
    size = len(posts) // n_folds
    return {
        posts[place]: str(min(rank // size, n_folds - 1))
        for rank, place in enumerate(shuffled)
    }


def read_folds(
    settings: Settings, posts: tuple[Post, ...], noticed: InputFindings
) -> Mapping[str, str] | None:
    """The folds that a file names, by post; None where no file is named.

    A post may occur in several rows, as it does in a table of queries.

    Where no posts are named, those of the file are taken.

    Raises:
        DatasetError: a post is in two folds, or in none, or there is but one fold.
    """
    if settings.folds is None:
        return None
    rows = read_csv(
        settings.folds,
        ("post_id", "fold_id"),
        noticed=noticed,
        allow_ragged=settings.allow_ragged,
    )
    folds: dict[str, str] = {}
    for row in rows:
        post, fold = row.text("post_id"), row.text("fold_id")
        if folds.setdefault(post, fold) != fold:
            raise row.error(
                f"post {post} is in fold {fold} here and in {folds[post]} above "
                "(a post belongs to one fold)"
            )
    name = settings.folds.name
    for post_ in posts:
        if post_.id not in folds:
            raise DatasetError(
                f"{name}: no fold for post {post_.id} (add a row, or leave out --folds "
                "to have folds drawn)."
            )
    used = {post_.id: folds[post_.id] for post_ in posts} or folds
    if len(set(used.values())) == 1:
        raise DatasetError(
            f"{name}: all posts are in one fold (at least two are needed)."
        )
    return used


def fold_sizes(dataset: Dataset, folds: Mapping[str, str]) -> tuple[FoldSize, ...]:
    """The size of each fold, in the natural order of their names."""
    posts: dict[str, int] = {}
    positives: dict[str, int] = {}
    for post in dataset.posts:
        fold = folds[post.id]
        posts[fold] = posts.get(fold, 0) + 1
        positives[fold] = positives.get(fold, 0) + sum(
            dataset.gold is not None
            and (post.id, criterion.id) in dataset.gold.evidence
            for criterion in dataset.criteria
        )
    return tuple(
        FoldSize(
            fold=fold,
            posts=posts[fold],
            queries=posts[fold] * len(dataset.criteria),
            positives=None if dataset.gold is None else positives[fold],
        )
        for fold in natural_order(posts)
    )
