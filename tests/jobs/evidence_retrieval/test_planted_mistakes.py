"""Three mistakes that flatter a result, each planted and each caught by a command.

A leak is caught by the experiments on a run (`--deep-checks`), thresholds that two
folds have swapped by the rows that contradict them, and a wrong denominator by the
second computation of every stored number. Each time the honest twin passes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.evidence_retrieval.given_files import Rows, write_csv
from tests.plugging import plugged
from tests.processes import siftlog

REFUSED = 6

TAUS = {0: (0.1, 0.8), 1: (0.35, 0.6)}


def row(fold: int, post: int, criterion: int) -> dict[str, object]:
    """A prediction as a gate would write it."""
    y = (post + criterion) % 3 == 0
    p = (15 * post + 35 * criterion + 40 * y) % 100 / 100
    low, high = TAUS[fold]
    state = "NEG" if p < low else "UNCERTAIN" if p < high else "POS"
    return {
        "fold_id": fold,
        "post_id": f"post_{post}",
        "criterion_id": f"A.{criterion}",
        "p4_prob_calibrated": p,
        "has_evidence_gold": int(y),
        "state": state,
        "tau_neg": low,
        "tau_pos": high,
    }


ROWS: Rows = [
    row(fold, 10 * fold + post, criterion)
    for fold in TAUS
    for post in range(1, 7)
    for criterion in (1, 2)
]


def scored(desk: Path, run: str, *words: object) -> tuple[int, str]:
    """How a scoring ends, and what it says."""
    done = siftlog("score", run, *words, cwd=desk, check=False)
    return done.returncode, done.stdout + done.stderr


def imported(desk: Path, run: str, rows: Rows) -> Path:
    """The folder of a run that imported the rows; what it finds does not end it."""
    path = write_csv(desk / f"{run}.csv", rows)
    siftlog("import", "evidence-retrieval", path, f"--run-id={run}", cwd=desk)
    return desk / "runs" / run


@pytest.mark.timeout(120)
def test_a_gate_that_learns_from_its_test_posts_is_caught(tmp_path: Path) -> None:
    run = ("run", "evidence-retrieval", "--model=baseline/lexical", "--no-score")
    siftlog(*run, "--run-id=r", cwd=tmp_path)
    checks = ("--deep-checks", "--strict", "--boot-b=0")
    honest, _ = scored(tmp_path, "r", *checks)
    assert honest == 0
    target = "tests.jobs.evidence_retrieval.leaking_job:job"
    leaky = plugged(tmp_path / "plugged", **{"evidence-retrieval": target})
    done = siftlog("score", "r", *checks, cwd=tmp_path, env=leaky, check=False)
    assert done.returncode == REFUSED
    written = json.loads((tmp_path / "runs/r/scores/2/leakage.json").read_text())
    found = {finding["code"] for check in written for finding in check["findings"]}
    assert {"post_overlap", "gold_scramble", "test_removal"} <= found


def test_thresholds_that_two_folds_have_swapped_are_caught(tmp_path: Path) -> None:
    swapped = [
        {**each, "tau_neg": TAUS[1 - fold][0], "tau_pos": TAUS[1 - fold][1]}
        for each, fold in ((each, int(str(each["fold_id"]))) for each in ROWS)
    ]
    honest = imported(tmp_path, "honest", ROWS)
    assert scored(tmp_path, "honest", "--strict")[0] == 0

    imported(tmp_path, "swapped", swapped)
    code, said = scored(tmp_path, "swapped", "--strict")
    assert code == REFUSED
    assert "states do not follow from p and the thresholds" in said

    stored = honest / "scores/1/summary.json"
    assert scored(tmp_path, "honest", "--against", stored)[0] == 0
    code, said = scored(tmp_path, "swapped", "--against", stored)
    assert code == REFUSED
    assert "tau_neg is stored as 0.1, but the rows give 0.35" in said


def by_a_constant(deployment: dict[str, Any]) -> None:
    """Misses by the number of queries that another data set has."""
    deployment["screening_fn_per_1000"] *= len(ROWS) / len(TAUS) / 14_770


def by_the_alerts(deployment: dict[str, Any]) -> None:
    """Precision and recall with their denominators exchanged."""
    exchanged = deployment["alert_recall"], deployment["alert_precision"]
    deployment["alert_precision"], deployment["alert_recall"] = exchanged


@pytest.mark.parametrize("spoil", [by_a_constant, by_the_alerts])
def test_a_wrong_denominator_is_caught(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], None]
) -> None:
    stored = imported(tmp_path, "r", ROWS) / "scores/1/summary.json"
    summary = json.loads(stored.read_text())
    for fold in summary["fold_results"]:
        spoil(fold["test_metrics"]["deployment"])
    (tmp_path / "spoiled.json").write_text(json.dumps(summary))
    assert scored(tmp_path, "r", "--against", stored)[0] == 0
    code, said = scored(tmp_path, "r", "--against=spoiled.json")
    assert code == REFUSED
    assert "but the rows give" in said


def test_a_denominator_that_is_another_known_one_is_named(tmp_path: Path) -> None:
    folder = imported(tmp_path, "r", ROWS)
    summary = json.loads((folder / "scores/1/summary.json").read_text())
    for fold in summary["fold_results"]:
        own = fold["test_metrics"]["deployment"]
        own["screening_fn_per_1000"] = 1000 * (1 - own["screening_sensitivity"])
    (tmp_path / "spoiled.json").write_text(json.dumps(summary))
    scored(tmp_path, "r", "--against=spoiled.json")
    with (folder / "scores/2/verification.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if "fn_per_1000" in r["path"]]
    wrong = [row for row in rows if row["verdict"] == "other definition"]
    assert wrong
    assert all("positive" in row["why"] for row in wrong)
