"""Score, verify, build, score again: each an explicit command, and nothing between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.property_extraction.aliases.files import read_aliases
from jobs.property_extraction.aliases.preparing import prepared_aliases
from jobs.property_extraction.settings import PropertySettings
from runner.errors import DatasetError, UsageError
from tests.jobs.screening.commanded import command

TRUTH = """\
refno,label,property_value,unit
P1,critical temperature,5.2,K
P1,-slope in Hc2 vs T,1.5,T/K
P2,critical temperature,6.5,K
P2,Debye temperature,200,K
"""
PREDICTIONS = """\
refno,property_name,value_string,units
P1,superconducting critical temperature,5.2,K
P1,'-slope of Hc2 vs T,1.7,T/K
P2,superconducting critical temperature,6.4,K
P2,debye temperature,200,K
"""


def done(*words: object) -> str:
    """What a command prints, which must go well."""
    found = command(*words)
    assert found.code == 0, found.err
    return found.out


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was imported and scored, and one that verified its candidates."""
    cwd = tmp_path_factory.mktemp("loop")
    (cwd / "truth.csv").write_text(TRUTH, encoding="utf-8")
    (cwd / "preds.csv").write_text(PREDICTIONS, encoding="utf-8")
    job, folder = "property-extraction", cwd / "runs"
    done(
        *("import", job, "--run-id", "free", "--runs-dir", folder, "--no-report"),
        *("--model", "m", "--preds", cwd / "preds.csv", "--truth", cwd / "truth.csv"),
        *("--set", "unknown_rubric=exact"),
    )
    done(
        *("run", job, "--mode", "verify", "--run-id", "asked", "--runs-dir", folder),
        *("--candidates", candidates(cwd), "--no-score"),
    )
    return cwd


def candidates(cwd: Path) -> Path:
    return cwd / "runs" / "free" / "scores" / "1" / "alias_candidates.csv"


def test_the_loop_gains_what_was_verified_and_leaves_no_trace_in_other_scorings(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    printed = done(
        *("prepare", "property-extraction", "aliases", "--verdicts", "asked"),
        *("--candidates", candidates(runs), "--out", "set", "--json"),
    )
    built: dict[str, Any] = json.loads(printed.splitlines()[-1])
    assert built["created_from"] == {
        "run": "free",
        "scoring": 1,
        "verification_runs": ["asked"],
    }
    path = runs / "set" / f"aliases-{built['id']}.json"
    found = read_aliases(path).alias_set
    assert {
        (entry.pred_name, entry.gt_name, entry.source, entry.models)
        for entry in found.accepted
    } >= {
        (
            "superconducting critical temperature",
            "critical temperature",
            "llm",
            ("baseline/lexical",),
        ),
        ("debye temperature", "Debye temperature", "exact", ()),
    }
    done("score", "free", "--aliases", path, "--no-report")
    done("score", "free", "--no-report")
    first, renamed, again = (
        runs / "runs" / "free" / "scores" / str(number) for number in (1, 2, 3)
    )
    values = [
        [own["metrics"][name]["value"] for name in ("tp", "fp", "fn")]
        for own in (
            json.loads((folder / "scorecard.json").read_text("utf-8"))["models"]["m"]
            for folder in (first, renamed)
        )
    ]
    assert values == [[0, 4, 4], [2, 2, 2]]
    # the draft map of the first scoring lies there, and no later one has looked at it
    for name in ("scorecard.json", "property_aliases.json", "alias_candidates.csv"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    # names with an alias are settled: their wrong values suggest no second target
    suggested = (renamed / "alias_candidates.csv").read_text("utf-8")
    assert "superconducting" not in suggested
    assert "'-slope in Hc2 vs T,'-slope in Hc2 vs T" in suggested


def test_a_run_whose_candidates_were_changed_gives_no_verdicts(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    asked, path = PropertySettings(verdicts=(Path("asked"),)), candidates(runs)
    before = path.read_text("utf-8")
    path.write_text(f"{before}1,a,b,1,0.5,false,0,false,1,\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="is not the file that run asked was start"):
        prepared_aliases(asked)
    path.write_text(before, encoding="utf-8")
    with pytest.raises(UsageError, match="Run free verifies no names"):
        prepared_aliases(PropertySettings(verdicts=(Path("free"),)))
