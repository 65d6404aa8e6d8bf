"""Folds: drawn alike whatever the order, read from a file, and how large they are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.inputs import FoldSize, assign_folds, fold_sizes, load
from runner.errors import DatasetError
from tests.jobs.evidence_retrieval.input_files import CRITERIA, POSTS, files

IDS = st.lists(st.text("post_0123456789", max_size=6), unique=True, min_size=7)


@given(ids=IDS, n=st.integers(2, 7), seed=st.integers(0, 2**32))
def test_every_post_is_in_one_fold_and_all_but_the_last_are_equal(
    ids: list[str], n: int, seed: int
) -> None:
    folds = assign_folds(ids, n, seed)
    sizes = Counter(folds.values())
    size = len(ids) // n
    assert set(folds) == set(ids)
    assert [sizes[str(k)] for k in range(n - 1)] == [size] * (n - 1)
    assert sizes[str(n - 1)] == size + len(ids) % n
    assert assign_folds([*reversed(ids), ids[0]], n, seed) == folds


def test_the_full_size_gives_four_times_295_and_297() -> None:
    ids = [f"post_{number}" for number in range(1477)]
    sizes = Counter(assign_folds(ids, 5, 20260118).values())
    assert sizes == {"0": 295, "1": 295, "2": 295, "3": 295, "4": 297}


def test_folds_are_blocks_of_numpys_permutation_of_the_ids_as_text() -> None:
    ids = [f"p{number}" for number in range(1, 12)]
    order = np.random.default_rng(3).permutation(11)
    shuffled = [sorted(ids)[place] for place in order]
    blocks = (shuffled[:3], shuffled[3:6], shuffled[6:])
    folds = assign_folds(ids, 3, 3)
    assert folds == {post: str(k) for k, block in enumerate(blocks) for post in block}


def test_fewer_posts_than_folds_is_an_error() -> None:
    with pytest.raises(DatasetError, match="2 posts cannot be cut into 3 folds"):
        assign_folds(["a", "b", "a"], 3, 0)


def test_a_run_that_could_not_be_scored_does_not_load(tmp_path: Path) -> None:
    gold = "post_id,criterion,groundtruth\np1,A.1,0\n"
    settings = files(tmp_path, posts=POSTS, criteria=CRITERIA, gold=gold)
    with pytest.raises(DatasetError, match="2 posts cannot be cut into 5 folds"):
        load(settings)
    assert load(settings.model_copy(update={"n_folds": 2})).folds is None
    assert load(settings.model_copy(update={"gold": None})).gold is None


def test_named_folds_are_read_and_other_posts_left_out(tmp_path: Path) -> None:
    folds = "fold_id,post_id\n00,p2\nb,p1\n00,p2\nc,p9\n"
    assert load(files(tmp_path, posts=POSTS, folds=folds)).folds == {
        "p1": "b",
        "p2": "00",
    }
    assert load(files(tmp_path, folds=folds)).folds == {
        "p2": "00",
        "p1": "b",
        "p9": "c",
    }


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("p1,0\np2,1\np1,1\n", "folds.csv line 4: post p1 is in fold 1 here and in 0"),
        ("p1,0\n", "folds.csv: no fold for post p2 (add a row, or leave out --folds"),
        ("p1,0\np2,0\n", "folds.csv: all posts are in one fold (at least two"),
        ("p1,0\np2,\n", "folds.csv line 3: fold_id is missing (fill it in"),
    ],
)
def test_folds_that_cannot_be_used_are_refused(
    tmp_path: Path, rows: str, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        load(files(tmp_path, posts=POSTS, folds="post_id,fold_id\n" + rows))
    assert str(caught.value).startswith(said)


def test_sizes_come_in_the_natural_order_of_the_folds(tmp_path: Path) -> None:
    settings = files(
        tmp_path,
        posts=POSTS,
        criteria=CRITERIA,
        folds="post_id,fold_id\np1,10\np2,9\n",
        gold="post_id,criterion,groundtruth\np1,A.1,1\np1,A.2,1\np2,A.1,0\n",
    )
    dataset = load(settings)
    assert dataset.folds is not None
    assert fold_sizes(dataset, dataset.folds) == (
        FoldSize(fold="9", posts=1, queries=2, positives=0),
        FoldSize(fold="10", posts=1, queries=2, positives=2),
    )
    without = load(settings.model_copy(update={"gold": None}))
    assert [size.positives for size in fold_sizes(without, dataset.folds)] == [None] * 2
