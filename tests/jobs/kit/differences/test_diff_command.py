"""The verbs diff and scores, through the real process."""

from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.jobs.kit.differences.rated import MODEL, RatedRun
from tests.jobs.kit.report.reported import Page
from tests.plugging import plugged
from tests.processes import siftlog

GOLD = {"P1/a": 1.0, "P1/<b>": 0.0, "P2/a": 1.0}


class Home(NamedTuple):
    """A folder with a run of a job that is installed for commands in it."""

    path: Path
    env: dict[str, str]

    def said(self, *words: object) -> subprocess.CompletedProcess[str]:
        return siftlog(*words, cwd=self.path, check=False, env=self.env)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Its run was scored under another threshold, then by another gold."""
    path = tmp_path_factory.mktemp("home")
    run = RatedRun(path)
    run.answer({"P1/a": 0.9, "P1/<b>": 0.3, "P2/a": 0.2})
    run.scored(GOLD)
    run.scored(GOLD, threshold=0.25)
    run.scored({**GOLD, "P2/a": 0.0}, threshold=0.25)
    env = plugged(path / "plugins", rated="tests.jobs.kit.differences.rated:job")
    return Home(path, env)


def test_one_scoring_has_no_difference(home: Home, tmp_path: Path) -> None:
    run = RatedRun(tmp_path)
    run.answer({"P1/a": 0.9})
    run.scored(GOLD)
    done = home.said("diff", "r", "--runs-dir", tmp_path / "runs")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "siftlog: Run r has one scoring, and a difference needs two: siftlog score r "
        "makes another.\n"
    )


def test_a_difference_is_told_by_cause_and_item(home: Home) -> None:
    done = home.said("diff", "r", 1, 3, "--top=1", "--html=d.html")
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "scoring again: scoring 1",
            "scoring again: input gold",
            "scoring again: setting threshold",
        ],
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "rated  run r  scoring 1 -> 3"
    assert "cause      setting threshold 0.5 -> 0.25: 4 metrics, 1 verdict" in lines
    at = lines.index("  metric    before   after   change  by")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        ["accuracy", "0.6667", "0.6667", "+0"],
        ["+0.3333", "gold"],
        ["-0.3333", "threshold"],
    ]
    assert "    +0.3333       0      1  P2/a" in lines
    assert "  P1/<b>: 0.3 (right) -> 0.3 (wrong)" in lines
    text = " ".join(" ".join(lines).split())
    assert "metrics 4 metrics changed" in text
    assert (
        "result accuracy of m-large: 0.6667 -> 0.6667 (+0), by input gold and" in text
    )
    page = Page((home.path / "d.html").read_text(encoding="utf-8"))
    assert "rated: scoring 1 to 3 of run r" in page.text
    assert "P1/<b> 1 0 -0.3333" in page.text


def test_a_program_gets_fractions_that_add_up(home: Home) -> None:
    made = json.loads(home.said("diff", "r", 1, 3, "--json").stdout)
    (accuracy,) = (each for each in made["metrics"] if each["path"] == "accuracy")
    assert [part["causes"] for part in accuracy["parts"]] == [
        ["input gold"],
        ["setting threshold"],
    ]
    parts = [Fraction(part["exact"]) for part in accuracy["parts"]]
    assert sum(parts) == Fraction(accuracy["exact"]) == 0
    (booked,) = (cause["booked"] for cause in made["causes"] if cause["booked"])
    assert booked[MODEL]["rows"] == [{"side": "any", "n": -1}]


def test_a_metric_that_is_named_is_shown_alone(home: Home) -> None:
    made = json.loads(home.said("diff", "r", 1, 2, "--metric=we*", "--json").stdout)
    assert [each["path"] for each in made["metrics"]] == ["weighted"]


def test_a_metric_that_there_is_not_is_told_with_the_nearest(home: Home) -> None:
    done = home.said("diff", "r", "--metric=acuracy")
    assert done.returncode == 2
    assert "There is no metric acuracy; did you mean 'accuracy'?" in done.stderr


def test_scorings_are_listed_with_what_each_changed(home: Home) -> None:
    lines = home.said("scores", "r").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["scoring", "1", "2", "3"]
    assert lines[1].endswith("-")
    assert lines[2].endswith("threshold 0.5 -> 0.25")
    assert lines[3].endswith("another gold")
    made = [
        json.loads(line)
        for line in home.said("scores", "r", "--json").stdout.splitlines()
    ]
    assert [each["reached"] for each in made] == [
        {MODEL: 2 / 3},
        {MODEL: 1 / 3},
        {MODEL: 2 / 3},
    ]
    assert made[2]["changed"] == {
        "settings": {},
        "inputs": ["gold"],
        "seq": 1,
        "code": False,
        "definitions": False,
    }
