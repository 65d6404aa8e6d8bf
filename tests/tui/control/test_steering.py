"""A live run steered from a terminal: by keys alone, and the run's own log tells it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from store.control import CommandOutcome, CommandRecord, CommandTail, command_log
from store.database import open_reader
from store.runs import RunFolder
from tests.corpus import write_corpus
from tests.processes import simulated, start, status, until
from tests.terminals import WATCH, Terminal, on_terminal

JOB = "paper-investigation"


def _answered(folder: RunFolder, count: int) -> list[CommandRecord]:
    """The requests, once so many were carried out."""
    for _ in range(1500):
        with open_reader(folder.log) as reader:
            found = command_log(reader, CommandTail(folder.control).read())
        if sum(each.answer is CommandOutcome.APPLIED for each in found) == count:
            return found
        time.sleep(0.05)
    pytest.fail(f"not all of it was carried out: {found}")


def _ask(terminal: Terminal, keys: bytes, figures: bytes) -> None:
    """Open a dialog, wait for what it would come to, and mean it."""
    terminal.type(keys)
    assert figures in terminal.read_until(figures)
    terminal.type(b"y")


@pytest.mark.timeout(120)
def test_a_run_started_elsewhere_is_paused_limited_retried_and_resumed_by_keys(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 160)
    folder = RunFolder(tmp_path / "runs" / "r")
    faults = ("--latency-ms=150", "--rate-5xx=0.2", "--job", JOB)
    with simulated(*faults, cwd=tmp_path) as url:
        engine = (f"--base-url={url}", "--concurrency=8", "--run-id=r")
        model = ("--model=x", "--price=1,4", "--budget=50", "--deadline-s=0.1")
        process = start("run", JOB, *corpus, *engine, *model, cwd=tmp_path)
        try:
            until(tmp_path, "r", lambda s: bool(s["errors"]))
            _steer(tmp_path, folder)
            assert process.poll() is None, "leaving the monitor is nothing to the run"
        finally:
            process.kill()
            process.wait(20)


def _steer(cwd: Path, folder: RunFolder) -> None:
    words = (
        f"export PYTHONPATH={':'.join(sys.path)} TERM=xterm-256color LANG=C.UTF-8;",
        f"stty rows 40 columns 120; {sys.executable} -c '{WATCH}' r",
    )
    with on_terminal(words, cwd=cwd) as terminal:
        terminal.read_until(b"live")
        _ask(terminal, b"P", b"would be held back")
        _answered(folder, 1)
        assert status(cwd, "r")["state"] == "paused"
        terminal.type(b"L")
        terminal.read_until(b"now: ")
        _ask(terminal, b"3\r", b"fewer while the endpoint")
        _answered(folder, 2)
        _ask(terminal, b"R", b"would be retried")
        _answered(folder, 3)
        _ask(terminal, b"P", b"would go on")
        found = _answered(folder, 4)
        terminal.type(b"q")
        assert b"The monitor has quit; r continues." in terminal.read_until(
            b"continues."
        )
    assert [each.words for each in found] == [
        "pause",
        "limits model x concurrency 3",
        "retry filter state:failed",
        "resume",
    ]
    states = [each.expected_state for each in found]
    assert states[1:] == ["paused", "paused", "paused"]
    assert "tasks reopened" in (found[2].said or "")
