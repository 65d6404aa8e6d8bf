"""Text fits a terminal, and stays what it was.

`siftlog merge`, and what other verbs say of a run that is split.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from runner.cli.console import CHECK_FAILED, DONE, USAGE
from runner.cli.main import exit_code
from store.segments.place import Place
from tests.processes import siftlog
from tests.store.segments.carried import carried
from tests.terminals import on_terminal


def test_a_terminal_gets_lines_that_fit_and_a_pipe_gets_them_whole(
    tmp_path: Path,
) -> None:
    siftlog("run", "paper-investigation", "--run-id=r", cwd=tmp_path)
    words = ("COLUMNS=80", "SIFTLOG", "score", "r", "--no-record")
    with on_terminal(words, cwd=tmp_path) as terminal:
        shown = terminal.read_until(b"next      ").decode().splitlines()
    assert [line for line in shown if len(line) > 80] == []
    assert sum(line.startswith("baseline/lexical  ") for line in shown) == 2
    piped = siftlog("score", "r", "--no-record", cwd=tmp_path).stdout.splitlines()
    assert sum(line.startswith("baseline/lexical  ") for line in piped) == 1


class Ran(NamedTuple):
    """A verb that was carried out in this process."""

    returncode: int
    stdout: str
    stderr: str


Run: TypeAlias = Callable[..., Ran]


@pytest.fixture
def ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Ran:
        code = exit_code(list(words))
        return Ran(code, *capsys.readouterr())

    return run


JOB = ("run", "screening", "--run-id", "r1", "--shard")


def test_a_run_that_was_split_is_one_run_again(tmp_path: Path, ran: Run) -> None:
    assert ran(*JOB, "0/2").returncode == DONE
    half = ran("merge", "r1", "--check")
    assert half.returncode == CHECK_FAILED
    assert "missing: slices 512-1023, which no shard has started" in half.stdout
    assert "slices 512-1023 are unfinished in every log" in half.stderr
    stand = ran("status", "r1").stdout
    assert "shards    1 log, 1 ended; slices 512-1023 have not started" in stand
    # another number of shards takes over what there is
    rest = ran(*JOB, "0/1")
    assert rest.returncode == DONE
    assert "score them with: siftlog score r1" in rest.stderr
    whole = ran("merge", "r1", "--check", "--json")
    assert whole.returncode == DONE
    said = json.loads(whole.stdout)
    assert (said["ended"], said["missing"], said["unfinished"]) == (True, "", "")
    assert (said["repeated"], len(said["logs"])) == (0, 2)
    # merging anew says the same
    for file in (tmp_path / "runs" / "r1").glob("log.db*"):
        file.unlink()
    again = json.loads(ran("merge", "r1", "--json").stdout)
    assert again == said
    shown = json.loads(ran("status", "r1", "--json").stdout)
    assert (shown["state"], shown["tasks"]["open"]) == ("finished", 0)
    assert shown["shards"] == {"logs": 2, "ended": 2, "missing": "", "repeated": 0}


def test_logs_that_were_carried_elsewhere_are_found_by_their_place(
    tmp_path: Path, ran: Run
) -> None:
    for i in range(2):
        part = ran(*JOB, f"{i}/2", "--local-dir", f"node{i}", "--ship", "place")
        assert part.returncode == DONE
        assert "siftlog merge r1 --ship place && siftlog score r1" in part.stderr
    merged = ran("merge", "r1", "--ship", "place", "--check")
    assert merged.returncode == DONE
    # and remembered
    assert ran("verify", "r1").returncode == DONE
    assert "shards    2 logs, all slices ended\n" in ran("status", "r1").stdout
    # what cannot be read is told, and hides nothing else
    shutil.rmtree(tmp_path / "runs")
    damaged = min((tmp_path / "place" / "seg").glob("*/*"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    rest = ran("merge", "r1", "--ship", "place", "--check")
    assert rest.returncode == CHECK_FAILED
    assert f"{damaged.name} is no sound segment" in rest.stderr
    assert rest.stdout.count("finished") == 1
    beginning = ran("merge", "runs/r1", "--ship", "place")
    assert beginning.returncode == USAGE
    assert "is not a run id" in beginning.stderr


def test_a_place_that_has_nothing_of_a_run_is_said_and_not_remembered(
    tmp_path: Path, ran: Run
) -> None:
    ran(*JOB, "0/2", "--local-dir", "node0", "--ship", "place")
    (tmp_path / "empty").mkdir()
    for verb in ("merge", "status"):
        nothing = ran(verb, "r1", "--ship", "empty")
        assert nothing.returncode == USAGE
        assert "empty has no readable log: name the --ship" in nothing.stderr
        other = ran(verb, "r2", "--ship", "place")
        assert other.returncode == USAGE
        assert "holds the logs of run r1, not of r2" in other.stderr
    assert not (tmp_path / "runs").exists()
    # what is remembered and has nothing any more is no reason to show nothing
    ran("merge", "r1", "--ship", "place")
    (tmp_path / "place").rename(tmp_path / "gone")
    again = ran("merge", "r1")
    assert again.returncode == DONE
    assert "place no longer holds a log of run r1" in again.stderr
    assert again.stdout.count("finished") == 1


def test_small_segments_are_put_together_where_they_lie(
    tmp_path: Path, ran: Run
) -> None:
    carried(tmp_path / "log.db", Place.of(str(tmp_path / "place")), (2, 4, 6))
    before = ran("merge", "r1", "--ship", "place", "--json").stdout
    said = ran("merge", "r1", "--compact", "--json")
    assert "4 small segments in" in said.stderr
    assert len(list((tmp_path / "place" / "seg").glob("*/*"))) == 1
    shutil.rmtree(tmp_path / "runs")
    again = ran("merge", "r1", "--ship", "place", "--json").stdout
    assert said.stdout == before == again


def test_a_place_is_looked_at_without_opening_a_log(tmp_path: Path, ran: Run) -> None:
    ran(*JOB, "1/4", "--local-dir", "node", "--ship", "place")
    seen = ran("status", "r1", "--ship", "place", "--check")
    assert seen.returncode == CHECK_FAILED
    assert "run r1  1 log, 1 ended" in seen.stdout
    assert "missing: slices 0-255,512-1023, which no shard has started" in seen.stdout
    assert "unfinished: slices 0-255,512-1023" in seen.stdout
    assert not (tmp_path / "runs").exists()
    ran(*JOB, "0/1", "--local-dir", "node", "--ship", "place")
    whole = ran("status", "r1", "--ship", "place", "--check", "--json")
    assert whole.returncode == DONE
    said = json.loads(whole.stdout)
    merged = json.loads(ran("merge", "r1", "--ship", "place", "--json").stdout)
    same = ("run", "ended", "missing", "unfinished")
    assert [said[name] for name in same] == [merged[name] for name in same]
    same = ("log", "slices", "events")
    assert [[log[name] for name in same] for log in said["logs"]] == [
        [log[name] for name in same] for log in merged["logs"]
    ]
    assert ran("status", "r1", "--ship", "place", "--at", "3").returncode == USAGE


def test_what_is_asked_of_shards_elsewhere_is_not_said_to_reach_them(ran: Run) -> None:
    ran(*JOB, "0/2", "--local-dir", "node", "--ship", "place")
    ran("merge", "r1", "--ship", "place")
    drained = ran("drain", "r1")
    assert drained.returncode == USAGE
    assert (
        "shards on other machines do not receive commands from here" in drained.stderr
    )
    limited = ran("limits", "r1", "--rpm", "50")
    assert limited.returncode == DONE
    assert "Shards on other machines do not receive it" in limited.stderr


def test_a_run_that_is_not_split_has_nothing_to_merge(ran: Run) -> None:
    ran("run", "screening", "--run-id", "whole", "--no-score")
    said = ran("merge", "whole")
    assert said.returncode == DONE
    assert "whole is not split" in said.stderr
