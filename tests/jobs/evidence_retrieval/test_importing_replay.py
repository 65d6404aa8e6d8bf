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
    assert by_flags["b"]["metrics"]["recall@1"]["value"] == 0.5


def test_run_is_scored_again_without_the_files_it_came_from(
    tmp_path: Path, env: dict[str, str]
) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    words = ("import", "given", "--per-query", rows, "--run-id=r")
    siftlog(*words, cwd=tmp_path, env=env)
    first = scored("r", cwd=tmp_path, env=env)
    rows.unlink()
    again = scored("r", "--prob=p4_prob_raw", cwd=tmp_path, env=env)
    brier = [
        said["models"]["imported"]["metrics"]["brier"]["value"]
        for said in (first, again)
    ]
    assert brier == pytest.approx([0.075625, 0.085])
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


@pytest.mark.realdata
@pytest.mark.parametrize("folder", ["bge_m3_rrf_top20", "baseline_default_val"])
@pytest.mark.parametrize("profile", ["published-lists", "siftlog"])
def test_recorded_lists_are_imported_and_their_summary_verified(
    tmp_path: Path, env: dict[str, str], realdata: Path, folder: str, profile: str
) -> None:
    said = {
        ("bge_m3_rrf_top20", "published-lists"): "64 numbers compared, 64 equal",
        ("bge_m3_rrf_top20", "siftlog"): "56 equal, 8 other definition",
        ("baseline_default_val", "published-lists"): "32 numbers compared, 32 equal",
        ("baseline_default_val", "siftlog"): "30 equal, 2 other definition",
    }
    files = realdata / "evidence_pipeline" / folder
    words = ("--per-query", files / "per_query.csv", "--run-id=r", "--boot-b=0")
    stored = ("--against", files / "summary.json", "--profile", profile)
    done = siftlog("import", "given", *words, *stored, cwd=tmp_path, env=env)
    assert said[folder, profile] in done.stdout
    assert "findings  0 errors  0 warnings" in done.stdout


@pytest.mark.realdata
def test_check_numbers_of_the_recorded_lists_are_printed_by_the_command(
    tmp_path: Path, env: dict[str, str], realdata: Path
) -> None:
    path = realdata / "evidence_pipeline" / "bge_m3_rrf_top20" / "per_query.csv"
    siftlog("import", "given", path, "--run-id=r", "--no-score", cwd=tmp_path, env=env)
    metrics = scored("r", cwd=tmp_path, env=env)["models"]["imported"]["metrics"]
    for name, value, lo, hi in (
        ("recall@10", 0.8848809523809523, 0.8197412480974124, 0.9403073286052008),
        ("ndcg@10", 0.6901598854925285, 0.6275015327277089, 0.7536083370935978),
        ("mrr", 0.6393551543424387, 0.5724303303932314, 0.7059623464982989),
    ):
        found = metrics[name]
        assert found["value"] == pytest.approx(value, abs=1e-12)
        assert (found["lo"], found["hi"]) == pytest.approx((lo, hi), abs=1e-12)
    retriever = metrics["retriever.ndcg@10"]["value"]
    assert retriever == pytest.approx(0.6805939208340914, abs=1e-12)
