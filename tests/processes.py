"""Real processes of the project's own command, started and ended by these tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.cli.status import status_json
from store.clock import SystemClock
from store.database import open_reader
from store.errors import StoreError
from store.read.live import live_status
from store.runs import RunFolder

SIFTLOG = Path(sys.executable).with_name("siftlog")
CLOCK = SystemClock()


def siftlog(
    *words: object, cwd: Path, check: bool = True, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    done = subprocess.run(
        [SIFTLOG, *map(str, words)],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def start(
    *words: object, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a command and leave it running; its output goes to files in *cwd*."""
    out = (cwd / "out.txt").open("a")
    err = (cwd / "err.txt").open("a")
    with out, err:
        process = subprocess.Popen(
            [SIFTLOG, *map(str, words)],
            cwd=cwd,
            env=environment(env),
            stdout=out,
            stderr=err,
            text=True,
        )
    _STARTED.append(process)
    return process


_STARTED: list[subprocess.Popen[str]] = []


def end_started() -> None:
    """End what a test has started and, as it failed, not ended."""
    while _STARTED:
        process = _STARTED.pop()
        process.kill()
        process.wait()


@contextmanager
def simulated(
    *words: object, cwd: Path, env: dict[str, str] | None = None
) -> Iterator[str]:
    """A simulated endpoint; its base URL."""
    server = subprocess.Popen(
        [SIFTLOG, "simulate", *map(str, words)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(env),
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline().strip()
        yield line[line.index("http") :].split()[0]
    finally:
        server.terminate()
        server.wait(timeout=20)
        assert server.stdout is not None
        server.stdout.close()


def status(cwd: Path, run: str) -> dict[str, Any]:
    """What `siftlog status --json` prints, without a process for every look."""
    folder = RunFolder(cwd / "runs" / run)
    # asked before reading: what a dying writer committed last is not missed
    is_held = folder.is_alive()
    with open_reader(folder.log) as reader:
        seen = live_status(reader, CLOCK.now_us(), is_held=is_held)
    return json.loads(json.dumps(status_json(seen)))


def until(
    cwd: Path, run: str, holds: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """How a run stands once it stands so, which another process sees to."""
    for _ in range(1000):
        try:
            stands = status(cwd, run)
        except (OSError, StoreError):
            stands = None  # its log is being made
        if stands is not None and holds(stands):
            return stands
        time.sleep(0.05)
    pytest.fail(f"the run does not get there: {stands}")


def until_said(
    process: subprocess.Popen[str], file: Path, text: str, times: int = 1
) -> None:
    """Wait until that stands in the *file* to which *process*, or its child, writes."""
    while not file.exists() or file.read_text("utf-8").count(text) < times:
        assert process.poll() is None, f"it has ended, and never said: {text}"
        time.sleep(0.02)


_ELSEWHERE = {"OPENAI_API_KEY", "CI", "NO_COLOR", "SSH_CONNECTION", "TEXTUAL_THEME"}
"""Says where the tests run, and is no business of the commands they start."""


def environment(extra: dict[str, str] | None) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SIFTLOG_") and name not in _ELSEWHERE
    }
    # what simulated models cost nobody asks, but the tests of prices; nor does anybody
    # look at reports but their tests, and drawing one takes longer than many a run. How
    # many of their replies are of use depends on a seed, so only its own tests stop for
    # that
    unasked = {
        "SIFTLOG_ALLOW_UNKNOWN_PRICE": "1",
        "SIFTLOG_NO_REPORT": "1",
        "SIFTLOG_STOP_IF": "off",
    }
    return {**kept, **unasked, **(extra or {})}
