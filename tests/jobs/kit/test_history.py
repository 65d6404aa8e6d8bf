"""tests.jobs.test_history"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Done, command
from tests.jobs.remembered import Got, milestone, parts, recorded

ALL = range(4)
GOOD: Got = {"a": {"CD1": ALL, "CD2": ALL}}
WORSE: Got = {"a": {"CD1": [0, 1, 2], "CD2": ALL}}


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def history(*words: object) -> Done:
    return command("history", "review-benchmark", *words)


def as_json(*words: object) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(history("--json", *words).out)
    return said


def test_a_fall_is_listed_with_its_studies_and_ends_with_exit_code_6(
    runs: Path,
) -> None:
    recorded(runs, 1, milestone(GOOD, cost_usd={"a": 0.25}), below=parts(GOOD))
    recorded(runs, 2, None, milestone(GOOD), milestone(WORSE), below=parts(WORSE))
    plain = history()
    assert plain.code == 0
    first, second = plain.out.splitlines()[1:3]
    assert first.split() == [
        "r1",
        "2026-01-02",
        "a",
        "2/2",
        "1.0000",
        "1.0000",
        "0.2500",
        "n/a",
    ]
    assert second.split()[-1] == "-0.1250"
    done = history("--against", "last", "--plot", "drawn")
    assert done.code == 6
    assert "lost    CD1  study 3  score 5 -> 2  below_threshold" in done.out
    assert done.err.splitlines() == [
        "siftlog: macro recall of a fell by 0.1250 since r1, where 0 is the most.",
        "siftlog: the review CD1 passed in r1 and fails with a in r2.",
    ]
    assert (Path("drawn") / "history.svg").exists()
    (made,) = as_json("--against", "r1", "--max-drop", 0.2)["compared"]
    assert [each["part"] for each in made["lost"]] == ["study 3"]
    assert len(made["alerts"]) == 1


def test_runs_of_another_truth_or_matching_are_left_out(runs: Path) -> None:
    recorded(runs, 1, milestone(GOOD, same="other"), below=parts(GOOD))
    recorded(runs, 2, milestone(WORSE), below=parts(WORSE))
    done = history("--against", "best")
    assert done.code == 0
    assert "1 run left out" in done.out
    assert done.err == (
        "note: a has no run to be compared with: no other finished run "
        "sent the same requests.\n"
    )
    assert [own["run"] for own in as_json()["runs"]] == ["r2"]
    assert history("--against", "r1").code == 0


def test_only_models_that_an_earlier_run_has_are_compared(runs: Path) -> None:
    recorded(runs, 1, milestone(GOOD), below=parts(GOOD))
    both = {**WORSE, "b": GOOD["a"]}
    recorded(runs, 2, milestone(both), below=parts(both))
    done = history("--against", "last")
    assert done.code == 6
    assert "note: b has no run to be compared with" in done.err
    assert "r2, a, against r1, a, on 2 reviews:" in done.out


def test_a_changed_database_is_shown_and_an_alert_only_where_it_is_asked_for(
    runs: Path,
) -> None:
    recorded(runs, 1, milestone(GOOD, data="old"), below=parts(GOOD))
    recorded(runs, 2, milestone(WORSE), below=parts(WORSE))
    done = history("--against", "last")
    assert done.code == 0
    assert "database changed" in done.out.splitlines()[1]
    assert "--across-databases lets them in" in done.err
    assert history("--against", "last", "--across-databases").code == 6


def test_an_unfinished_run_is_marked_and_no_alert(runs: Path) -> None:
    recorded(runs, 1, milestone(GOOD), below=parts(GOOD))
    recorded(runs, 2, milestone(WORSE, partial=True), below=parts(WORSE))
    done = history("--against", "last")
    assert done.code == 0
    assert "unfinished" in done.out.splitlines()[2]
    assert "the run is unfinished (siftlog resume, then siftlog score)" in done.err


def test_logs_that_cannot_be_read_and_runs_of_other_jobs_are_passed_over(
    runs: Path,
) -> None:
    recorded(runs, 1, milestone(GOOD, job="other"))
    recorded(runs, 2, None)
    nothing = history("--against", "last")
    assert (nothing.code, nothing.out) == (0, "")
    assert "No run of review-benchmark in runs is in the history" in nothing.err
    (runs / "r3").mkdir()
    (runs / "r3" / "log.db").write_bytes(b"no log")
    recorded(runs, 4, milestone(GOOD))
    done = history("--history", runs)
    assert done.code == 0
    assert [own.split()[0] for own in done.out.splitlines()[1:2]] == ["r4"]
    assert "r3/log.db is not a database" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--max-drop", "0.1"), "add --against"),
        (("--against", "r2"), "r2 is the newest run itself"),
        (("--against", "nobody"), "--against nobody names 0 of the scored runs"),
        (("--against", "r"), "--against r names 2 of the scored runs"),
    ],
)
def test_a_comparison_with_nothing_is_refused_in_a_sentence(
    runs: Path, words: tuple[str, ...], said: str
) -> None:
    recorded(runs, 1, milestone(GOOD))
    recorded(runs, 2, milestone(GOOD))
    done = history(*words)
    assert done.code == 2
    assert said in done.err
