"""A run whose folder is taken away while calls are in flight."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpus import write_corpus
from tests.gates import gated
from tests.processes import simulated, start


def _deleted(folder: Path) -> None:
    shutil.rmtree(folder)


def _moved(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def _log_renamed(folder: Path) -> None:
    (folder / "log.db").rename(folder / "log.old")


def _log_replaced(folder: Path) -> None:
    copy = folder / "copy.db"
    shutil.copyfile(folder / "log.db", copy)
    copy.replace(folder / "log.db")


def _wal_deleted(folder: Path) -> None:
    (folder / "log.db-wal").unlink()


@pytest.mark.parametrize(
    "take_away", [_deleted, _moved, _log_renamed, _log_replaced, _wal_deleted]
)
def test_a_run_whose_log_is_gone_stops_with_a_sentence(
    take_away: Callable[[Path], None], tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 8)
    with simulated(cwd=tmp_path) as url, gated(url, passes=3) as gate:
        process = start(
            *("run", "paper-investigation", *corpus, "--run-id=r", "--model=openai/x"),
            *(f"--base-url={gate.url}", "--concurrency=4", "--price=1,1"),
            cwd=tmp_path,
            env={"OPENAI_API_KEY": "none"},
        )
        gate.wait(process)
        take_away(tmp_path / "runs" / "r")
        # a heartbeat comes once a second; the rest is a busy machine's
        assert process.wait(timeout=10) == 1
    said = (tmp_path / "err.txt").read_text().splitlines()
    assert "Traceback" not in "".join(said)
    assert "was deleted, moved or replaced while the run was writing" in said[-1]
    assert "no further call is sent" in said[-1]
    # nobody makes the folder again
    assert not (take_away is _deleted and (tmp_path / "runs" / "r").exists())
