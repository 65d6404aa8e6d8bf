"""An import by the command: recorded in a log, replayed, scored again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    SAMPLE,
    ranked,
    write_csv,
    write_jsonl,
)
from tests.processes import siftlog


def scored(run: str, *words: str, cwd: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(
        siftlog("score", run, *words, "--json", cwd=cwd).stdout
    )
    return said


def test_command_imports_by_flags_and_by_place_alike(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    flags = ("--per-query", rows, "--rankings", lists, "--rankings", f"b={lists}")
    siftlog("import", "evidence-retrieval", *flags, "--run-id=flags", cwd=tmp_path)
    siftlog("import", "evidence-retrieval", rows, lists, "--run-id=place", cwd=tmp_path)
    by_flags = scored("flags", cwd=tmp_path)["models"]
    by_place = scored("place", cwd=tmp_path)["models"]
    assert list(by_flags) == ["imported", "b"]
    assert list(by_place) == ["imported"]
    assert by_flags["imported"] == by_place["imported"]
    assert by_flags["b"]["metrics"]["recall@1"]["value"] == 0.5


def test_run_is_scored_again_without_the_files_it_came_from(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    words = ("import", "evidence-retrieval", "--per-query", rows, "--run-id=r")
    siftlog(*words, cwd=tmp_path)
    first = scored("r", cwd=tmp_path)
    rows.unlink()
    again = scored("r", "--prob=p4_prob_raw", cwd=tmp_path)
    brier = [
        said["models"]["imported"]["metrics"]["brier"]["value"]
        for said in (first, again)
    ]
    assert brier == pytest.approx([0.075625, 0.085])
    failed = siftlog("score", "r", "--prob=none", cwd=tmp_path, check=False)
    assert failed.returncode == 1
    assert "no probability column none (it has: p4_prob_calibrated" in failed.stderr


def test_file_that_is_off_leaves_no_run(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", [*CLEAN, CLEAN[0]])
    words = ("import", "evidence-retrieval", "--per-query", rows)
    failed = siftlog(*words, cwd=tmp_path, check=False)
    assert failed.returncode == 1
    assert "l.csv line 6: post p_1 and criterion A.1 stand at" in failed.stderr
    assert not (tmp_path / "runs").exists()


def test_import_of_nothing_says_what_to_name(tmp_path: Path) -> None:
    failed = siftlog("import", "evidence-retrieval", cwd=tmp_path, check=False)
    assert failed.returncode == 2
    assert "--per-query" in failed.stderr


@pytest.mark.realdata
def test_published_sample_is_refused_unless_ragged_rows_are_allowed(
    tmp_path: Path, realdata: Path
) -> None:
    sample = realdata / SAMPLE
    words = ("import", "evidence-retrieval", "--per-query", sample)
    failed = siftlog(*words, cwd=tmp_path, check=False)
    assert failed.returncode == 1
    assert "line 3: 15 fields where the header has 16" in failed.stderr
    words = ("import", "evidence-retrieval", "--run-id=r", "--allow-ragged", sample)
    siftlog(*words, cwd=tmp_path)
    card = tmp_path / "runs" / "r" / "scores" / "1" / "scorecard.json"
    codes = [finding["code"] for finding in json.loads(card.read_text())["findings"]]
    assert len(codes) == 8
    assert codes[0] == "ragged_rows"
    strict = siftlog("score", "r", "--strict", cwd=tmp_path, check=False)
    assert strict.returncode == 6
