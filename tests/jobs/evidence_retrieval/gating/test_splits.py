"""Which posts fit, tune and test."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.predictions.classifier import (
    INNER_FOLDS,
    inner_folds,
    split,
)

POSTS = [f"p{number}" for number in range(10)]
FOLDS = {post: str(number % 5) for number, post in enumerate(POSTS)}


def test_the_other_posts_are_ordered_by_their_hash_and_the_first_share_tunes() -> None:
    own = split("2", FOLDS, POSTS, seed=7, tune_fraction=0.3)
    rest = sorted(
        (post for post in POSTS if FOLDS[post] != "2"),
        key=lambda post: hashlib.sha256(f"7:2:{post}".encode()).hexdigest(),
    )
    assert own.test == ("p2", "p7")
    assert own.tune == tuple(rest[:2])  # 2.4 of eight posts
    assert own.fit == tuple(rest[2:])


@pytest.mark.parametrize(
    ("posts", "fraction", "tuning"),
    [(5, 0.3, 2), (5, 0.1, 1), (15, 0.3, 5), (3, 0.01, 1), (1, 0.3, 1)],
)
def test_a_half_post_counts_up_and_one_post_always_tunes(
    posts: int, fraction: float, tuning: int
) -> None:
    fold_of = {"t": "0", **{f"p{number}": "1" for number in range(posts)}}
    own = split("0", fold_of, fold_of, seed=1, tune_fraction=fraction)
    assert len(own.tune) == tuning
    assert len(own.fit) == posts - tuning


@given(
    st.dictionaries(st.text(min_size=1), st.sampled_from("01234"), min_size=2),
    st.integers(0, 99),
)
def test_no_post_is_in_two_parts_and_every_judged_one_in_some(
    fold_of: dict[str, str], seed: int
) -> None:
    for fold in sorted(set(fold_of.values())):
        own = split(fold, fold_of, fold_of, seed=seed, tune_fraction=0.3)
        parts = [*own.test, *own.tune, *own.fit]
        assert sorted(parts) == sorted(fold_of)
        assert {fold_of[post] for post in own.test} == {fold}


def test_tuning_posts_are_others_than_test_posts_with_two_posts_a_fold() -> None:
    for fold in "01234":
        own = split(fold, FOLDS, POSTS, seed=20260118, tune_fraction=0.3)
        assert not {*own.tune} & {*own.test}
        assert all(FOLDS[post] != fold for post in (*own.tune, *own.fit))


def test_posts_without_gold_are_tested_and_teach_nothing() -> None:
    own = split("0", FOLDS, POSTS[:8], seed=1, tune_fraction=0.3)
    assert not {"p8", "p9"} & {*own.tune, *own.fit}
    assert "p5" in own.test


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30))
def test_inner_folds_keep_a_post_together_and_stay_level(sizes: list[int]) -> None:
    posts = [f"p{n:02}" for n, size in enumerate(sizes) for _ in range(size)]
    folds = inner_folds(posts)
    of: dict[str, set[int]] = {}
    for post, fold in zip(posts, folds.tolist(), strict=True):
        of.setdefault(post, set()).add(fold)
    assert all(len(own) == 1 for own in of.values())
    count = min(INNER_FOLDS, len(sizes))
    loads = [int((folds == fold).sum()) for fold in range(count)]
    assert min(loads) > 0
    assert max(loads) - min(loads) <= max(sizes)
