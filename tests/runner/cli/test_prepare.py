"""`siftlog prepare`: subcommands that say something and those that build a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import siftlog
from tests.plugging import plugged


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the job `building` is installed."""
    target = "tests.runner.cli.building:job"
    plugged(tmp_path / "plugins", building=target)
    monkeypatch.syspath_prepend(tmp_path / "plugins")
    return tmp_path


def prepare(folder: Path, *words: object, fails: str = "") -> str:
    done = siftlog("prepare", "building", *words, cwd=folder, check=not fails)
    if fails:
        assert (done.returncode, done.stdout) == (2, "")
        assert fails in done.stderr
    return done.stdout


def test_a_built_file_goes_where_it_is_told_and_nowhere_else(folder: Path) -> None:
    assert prepare(folder, "build", "--items", 2, "--out", "x.txt") == "built\n"
    assert (folder / "x.txt").read_bytes() == "item é0\nitem é1\n".encode()
    said = prepare(folder, "build", "--items", 1, "--out", "x.txt", "--json")
    assert json.loads(said) == {"schema": "siftlog.prepared/1", "items": 1}
    assert (folder / "x.txt").read_bytes() == "item é0\n".encode()
    prepare(folder, "build", fails="build builds a file; say where with --out.")
    prepare(folder, "build", "--out", "no/x.txt", fails="no/x.txt cannot be written: ")


def test_what_builds_no_file_takes_no_place_for_one(folder: Path) -> None:
    assert prepare(folder, "count") == "3 items\n"
    prepare(folder, "count", "--out", "x.txt", fails="count builds no file; leave out")
    assert not (folder / "x.txt").exists()


def test_a_check_fails_below_what_is_asked_and_need_not_be_written(
    folder: Path,
) -> None:
    assert prepare(folder, "check", "--items", 5, "--fail-under", "0.5") == "checked\n"
    words = ("prepare", "building", "check", "--fail-under", "0.8", "--items")
    for items, share in ((5, "0.5"), (0, "None")):
        out = ("--out", "x.csv")
        done = siftlog(*words, items, *out, cwd=folder, check=False)
        assert (done.returncode, done.stdout) == (6, "checked\n")
        assert f"check finds {share}, where 0.8 is the least." in done.stderr
        assert (folder / "x.csv").read_text() == f"share {share}\n"
    prepare(folder, "count", "--fail-under", "1", fails="count finds no share; leave")


def test_files_after_a_subcommand_go_to_one_that_takes_some(folder: Path) -> None:
    assert prepare(folder, "take", "a.csv", "--items", 2, "b.csv") == "a.csv b.csv\n"
    prepare(folder, "count", "a.csv", fails="count takes no files; leave out a.csv.")
    prepare(
        folder,
        "lose",
        "a.csv",
        fails="cannot prepare 'lose'; it can prepare build, check, count, take.",
    )


def test_data_can_be_prepared_that_no_run_could_start_from(folder: Path) -> None:
    assert prepare(folder, "count", "--items", 0) == "0 items\n"
    for verb in (("run", "--model", "baseline/x"), ("estimate", "--model", "m")):
        words = (verb[0], "building", "--items", 0, *verb[1:])
        done = siftlog(*words, cwd=folder, check=False)
        assert done.returncode == 2
        assert "A run needs --items." in done.stderr
    assert not (folder / "runs").exists()
