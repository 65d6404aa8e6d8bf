"""What fails a check reaches the exit code, after everything was printed and kept."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from store.database import open_reader
from store.events import ScoringRecorded
from store.read.tasks import events
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.plugging import plugged


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run of the job `checked`, of three items."""
    plugged(tmp_path / "plugins", checked="tests.runner.cli.checked:job")
    monkeypatch.syspath_prepend(tmp_path / "plugins")
    (tmp_path / "right").write_text("3")
    (tmp_path / "wrong").write_text("4")
    siftlog("run", "checked", "--run-id=r", cwd=tmp_path)
    return tmp_path


def ends(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return siftlog(*words, cwd=cwd, check=False)


def test_a_scoring_against_a_file_that_holds_something_else_ends_with_6(
    checked: Path,
) -> None:
    done = ends("score", "r", "--against", "wrong", "--json", cwd=checked)
    assert done.returncode == 6
    assert done.stderr.splitlines()[-1] == "siftlog: There are 3 items."
    said = json.loads(done.stdout)
    assert said["failures"] == ["There are 3 items."]
    # it is a scoring like any other, and kept
    folder = checked / "runs/r/scores" / str(said["scoring"])
    assert json.loads((folder / "scorecard.json").read_text())["failures"]


def test_a_scoring_against_a_file_that_agrees_ends_with_0(checked: Path) -> None:
    done = ends("score", "r", "--against=right", cwd=checked)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_file_is_an_input_of_its_scoring(checked: Path) -> None:
    siftlog("score", "r", "--against", "right", cwd=checked)
    with open_reader(checked / "runs/r/log.db") as reader:
        *_, last = events(reader, limit=1000, kinds=["scoring_recorded"])
    assert isinstance(last.event, ScoringRecorded)
    assert [given.setting for given in last.event.inputs] == ["against"]


@pytest.mark.parametrize(("file", "code"), [("right", 0), ("wrong", 6)])
@pytest.mark.parametrize("verb", ["run", "import"])
def test_a_run_and_an_import_are_checked_as_they_end(
    checked: Path, verb: str, file: str, code: int
) -> None:
    answers = checked / "answers.txt"
    answers.write_text("a\nb\nc\n")
    words = (verb, "checked", *([answers] if verb == "import" else []))
    done = ends(*words, "--against", file, "--run-id=s", "--json", cwd=checked)
    *_, last = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, last["exit"], last["scoring"]) == (code, code, 1)
    assert ("There are 3 items." in done.stderr) == (code == 6)


def test_strict_ends_with_6_where_a_finding_is_an_error(checked: Path) -> None:
    assert ends("score", "r", cwd=checked).returncode == 0
    done = ends("score", "r", "--strict", cwd=checked)
    assert done.returncode == 6
    assert "3 items" in done.stdout
    assert "1 findings are errors: Odd." in done.stderr


@pytest.mark.parametrize(
    ("least", "code", "told"),
    [
        ("3", 0, ""),
        ("3.5", 6, "items of baseline/lexical is 3, below 3.5."),
        ("items=4", 6, "items of baseline/lexical is 3, below 4."),
        ("nothing=0", 6, "nothing of baseline/lexical is undefined, where 0 is the "),
        ("item=0", 6, "There is no metric item; did you mean 'items'?"),
        ("zzz=0", 6, "There is no metric zzz; siftlog score RUN --json lists them."),
        ("items", 2, "--fail-under items: write a number, or PATH=NUMBER"),
        ("items=nan", 2, "--fail-under items=nan: write a number"),
    ],
)
def test_a_metric_below_its_floor_or_undefined_ends_with_6(
    checked: Path, least: str, code: int, told: str
) -> None:
    done = ends("score", "r", "--fail-under", least, "--no-record", cwd=checked)
    assert (done.returncode, told in done.stderr) == (code, True)
    assert ("3 items" in done.stdout) == (code != 2)


def test_every_floor_that_is_missed_is_told(checked: Path) -> None:
    floors = ("--fail-under=9", "--fail-under=nothing=1", "--fail-under=items=1")
    done = ends("score", "r", *floors, cwd=checked)
    assert done.stderr.count("siftlog: ") == 2


def test_paper_investigation_is_judged_by_the_paper_score(tmp_path: Path) -> None:
    siftlog(
        "run",
        "paper-investigation",
        *write_corpus(tmp_path / "corpus", 2),
        "--run-id=r",
        cwd=tmp_path,
    )
    low, high = (
        ends("score", "r", "--fail-under", least, cwd=tmp_path) for least in (0, 1.5)
    )
    assert (low.returncode, high.returncode) == (0, 6)
    assert "siftlog: avg_paper_score of baseline/lexical is " in high.stderr
