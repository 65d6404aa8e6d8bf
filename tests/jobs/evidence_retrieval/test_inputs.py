"""Criteria: JSON or CSV, in file order; without a file in natural order.

Folds: drawn alike whatever the order, read from a file, and how large they are. Gold:
what is positive, negative and unjudged, and which sentences it may name. Loading as a
whole: the sample by default, what a run needs, and its identity.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.data import Criterion, Gold
from jobs.evidence_retrieval.inputs import (
    SAMPLE,
    FoldSize,
    assign_folds,
    fold_sizes,
    inputs,
    load,
    natural_order,
    require,
    with_sample,
)
from jobs.evidence_retrieval.pipeline import STANDARD
from jobs.evidence_retrieval.posts import owner_by_prefix
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.errors import DatasetError, UsageError
from runner.scorecard import Finding
from tests.jobs.evidence_retrieval.input_files import CRITERIA, POSTS, files, sentences


def criteria(folder: Path, content: object) -> tuple[Criterion, ...]:
    text = content if isinstance(content, str) else json.dumps(content)
    return load(files(folder, criteria=text)).criteria


@given(st.lists(st.text("A.019", max_size=5)))
def test_natural_order_is_an_order_of_the_distinct_ids(ids: list[str]) -> None:
    ordered = natural_order(ids)
    assert sorted(ordered) == sorted(set(ids))
    assert natural_order(reversed(ids)) == ordered


def test_numbers_in_ids_are_ordered_as_numbers() -> None:
    ids = ["B", "A.10", "A.2", "A.02", "10", "9", "A", "A.1.3", "A.1.12", ""]
    assert natural_order(ids) == (
        *("", "9", "10", "A", "A.1.3", "A.1.12", "A.02", "A.2", "A.10", "B"),
    )


def test_json_may_use_either_names_and_keeps_the_files_order(tmp_path: Path) -> None:
    content = {
        "criteria": [
            {"id": "A.10", "text": "tall", "name": "T"},
            {"criterion_id": "A.2", "description": "small"},
        ]
    }
    assert criteria(tmp_path, content) == (
        Criterion(id="A.10", text="tall", name="T"),
        Criterion(id="A.2", text="small"),
    )


def test_csv_keeps_the_files_order_and_ids_as_text(tmp_path: Path) -> None:
    found = criteria(tmp_path, "text,criterion_id\nb,02\na,NA\n")
    assert [(each.id, each.text) for each in found] == [("02", "b"), ("NA", "a")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"criteria": [{"id": "a", "text": "x"}, {"id": "b"}]}, "2: text is missing"),
        ({"criteria": [{"id": "a", "text": " "}]}, "1: criterion a has no text (add"),
        ({"criteria": [{"text": "x"}]}, "1: criterion_id is missing (fill"),
        ({"criteria": [{"id": "a/b", "text": "x"}]}, '1: criterion_id a/b holds "/"'),
        ({"criteria": [{"id": "a", "text": "x"}] * 2}, "2: criterion a occurs twice"),
        ({"criteria": ["a"]}, "1: not an object with id and text (write both)."),
    ],
)
def test_a_criterion_that_is_off_is_named_by_its_number(
    tmp_path: Path, content: object, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        criteria(tmp_path, content)
    assert str(caught.value).startswith(f"criteria.json criterion {said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"criterion": []}', "criteria.json: no list of criteria (an object"),
        ('{"criteria": []}', "criteria.json: no criterion in it (at least one"),
        ("criterion_id,text\n", "criteria.csv: no criterion in it (at least one"),
        ("criterion_id,text\na,\n", "criteria.csv line 2: text is missing (fill"),
        (
            "criterion_id\na\n",
            "criteria.csv: column 'text' is missing (found: criterion_id",
        ),
    ],
)
def test_a_file_without_criteria_is_refused(
    tmp_path: Path, content: str, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        criteria(tmp_path, content)
    assert str(caught.value).startswith(said)


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


def test_where_no_data_is_named_the_sample_is_taken(tmp_path: Path) -> None:
    filled = with_sample(files(tmp_path, pipeline="[[config]]\nname='a'\n"))
    assert filled.posts == SAMPLE / "posts.csv"
    assert [config.name for config in load(filled).configs] == ["a"]
    require(filled)


def test_settings_that_name_data_are_kept_as_they_are(tmp_path: Path) -> None:
    settings = files(tmp_path, folds="post_id,fold_id\n")
    assert with_sample(settings) is settings


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"criteria": CRITERIA}, "A run needs --posts or --sentences"),
        ({"posts": POSTS}, "A run needs --criteria"),
        ({"sentences": ""}, "A run needs --criteria"),
    ],
)
def test_a_run_needs_posts_and_criteria(
    tmp_path: Path, named: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        require(files(tmp_path, **named))


def test_an_imported_run_may_name_nothing_at_all() -> None:
    dataset = load(EvidenceSettings.model_validate({}))
    assert (dataset.posts, dataset.criteria, dataset.configs) == ((), (), STANDARD)
    assert inputs(dataset.settings) == ()


def test_every_file_that_is_read_belongs_to_the_runs_identity(tmp_path: Path) -> None:
    rows = [("p1", 0, "p1_0", "One cat."), ("p2", 0, "p2_0", "Three")]
    settings = files(
        tmp_path,
        posts=POSTS,
        sentences=sentences(rows),
        criteria=CRITERIA,
        gold="post_id,criterion,groundtruth\np1,A.1,0\n",
        folds="post_id,fold_id\np1,0\np2,1\n",
        pipeline="[[config]]\nname='a'\n",
    )
    load(settings)
    named = {each.setting: each.path for each in inputs(settings)}
    assert named == {name: getattr(settings, name) for name in named}
    assert sorted(named) == [
        *("criteria", "folds", "gold", "pipeline", "posts", "sentences"),
    ]


def test_short_rows_are_allowed_in_every_csv_alike(tmp_path: Path) -> None:
    settings = files(
        tmp_path,
        posts="post_id,text,note\np1,x\np2,y\n",
        criteria="criterion_id,text,name\nA.1,x\n",
        gold="post_id,criterion,groundtruth,sentence\np1,A.1,1\n",
        folds="post_id,fold_id,note\np1,0\np2,1,\n",
    )
    with pytest.raises(DatasetError, match=r"posts\.csv line 2: 2 fields where"):
        load(settings)
    found = load(settings.model_copy(update={"allow_ragged": True})).findings
    assert {f.where: f.n for f in found if f.code == "ragged_rows"} == {
        "posts.csv": 2,
        "criteria.csv": 1,
        "gold.csv": 1,
        "folds.csv": 1,
    }


def test_queries_are_found_by_their_keys(tmp_path: Path) -> None:
    posts = "post_id,text\na/b,One.\n"
    dataset = load(files(tmp_path, posts=posts, criteria=CRITERIA))
    post, criterion = dataset.query("a/b/A.1")
    assert (post.id, criterion.id) == ("a/b", "A.1")


def test_a_post_called_like_a_query_is_refused_where_whole_posts_are_asked(
    tmp_path: Path,
) -> None:
    posts = "post_id,text\na,One cat.\na/A.1,Two dogs.\nb,Three.\n"
    settings = files(tmp_path, posts=posts, criteria=CRITERIA)
    assert len(load(settings).posts) == 3
    with pytest.raises(DatasetError) as caught:
        load(settings.model_copy(update={"batch": "post"}))
    assert str(caught.value) == (
        "Post a/A.1 has the same key as criterion A.1 of post a, which "
        "batch=post cannot distinguish (rename one, or use --batch "
        "query)."
    )
