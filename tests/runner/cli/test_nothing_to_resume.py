"""`siftlog resume` of a run that has nothing left to do."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree

import pytest

from tests.commands import siftlog


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the finished run `r`, which has one scoring."""
    siftlog("run", "ask", "--limit=2", "--run-id=r", "--no-report", cwd=tmp_path)
    return tmp_path


def _scorings(home: Path) -> list[int]:
    lines = siftlog("scores", "r", "--json", cwd=home).stdout.splitlines()
    return [json.loads(line)["scoring"] for line in lines]


def _resumed(home: Path, *words: str) -> int:
    """Resume the run; return the number of its scoring."""
    done = siftlog("resume", "r", "--no-report", "--json", *words, cwd=home)
    number: int = json.loads(done.stdout.splitlines()[-1])["scoring"]
    return number


def test_a_resume_without_work_keeps_the_scoring_and_says_so(home: Path) -> None:
    done = siftlog("resume", "r", "--no-report", "--output-dir", "out", cwd=home)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        "Nothing was left to send: scoring 1 of run r counts, and no other was "
        "recorded."
    )
    card = "scorecard.json"
    assert (home / "out" / card).read_bytes() == (
        home / "runs/r/scores/1" / card
    ).read_bytes()
    assert _resumed(home) == 1
    assert _scorings(home) == [1]


def test_a_retry_that_waits_is_carried_out_and_scored(home: Path) -> None:
    siftlog("retry", "r", "--filter=state:completed", cwd=home)
    assert _resumed(home) == 2
    status = json.loads(siftlog("status", "r", "--json", cwd=home).stdout)
    assert status["attempts"]["answered"] == 2 * status["tasks"]["completed"] == 6


def test_another_basis_or_missing_files_are_scored_again(home: Path) -> None:
    assert _resumed(home, "--set=boot_b=100") == 2
    assert _resumed(home) == 2
    rmtree(home / "runs/r/scores/2")
    assert _resumed(home) == 3
    assert _scorings(home) == [1, 2, 3]
