"""A run that is scored once more: nothing that earlier scorings left behind counts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.jobs.screening.commanded import command, write_csv


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        # it tells what the run has cost, and when
        if path.is_file() and path.name != "operations.json"
    }


def test_whatever_lies_in_the_folder_of_a_scoring_the_next_one_is_the_same(
    tmp_path: Path,
) -> None:
    truth = write_csv(
        tmp_path / "truth.csv",
        ("refno", "label", "value"),
        [("P1", "critical temperature", "5"), ("P2", "gap", "1")],
    )
    preds = write_csv(
        tmp_path / "preds.csv",
        ("refno", "property_name", "value_string"),
        [("P1", "critical temp", "5"), ("P2", "gap", "1"), ("P2", "gap", "2")],
    )
    done = command(
        *("import", "property-extraction", "--preds", preds, "--truth", truth),
        *("--model", "m", "--runs-dir", tmp_path, "--run-id", "r", "--no-report"),
    )
    assert done.code == 0, done.err
    scores = tmp_path / "r" / "scores"
    first = files(scores / "1")
    draft = json.loads(first["property_aliases.json"])
    assert draft == {"critical temp": "critical temperature"}
    # what the old loop would have read
    for number in (1, 2, 3):
        folder = scores / str(number)
        (folder / "property_aliases.json").write_text('{"critical temp": "gap"}')
        (folder / "alias_candidates.csv").write_text("pred_name,gt_name\na,b\n")
        done = command("score", tmp_path / "r", "--no-report")
        assert done.code == 0, done.err
        assert files(scores / str(number + 1)) == first
