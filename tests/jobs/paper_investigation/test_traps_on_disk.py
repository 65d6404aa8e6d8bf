"""Traps that show in what a run writes: imports and files."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import siftlog
from tests.jobs.paper_investigation.small_run import (
    JOB,
    write_rows,
)

RECORD = {
    "pmcid": "PMC1",
    "ground_truth_variants": ["rs1"],
    "predicted_variants": ["rs1"],
    "variant_recall": 1.0,
    "variant_results": {
        "rs1": {
            "responses": [
                {
                    "source_pipeline": "mcq_drug",
                    "model_response": "b",
                    "correct": True,
                    "expected_answer": "b",
                }
            ]
        }
    },
    "paper_score": 1.0,
}


def test_models_whose_names_meet_or_climb_keep_files_of_their_own(
    tmp_path: Path,
) -> None:
    names = ["a/b", "a_b", "../../../up", "."]
    rows = [{**RECORD, "model": name} for name in names]
    file = write_rows(tmp_path / "x.jsonl", rows)
    before = {path.name for path in tmp_path.iterdir()}
    siftlog("import", JOB, file, "--run-id=r", cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} - before == {"runs"}
    found = {}
    for path in (tmp_path / "runs" / "r" / "scores" / "1").iterdir():
        if path.name.endswith("_responses.jsonl"):
            (line,) = path.read_text().splitlines()
            found[json.loads(line)["model"]] = path.name
    assert sorted(found) == sorted(names)
    assert len(set(found.values())) == len(names)


def test_what_a_record_does_not_say_stays_unknown_however_often_it_is_imported(
    tmp_path: Path,
) -> None:
    file = write_rows(tmp_path / "x.jsonl", [{**RECORD, "model": "m"}])
    name = "m_paper_investigation_responses.jsonl"
    exports = []
    for run in ("one", "two", "three"):
        siftlog("import", JOB, file, f"--run-id={run}", cwd=tmp_path)
        file = tmp_path / "runs" / run / "scores" / "1" / name
        exports.append(file.read_text())
    assert '"question":null' in exports[0]
    assert exports[0] == exports[1] == exports[2]
