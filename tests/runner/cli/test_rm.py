"""The command rm: what it deletes, what it asks, what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec import structs

from store.database import WriterLock
from store.lineage import ForkOrigin
from store.runs import RunFolder, list_runs
from tests.commands import siftlog
from tests.store.logs import FINISHED, written
from tests.store.samples import RUN_STARTED
from tests.terminals import on_terminal


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with three runs."""
    for name in ("one", "only", "two"):
        written(
            RunFolder(_made(tmp_path / "runs" / name)).log, [RUN_STARTED], [FINISHED]
        )
    return tmp_path


def _made(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def _left(home: Path) -> list[str]:
    return [folder.run_id for folder in list_runs(home / "runs")]


def test_runs_are_removed_and_counted(home: Path) -> None:
    done = siftlog("rm", "one", "two", "--yes", "--json", cwd=home)
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["run"], first["removed"]) == ("one", "runs/one")
    assert second["files"] >= 3
    assert second["bytes"] > 1000
    assert _left(home) == ["only"]
    said = siftlog("rm", "only", "--yes", cwd=home).stdout
    assert said.startswith("Removed runs/only: ")
    assert list((home / "runs").iterdir()) == []


def test_a_run_is_kept_for_its_fork(home: Path) -> None:
    origin = ForkOrigin(run="one", seq=2, link="", models=[])
    fork = RunFolder(_made(home / "runs" / "fork"))
    written(fork.log, [structs.replace(RUN_STARTED, fork=origin)], [FINISHED])
    done = siftlog("rm", "one", "--yes", cwd=home, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    # it has adopted none, but a resume would look for them
    assert done.stderr == (
        "siftlog: Run one has a fork, fork, that looks for answers in it: delete fork "
        "first, or both at once; a bundle of the fork needs no other run.\n"
    )
    siftlog("rm", "one", "fork", "--yes", cwd=home)
    assert _left(home) == ["only", "two"]


def test_without_a_terminal_nothing_is_removed_unasked(home: Path) -> None:
    done = siftlog("rm", "one", cwd=home, check=False)
    assert done.returncode == 2
    assert "without a terminal, add --yes" in done.stderr
    assert _left(home) == ["one", "only", "two"]


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", ["only"]), (b"\n", None)])
def test_it_shows_what_would_go_and_asks(
    home: Path, answer: bytes, left: list[str] | None
) -> None:
    with on_terminal(("SIFTLOG", "rm", "one", "tw"), cwd=home) as terminal:
        shown = terminal.read_until(b"[y/N]: ").decode()
        terminal.type(answer)
        terminal.read_until(b"!!!")
        terminal.leader.wait()
    assert "Delete these 2 runs and all answers in it?" in shown
    starts = [line.split()[0] for line in shown.splitlines() if line.strip()]
    assert starts[-3:] == ["one", "two", "Delete"]
    assert _left(home) == (left or ["one", "only", "two"])


def test_a_prefix_is_too_little_to_delete_unasked(home: Path) -> None:
    done = siftlog("rm", "tw", "--yes", cwd=home, check=False)
    assert done.returncode == 2
    assert "'tw' is a prefix of two" in done.stderr
    assert _left(home) == ["one", "only", "two"]


def test_one_refusal_keeps_them_all(home: Path) -> None:
    held = WriterLock(home / "runs" / "two" / "log.lock")
    held.acquire()
    done = siftlog("rm", "one", "two", "--yes", cwd=home, check=False)
    held.release()
    assert done.returncode == 2
    assert "Run two is live: end it first with siftlog drain two" in done.stderr
    (home / "runs" / "other").mkdir()
    for name, said in (("other", "holds no run"), ("three", "no run in runs has")):
        done = siftlog("rm", "one", name, "--yes", cwd=home, check=False)
        assert said in done.stderr
    assert _left(home) == ["one", "only", "two"]


def test_a_damaged_run_can_go(home: Path) -> None:
    shutil.copy(__file__, home / "runs" / "one" / "log.db")
    siftlog("rm", "one", "--yes", cwd=home)
    assert _left(home) == ["only", "two"]
