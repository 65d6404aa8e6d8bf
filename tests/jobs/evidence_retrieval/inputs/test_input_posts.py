"""Posts and pools: from texts, from a file of sentences, and from both."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.errors import DatasetError
from tests.jobs.evidence_retrieval.input_files import POSTS, files, sentences

POOLS = sentences(
    [
        ("p2", 1, "u3", "Four"),
        ("p1", 0, "u1", "One cat."),
        ("p2", 0, "u2", "Three"),
        ("p1", 1, "u4", "Two dogs."),
    ]
)


def pools(settings: EvidenceSettings) -> dict[str, list[str]]:
    return {post.id: [s.uid for s in post.sentences] for post in load(settings).posts}


def codes(settings: EvidenceSettings) -> dict[str, int]:
    return {finding.code: finding.n for finding in load(settings).findings}


def test_without_sentences_the_posts_are_cut(tmp_path: Path) -> None:
    assert pools(files(tmp_path, posts=POSTS)) == {
        "p1": ["p1_0", "p1_1"],
        "p2": ["p2_0"],
    }


def test_pools_are_in_document_order_whatever_the_files(tmp_path: Path) -> None:
    assert pools(files(tmp_path, sentences=POOLS)) == {
        "p2": ["u2", "u3"],
        "p1": ["u1", "u4"],
    }


def test_with_both_files_the_posts_give_the_order_and_the_sentences_the_pools(
    tmp_path: Path,
) -> None:
    settings = files(tmp_path, posts=POSTS, sentences=POOLS)
    assert pools(settings) == {"p1": ["u1", "u4"], "p2": ["u2", "u3"]}
    assert codes(settings) == {"sentence_not_in_post": 1}


def test_a_post_without_sentences_is_a_finding(tmp_path: Path) -> None:
    posts = "post_id,text\np1,One cat. Two dogs.\np3,\n"
    settings = files(tmp_path, posts=posts, sentences=POOLS)
    assert pools(settings) == {"p1": ["u1", "u4"], "p3": []}
    assert codes(settings) == {"empty_pool": 1, "post_not_named": 1}
    assert codes(files(tmp_path, posts=posts)) == {"empty_pool": 1}


def test_missing_sentence_numbers_are_a_finding(tmp_path: Path) -> None:
    rows = [("p", 0, "a", "x"), ("p", 2, "b", "y"), ("q", 0, "c", "z")]
    settings = files(tmp_path, sentences=sentences(rows))
    assert codes(settings) == {"sid_gap": 1}
    assert pools(settings)["p"] == ["a", "b"]


def test_the_limit_is_a_number_of_posts(tmp_path: Path) -> None:
    settings = files(tmp_path, posts=POSTS).model_copy(update={"limit": 1})
    assert len(pools(settings)) == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("posts", POSTS + "p1,x\n", "posts.csv line 4: post p1 stands on line 2 alrea"),
        ("posts", "post_id,text\n", "posts.csv: no post in it (at least one is needed"),
        ("sentences", "\n", "sentences.jsonl: no post in it (at least one is needed"),
        ("posts", POSTS + ",x\n", "posts.csv line 4: post_id is missing (fill it in"),
        (
            "sentences",
            POOLS + sentences([("p9", 0, "u1", "x")]),
            "sentences.jsonl line 5: sent_uid u1 stands on line 2 already (remove one)",
        ),
        (
            "sentences",
            POOLS + sentences([("p1", 1, "u9", "x")]),
            "sentences.jsonl line 5: sid 1 is that of u4 already (number a post's",
        ),
        (
            "sentences",
            sentences([("p1", -1, "u9", "x")]),
            "sentences.jsonl line 1: sid is -1 (a whole number from 0 is expected)",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_said_by_place(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        load(files(tmp_path, **{name: content}))
    assert str(caught.value).startswith(said)
