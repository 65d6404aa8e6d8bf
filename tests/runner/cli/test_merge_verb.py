"""`siftlog merge`, and what other verbs say of a run that is split."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess

from runner.cli.speech import CHECK_FAILED, DONE, USAGE
from tests.processes import siftlog


def ran(place: Path, *words: str) -> CompletedProcess[str]:
    return siftlog(*words, cwd=place, check=False)


JOB = ("run", "screening", "--run-id", "r1", "--shard")


def test_a_run_that_was_split_is_one_run_again(tmp_path: Path) -> None:
    assert ran(tmp_path, *JOB, "0/2").returncode == DONE
    half = ran(tmp_path, "merge", "r1", "--check")
    assert half.returncode == CHECK_FAILED
    assert "missing: slices 512-1023, which no shard has begun" in half.stdout
    assert "slices 512-1023 have not come to their end in any log" in half.stderr
    stand = ran(tmp_path, "status", "r1").stdout
    assert "shards    1 log, 1 of them ended; slices 512-1023 have not begun" in stand
    # another number of shards takes over what there is
    rest = ran(tmp_path, *JOB, "0/1")
    assert rest.returncode == DONE
    assert "score them with: siftlog score r1" in rest.stderr
    whole = ran(tmp_path, "merge", "r1", "--check", "--json")
    assert whole.returncode == DONE
    said = json.loads(whole.stdout)
    assert (said["ended"], said["missing"], said["unfinished"]) == (True, "", "")
    assert (said["repeated"], len(said["logs"])) == (0, 2)
    # merging anew says the same
    for file in (tmp_path / "runs" / "r1").glob("log.db*"):
        file.unlink()
    again = json.loads(ran(tmp_path, "merge", "r1", "--json").stdout)
    assert again == said
    shown = json.loads(ran(tmp_path, "status", "r1", "--json").stdout)
    assert (shown["state"], shown["tasks"]["open"]) == ("finished", 0)
    assert shown["shards"] == {"logs": 2, "ended": 2, "missing": "", "repeated": 0}


def test_logs_that_were_carried_elsewhere_are_found_by_their_place(
    tmp_path: Path,
) -> None:
    for i in range(2):
        part = ran(
            tmp_path,
            *JOB,
            f"{i}/2",
            "--local-dir",
            f"node{i}",
            "--ship",
            "place",
        )
        assert part.returncode == DONE
        assert "siftlog merge r1 --ship place && siftlog score r1" in part.stderr
    merged = ran(
        tmp_path,
        "merge",
        "r1",
        "--ship",
        "place",
        "--check",
    )
    assert merged.returncode == DONE
    # and remembered
    assert ran(tmp_path, "verify", "r1").returncode == DONE
    assert "2 logs, 2 of them ended" in ran(tmp_path, "status", "r1").stdout
    # what cannot be read is told, and hides nothing else
    shutil.rmtree(tmp_path / "runs")
    damaged = min((tmp_path / "place" / "seg").glob("*/*"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    rest = ran(tmp_path, "merge", "r1", "--ship", "place", "--check")
    assert rest.returncode == CHECK_FAILED
    assert f"holds no sound segment of log {damaged.parent.name}" in rest.stderr
    assert rest.stdout.count("finished") == 1
    beginning = ran(
        tmp_path,
        "merge",
        "runs/r1",
        "--ship",
        "place",
    )
    assert beginning.returncode == USAGE
    assert "is no run id" in beginning.stderr


def test_a_run_that_is_not_split_has_nothing_to_merge(tmp_path: Path) -> None:
    ran(tmp_path, "run", "screening", "--run-id", "whole")
    said = ran(tmp_path, "merge", "whole")
    assert said.returncode == DONE
    assert "whole is not split" in said.stderr
