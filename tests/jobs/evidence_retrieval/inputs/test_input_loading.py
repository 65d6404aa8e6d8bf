"""Loading as a whole: the sample by default, what a run needs, and its identity."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.evidence_retrieval.inputs import SAMPLE, inputs, load, require, with_sample
from jobs.evidence_retrieval.pipeline import STANDARD
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.errors import DatasetError, UsageError
from tests.jobs.evidence_retrieval.input_files import CRITERIA, POSTS, files, sentences


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
        "Post a/A.1 is called like criterion A.1 of post a, which batch=post cannot "
        "tell apart (rename one, or use --batch query)."
    )
