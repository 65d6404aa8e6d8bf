"""Bundles on the command line: made in one place, verified in another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runner.bundle.verify import check
from runner.cli.main import exit_code
from store.errors import ignore_progress
from tests.processes import siftlog
from tests.runner.bundle.conftest import Bundled
from tests.runner.bundle.forging import contents, forged


def test_a_bundle_is_verified_where_nothing_else_of_the_run_is(
    bundled: Bundled, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = shutil.copy(bundled.path, elsewhere / "from a friend.zip")
    data, away = bundled.cwd / "data", bundled.cwd / "away"
    data.rename(away)
    try:
        words = ("verify", copy, "--json")
        done = siftlog(*words, cwd=elsewhere, env=bundled.environment)
    finally:
        away.rename(data)
    said = json.loads(done.stdout)
    told = {"run": "r", "scoring": 1, "sound": True, "rebuilt": True, "partial": False}
    same = {name: bundled.said[name] for name in ("digest", "head", "events")}
    assert said.items() >= (told | same | {"differs": [], "faults": []}).items()
    assert [path.name for path in elsewhere.iterdir()] == ["from a friend.zip"]


def test_what_bundle_says_of_its_file_is_so(bundled: Bundled) -> None:
    assert bundled.said["file"] == "runs/r/exports/r.1.siftlog.zip"
    assert bundled.said["bytes"] == bundled.path.stat().st_size
    assert bundled.said["members"] == len(contents(bundled.path))
    assert (bundled.said["run"], bundled.said["partial"]) == ("r", False)


def test_a_bundle_with_a_fault_ends_with_6_and_the_place(
    bundled: Bundled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = forged(
        bundled.path,
        tmp_path / "x.zip",
        lambda members: members.update({"scores/1/scorecard.json": b"{}"}),
    )
    assert exit_code(["verify", str(path)]) == 6
    said = capsys.readouterr()
    assert said.err == (
        "siftlog: x.zip: scores/1/scorecard.json: is not what scoring 1 recorded\n"
    )
    assert said.out == ""


def test_a_run_goes_before_a_file_of_the_same_name(
    bundled: Bundled,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "r").write_text("of no matter")
    monkeypatch.chdir(tmp_path)
    assert exit_code(["verify", "r", "--runs-dir", str(bundled.cwd / "runs")]) == 0
    assert capsys.readouterr().out.startswith("r is sound")
    assert exit_code(["verify", "r"]) == 6
    assert capsys.readouterr().err.startswith("siftlog: r: its end: is not that of")


def test_a_job_that_is_not_installed_is_the_reason_that_is_told(
    bundled: Bundled,
) -> None:
    (fault,) = check(bundled.path, ignore_progress).faults
    assert fault.where == "scores/1/scorecard.json"
    assert fault.message.startswith("cannot be made again: There is no job 'counting'")
