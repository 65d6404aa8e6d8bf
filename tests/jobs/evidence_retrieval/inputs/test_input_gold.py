"""Gold: what is positive, negative and unjudged, and which sentences it may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.evidence_retrieval.data import Gold
from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.posts import owner_by_prefix
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.errors import DatasetError
from runner.scorecard import Finding
from tests.jobs.evidence_retrieval.input_files import CRITERIA, POSTS, files, sentences

HEAD = "post_id,criterion,sid,sent_uid,groundtruth\n"
POOLS = sentences(
    [("p1", 0, "u1", "One"), ("p1", 1, "u2", "Two"), ("p2", 0, "u3", "Three")]
)
FOLDS = "post_id,fold_id\np1,x\np2,y\n"


def settings_of(folder: Path, gold: str, **others: str) -> EvidenceSettings:
    others = {"posts": POSTS, "criteria": CRITERIA, "folds": FOLDS} | others
    return files(folder, gold=gold, **{k: v for k, v in others.items() if v})


def read(
    folder: Path, rows: str, head: str = HEAD, **others: str
) -> tuple[Gold, dict[str, Finding]]:
    dataset = load(settings_of(folder, head + rows, **others))
    assert dataset.gold is not None
    return dataset.gold, {finding.code: finding for finding in dataset.findings}


def complaint(folder: Path, rows: str, **others: str) -> str:
    with pytest.raises(DatasetError) as caught:
        read(folder, rows, **others)
    return str(caught.value)


def test_a_query_has_evidence_where_any_row_says_so(tmp_path: Path) -> None:
    gold, found = read(
        tmp_path,
        "p1,A.1,1,p1_1,1\np1,A.1,0,p1_0,1\np1,A.2,0,p1_0,0\n"
        "p2,A.1,0,p2_0,0\np2,A.2,0,p2_0,1\n",
    )
    assert gold.evidence == {("p1", "A.1"): ("p1_0", "p1_1"), ("p2", "A.2"): ("p2_0",)}
    assert gold.posts == {"p1", "p2"}
    assert not found


def test_posts_that_do_not_occur_are_unjudged(tmp_path: Path) -> None:
    gold, found = read(tmp_path, "p1,A.1,,,0\np1,A.2,,,0\n")
    assert gold.posts == {"p1"}
    assert (found["unjudged_posts"].n, found["unjudged_posts"].example) == (1, "p2")


def test_a_blank_sentence_of_a_negative_row_is_no_gold_id(tmp_path: Path) -> None:
    gold, _ = read(tmp_path, "p1,A.1,,,0\np2,A.1,0,p2_0,1\n")
    assert gold.evidence == {("p2", "A.1"): ("p2_0",)}


def test_evidence_without_a_sentence_is_evidence_and_a_finding(tmp_path: Path) -> None:
    gold, found = read(tmp_path, "p1,A.1,,,1\np2,A.1,0,,1\n")
    assert gold.evidence == {("p1", "A.1"): (), ("p2", "A.1"): ("p2_0",)}
    assert found["positive_without_ids"].example == "p1/A.1"


def test_the_criterions_column_has_two_names(tmp_path: Path) -> None:
    head = "post_id,criterion_id,sent_uid,groundtruth\n"
    gold, _ = read(tmp_path, "p1,A.2,p1_0,1\n", head)
    assert list(gold.evidence) == [("p1", "A.2")]


def test_a_post_that_is_negative_for_some_criteria_only_is_incomplete(
    tmp_path: Path,
) -> None:
    _, found = read(tmp_path, "p1,A.1,,,0\np2,A.1,,,0\np2,A.2,,,0\n")
    assert (found["incomplete_posts"].n, found["incomplete_posts"].example) == (1, "p1")
    _, found = read(tmp_path, "p1,A.1,0,p1_0,1\np2,A.1,0,p2_0,1\n")
    assert "incomplete_posts" not in found


def test_gold_that_is_not_in_the_pool_is_a_finding_where_pools_are_made_here(
    tmp_path: Path,
) -> None:
    gold, found = read(tmp_path, "p1,A.1,9,p1_9,1\np1,A.1,0,p1_0,1\np2,A.1,,,0\n")
    assert gold.evidence["p1", "A.1"] == ("p1_0", "p1_9")
    assert found["gold_not_in_pool"].example == "p1_9"


def test_gold_for_an_unknown_sentence_is_an_error_where_sentences_are_given(
    tmp_path: Path,
) -> None:
    said = complaint(tmp_path, "p1,A.1,1,u2,1\np1,A.1,9,u9,1\n", sentences=POOLS)
    assert said.startswith("gold.csv line 3: u9 is not among the sentences")


@pytest.mark.parametrize("pools", ["", POOLS])
def test_gold_of_another_post_is_an_error(tmp_path: Path, pools: str) -> None:
    uid = "u3" if pools else "p2_0"
    said = complaint(tmp_path, f"p1,A.1,0,{uid},1\n", sentences=pools)
    assert said.startswith(f"gold.csv line 2: {uid} is not a sentence of p1 (correct")


def test_a_sids_contradiction_is_a_finding_and_the_uid_is_believed(
    tmp_path: Path,
) -> None:
    gold, found = read(tmp_path, "p1,A.1,0,u2,1\np2,A.1,0,u3,1\n", sentences=POOLS)
    assert gold.evidence["p1", "A.1"] == ("u2",)
    assert (found["gold_sid_differs"].n, found["gold_sid_differs"].example) == (
        1,
        "line 2",
    )


def test_the_post_of_a_uid_ends_at_its_last_underscore(tmp_path: Path) -> None:
    assert owner_by_prefix("post_1_2") == "post_1"
    posts = "post_id,text\npost,A cat.\npost_1,One. Two. Three.\n"
    folds = "post_id,fold_id\npost,0\npost_1,1\n"
    others = {"posts": posts, "folds": folds}
    gold, _ = read(tmp_path, "post_1,A.1,2,post_1_2,1\n", **others)
    assert gold.evidence == {("post_1", "A.1"): ("post_1_2",)}
    said = complaint(tmp_path, "post,A.1,2,post_1_2,1\n", **others)
    assert "post_1_2 is not a sentence of post " in said


def test_other_posts_and_criteria_are_left_out_and_counted(tmp_path: Path) -> None:
    gold, found = read(tmp_path, "p9,A.1,0,p9_0,1\np1,A.9,0,p1_0,1\np2,A.1,,,0\n")
    assert gold.evidence == {}
    assert found["gold_of_unknown_post"].example == "p9"
    assert found["gold_of_unknown_criterion"].example == "A.9"


def test_gold_alone_is_taken_as_it_is(tmp_path: Path) -> None:
    alone = {"posts": "", "criteria": "", "folds": ""}
    gold, found = read(tmp_path, "p1,A.1,3,p1_3,1\np1,A.2,,,0\n", **alone)
    assert gold.evidence == {("p1", "A.1"): ("p1_3",)}
    assert not found


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("p1,A.1,0,p1_0,2\n", "line 2: groundtruth is '2' (0 or 1 is expected)"),
        ("p1,A.1,0,p1_0,\n", "line 2: groundtruth is missing"),
        ("p1,A.1,0.5,p1_0,1\n", "line 2: sid is '0.5' (a whole number is expected)"),
        (
            "p1,A.1,0,p1_0,1\np1,A.1,0,p1_0,0\n",
            "line 3: p1_0 is judged for A.1 on line 2 already (remove one)",
        ),
        (
            "p1,A.1,,,0\np1,A.1,,,0\n",
            "line 3: a row without a sentence is judged for A.1 on line 2 already",
        ),
    ],
)
def test_what_is_wrong_with_a_row_of_gold_is_said_by_place(
    tmp_path: Path, rows: str, said: str
) -> None:
    assert complaint(tmp_path, rows).startswith(f"gold.csv {said}")
