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
from tests.plugging import plugged
from tests.processes import siftlog


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    target = "tests.jobs.evidence_retrieval.given_job:job"
    return plugged(tmp_path / "plugged", given=target)


def scored(run: str, *words: str, cwd: Path, env: dict[str, str]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(
        siftlog("score", run, *words, "--json", cwd=cwd, env=env).stdout
    )
    return said


def test_command_imports_by_flags_and_by_place_alike(
    tmp_path: Path, env: dict[str, str]
) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    flags = ("--per-query", rows, "--rankings", lists, "--rankings", f"b={lists}")
    siftlog("import", "given", *flags, "--run-id=flags", cwd=tmp_path, env=env)
    siftlog("import", "given", rows, lists, "--run-id=place", cwd=tmp_path, env=env)
    by_flags = scored("flags", cwd=tmp_path, env=env)["models"]
    by_place = scored("place", cwd=tmp_path, env=env)["models"]
    assert list(by_flags) == ["imported", "b"]
    assert list(by_place) == ["imported"]
    assert by_flags["imported"] == by_place["imported"]
    assert by_flags["b"]["metrics"]["positives"]["value"] == 2


def test_run_is_scored_again_without_the_files_it_came_from(
    tmp_path: Path, env: dict[str, str]
) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    words = ("import", "given", "--per-query", rows, "--run-id=r")
    siftlog(*words, cwd=tmp_path, env=env)
    first = scored("r", cwd=tmp_path, env=env)
    rows.unlink()
    again = scored("r", "--prob=p4_prob_raw", cwd=tmp_path, env=env)
    assert again["models"] == first["models"]
    failed = siftlog("score", "r", "--prob=none", cwd=tmp_path, env=env, check=False)
    assert failed.returncode == 1
    assert "no probability column none (it has: p4_prob_calibrated" in failed.stderr


def test_file_that_is_off_leaves_no_run(tmp_path: Path, env: dict[str, str]) -> None:
    rows = write_csv(tmp_path / "l.csv", [*CLEAN, CLEAN[0]])
    words = ("import", "given", "--per-query", rows)
    failed = siftlog(*words, cwd=tmp_path, env=env, check=False)
    assert failed.returncode == 1
    assert "l.csv line 6: post p_1 and criterion A.1 stand at" in failed.stderr
    assert not (tmp_path / "runs").exists()


def test_import_of_nothing_says_what_to_name(
    tmp_path: Path, env: dict[str, str]
) -> None:
    failed = siftlog("import", "given", cwd=tmp_path, env=env, check=False)
    assert failed.returncode == 2
    assert "--per-query" in failed.stderr


@pytest.mark.realdata
def test_published_sample_is_refused_unless_ragged_rows_are_allowed(
    tmp_path: Path, env: dict[str, str], realdata: Path
) -> None:
    sample = realdata / SAMPLE
    words = ("import", "given", "--per-query", sample)
    failed = siftlog(*words, cwd=tmp_path, env=env, check=False)
    assert failed.returncode == 1
    assert "line 3: 15 fields where the header has 16" in failed.stderr
    words = ("import", "given", "--run-id=r", "--allow-ragged", sample)
    siftlog(*words, cwd=tmp_path, env=env)
    card = tmp_path / "runs" / "r" / "scores" / "1" / "scorecard.json"
    codes = [finding["code"] for finding in json.loads(card.read_text())["findings"]]
    assert len(codes) == 8
    assert codes[0] == "ragged_rows"
    strict = siftlog("score", "r", "--strict", cwd=tmp_path, env=env, check=False)
    assert strict.returncode == 6
