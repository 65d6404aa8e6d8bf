"""The reviewed aliases of the real free names: which of them gains what."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.jobs.property_extraction.aliases.reviewed_names import REVIEWED
from tests.processes import siftlog

pytestmark = pytest.mark.realdata

WITHOUT_EFFECT = {
    "Sommerfeld coefficient γ",
    "coherence length ξ(0)",
    "dHc2/dT slope",
    "gap ratio 2Δ(0)/(kB Tc)",
    "penetration depth λ(0)",
    "upper critical field Hc2(0) (GL)",
}


def test_fourteen_rows_are_gained_by_thirteen_aliases(
    realdata: Path, tmp_path: Path
) -> None:
    source = realdata / "sci_llm"
    lines = (
        (source / "gt.csv").read_text(encoding="utf-8-sig").splitlines(keepends=True)
    )
    own = [line for line in lines[1:] if line.startswith("Paper_1,")]
    (tmp_path / "truth.csv").write_text("".join((lines[0], *own)))
    with (tmp_path / "reviewed.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("pred_name", "gt_name", "status", "source"))
        writer.writerows(
            (name, targets[0], "accepted", "human")
            for name, targets in REVIEWED.items()
        )
    words = (
        f"--preds={source / 'preds_Ru7B3_free_names.csv'}",
        "--model=free",
        "--truth=truth.csv",
        f"--rubric={source / 'scoring_assets' / 'rubric.csv'}",
        "--pymatgen=leave_out",
        "--run-id=r",
    )
    siftlog("import", "property-extraction", *words, cwd=tmp_path)
    siftlog("score", "r", "--aliases=reviewed.csv", cwd=tmp_path)
    made = json.loads(siftlog("diff", "r", 1, 2, "--json", cwd=tmp_path).stdout)
    (step,) = made["causes"]
    assert [cause["name"] for cause in step["causes"]] == ["aliases"]
    booked = step["booked"]["free"]
    assert (booked["metric"], booked["change"]) == ("tp", 14)
    rows = {row["pred_name"]: row for row in booked["rows"]}
    gained = {name: row["tp_gained"] for name, row in rows.items()}
    assert {name for name, n in gained.items() if not n} == WITHOUT_EFFECT
    assert sorted(gained.values()) == [0] * 6 + [1] * 12 + [2]
    assert gained["superconducting transition temperature Tonset"] == 2
    assert {row["tp_lost"] for row in rows.values()} == {0}
    assert sum(row["rows_renamed"] for row in rows.values()) == 43
    changes = {each["path"]: each["change"] for each in made["metrics"]}
    assert (changes["tp"], changes["fp"], changes["fn"]) == (14, -14, -14)
