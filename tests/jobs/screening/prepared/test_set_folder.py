"""The folder that `siftlog prepare screening` writes, and how it is read again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.screening.inputs import SAMPLE, load, read_set
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError
from tests.jobs.screening.commanded import command, prepare
from tests.jobs.screening.tables import OPTIONS, tables

FILES = (
    *("candidates.csv", "contamination.csv", "manifest.json", "near_miss_stats.csv"),
    *("papers.jsonl", "reviews.jsonl", "summary.json", "topic_drift.csv"),
    "validation_set.csv",
)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A set of the small world."""
    folder = tables(tmp_path / "tables")
    prepare("--tables", folder, "--out", tmp_path / "set", *OPTIONS)
    return tmp_path / "set"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_set_needs_a_place_and_replaces_another_only_by_force(
    tmp_path: Path, made: Path
) -> None:
    words = ("prepare", "screening", "--tables", tmp_path / "tables", *OPTIONS)
    done = command(*words)
    assert (done.code, done.err) == (
        2,
        "siftlog: screening builds a folder; say where with --out.\n",
    )
    before = (made / "validation_set.csv").read_bytes()
    done = command(*words, "--seed", 7, "--out", made)
    assert done.code == 2
    assert "exists already: name another --out, or use --force." in done.err
    assert (made / "validation_set.csv").read_bytes() == before
    done = command(*words, "--negatives", "near-miss", "--out", made, "--force")
    assert done.code == 0
    assert (made / "validation_set.csv").read_bytes() != before
    assert names(made) == [*FILES]
    assert names(tmp_path) == ["set", "tables"]


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY))
from runner.cli.main import exit_code
sys.exit(exit_code(sys.argv[1:]))
"""


def test_a_disk_that_takes_no_more_leaves_the_old_set(
    tmp_path: Path, made: Path
) -> None:
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    words = ("--tables", tmp_path / "tables", "--out", made, "--force", *OPTIONS)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "prepare", "screening", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"siftlog: {made} cannot be written: File too large.\n"
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before
    assert names(tmp_path) == ["set", "tables"]


def test_neither_a_time_nor_a_path_is_in_the_files(tmp_path: Path, made: Path) -> None:
    for path in made.iterdir():
        text = path.read_text("utf-8")
        assert str(tmp_path) not in text
        assert "T00:" not in text
    manifest = json.loads((made / "manifest.json").read_text("utf-8"))
    assert manifest["sampler_version"] == 1
    assert manifest["options"]["seed"] == 42
    assert manifest["inputs"]["papers"]["file"] == "referenced_paper_abstracts.csv"
    assert not {"stages", "unclear", "tables", "reask"} & manifest["options"].keys()


def test_a_set_is_read_as_it_was_written() -> None:
    found = read_set(SAMPLE / "set")
    assert len(found.records) == 375
    assert len({each.key for each in found.records}) == 375
    assert [each.id for each in found.reviews] == sorted(
        {each.review for each in found.records}
    )
    assert {each.paper for each in found.records} == found.papers.keys()
    criteria = {each.id: each.criteria for each in found.reviews}
    assert criteria["9800002"] is None
    assert criteria["9800001"] is not None
    assert criteria["9800001"].headings == {"Setting": "any"}


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("validation_set.csv", ",1,included", ",0,included", "label contradicts"),
        ("validation_set.csv", "near-miss", "hard", "kind is 'hard'"),
        ("validation_set.csv", "A,1,", "A,01,", "A:01 occurs a second time"),
        ("validation_set.csv", "A,1,", "A,77,", "the paper 77 has no text in papers"),
        ("reviews.jsonl", '"B"', '"b"', "the review B has no text in reviews"),
        ("summary.json", "{", "", "summary.json: not valid JSON"),
        ("manifest.json", "{", "", "manifest.json: not valid JSON"),
        # what is readable, and no contradiction, is known by its hash
        ("validation_set.csv", ",near-miss,", ",random,", r"set\.csv is not the file"),
        ("papers.jsonl", "abstract of 01", "", r"papers\.jsonl is not the file that"),
        ("summary.json", "2", "3", r"summary\.json is not the file that siftlog prep"),
    ],
)
def test_a_set_that_was_tampered_with_is_refused(
    made: Path, file: str, old: str, new: str, sentence: str
) -> None:
    text = (made / file).read_text("utf-8")
    assert old in text
    (made / file).write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(DatasetError, match=sentence):
        read_set(made)


def test_a_set_that_lost_rows_is_refused_unless_it_is_ones_own(made: Path) -> None:
    path = made / "validation_set.csv"
    rows = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(rows[:-1]), "utf-8")
    with pytest.raises(DatasetError, match=r"wrote there \(build the set again\)\."):
        read_set(made)
    (made / "manifest.json").unlink()
    assert len(read_set(made).records) == len(rows) - 2


def test_a_set_that_lacks_a_file_is_none(made: Path) -> None:
    (made / "papers.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"has no papers\.jsonl: name a folder"):
        read_set(made)


def test_full_texts_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "01.txt").write_text("text", "utf-8")
    (tmp_path / "01.md").write_text("not this one", "utf-8")
    (tmp_path / "2.3.md").write_text("caf\u00e9", "latin-1")
    (tmp_path / "4.pdf").write_text("", "utf-8")
    found = load(ScreeningSettings(stages=("fulltext",), fulltext=tmp_path))
    assert sorted(found.fulltexts) == ["01", "2.3"]
    assert (found.fulltext("01"), found.fulltext("2.3")) == ("text", "caf\ufffd")
    assert not load(ScreeningSettings(fulltext=tmp_path)).fulltexts
    with pytest.raises(DatasetError, match="no such folder"):
        load(ScreeningSettings(stages=("fulltext",), fulltext=tmp_path / "none"))
