"""`prepare sentences` and `prepare folds`: what they build is what a run would make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.evidence_retrieval import prepare
from jobs.evidence_retrieval.inputs import SAMPLE, load, with_sample
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.errors import DatasetError, UsageError
from runner.job import PreparedData
from tests.jobs.evidence_retrieval.input_files import CRITERIA, POSTS, files

SAMPLED = with_sample(EvidenceSettings.model_validate({}))


def written(path: Path, made: prepare.PreparedEvidence) -> Path:
    path.write_text("".join(f"{line}\n" for line in made.lines), encoding="utf-8")
    return path


def test_the_samples_sentences_are_those_that_prepare_builds(tmp_path: Path) -> None:
    made = prepare.sentences(SAMPLED)
    path = written(tmp_path / "sentences.jsonl", made)
    assert path.read_bytes() == (SAMPLE / "sentences.jsonl").read_bytes()
    assert made.json == {"sentences": 154, "posts": 24, "empty_posts": 0}


def test_offsets_lead_back_to_the_text(tmp_path: Path) -> None:
    text = "  Dr. Ash\n slept. “Well?” "
    settings = files(tmp_path, posts=f'post_id,text\np,"{text}"\n')
    made = [json.loads(line) for line in prepare.sentences(settings).lines]
    assert [(each["sid"], each["sent_uid"]) for each in made] == [
        *((0, "p_0"), (1, "p_1"), (2, "p_2")),
    ]
    for each in made:
        assert text[each["start"] : each["end"]] == each["text"]


def test_a_run_on_built_sentences_is_a_run_on_the_posts(tmp_path: Path) -> None:
    settings = files(tmp_path, posts=POSTS + 'p3,"a ""b"", [c]"\n', criteria=CRITERIA)
    path = written(tmp_path / "s.jsonl", prepare.sentences(settings))
    built = settings.model_copy(update={"sentences": path})
    assert load(built).posts == load(settings).posts
    assert load(built).findings == ()


def test_sentences_need_posts() -> None:
    with pytest.raises(UsageError, match="Name the posts to cut with --posts"):
        prepare.sentences(EvidenceSettings.model_validate({"sentences": "x.jsonl"}))


def test_empty_posts_are_said(tmp_path: Path) -> None:
    made = prepare.sentences(files(tmp_path, posts=POSTS + "p3,\np4, \n"))
    assert made.text == "3 sentences of 4 posts; 2 posts have none"


def test_built_folds_are_read_back_whatever_the_ids(tmp_path: Path) -> None:
    posts = 'post_id,text\n=1+1,x\n"a,""b""",y\n007,z\n'
    settings = files(tmp_path, posts=posts).model_copy(update={"n_folds": 3})
    made = prepare.folds(settings)
    # without criteria nobody knows how many queries there are
    assert made.text.startswith("fold 0: 1 post\n")
    path = written(tmp_path / "f.csv", made)
    folds = load(settings.model_copy(update={"folds": path})).folds
    assert folds is not None
    assert list(folds) == ["=1+1", 'a,"b"', "007"]
    assert sorted(folds.values()) == ["0", "1", "2"]


def test_folds_are_drawn_anew_and_their_sizes_are_said() -> None:
    made = prepare.folds(SAMPLED)
    sizes = made.json["folds"]
    assert isinstance(sizes, list)
    assert [size["posts"] for size in sizes] == [4, 4, 4, 4, 8]
    assert sum(size["positives"] for size in sizes) == 30
    assert made.text.splitlines()[-1] == "overlap: 0 posts"
    assert made.text.startswith("fold 0: 4 posts, 16 queries, ")


def test_folds_of_too_few_posts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="2 posts cannot be cut into 5 folds"):
        prepare.folds(files(tmp_path, posts=POSTS))


def test_both_build_files() -> None:
    made = (build(SAMPLED) for build in prepare.SUBCOMMANDS.values())
    assert all(isinstance(each, PreparedData) for each in made)
