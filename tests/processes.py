"""Real processes of the project's own command, started and ended by these tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol

import pytest

from runner.cli.status import status_json
from store.clock import SystemClock
from store.database import open_reader
from store.errors import StoreError
from store.read.live import live_status
from store.runs import RunFolder
from tests.forking import ForkServer, Request

SIFTLOG = Path(sys.executable).with_name("siftlog")
CLOCK = SystemClock()


class Process(Protocol):
    """A started command, forked or from a fresh interpreter."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return the exit code."""

    def send_signal(self, number: int, /) -> None:
        """Send a signal, unless it has ended."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


@cache
def _server() -> ForkServer:
    # of one worker, or of all
    return ForkServer(os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid())))


def _start(
    words: Iterable[object],
    *,
    cwd: Path,
    env: dict[str, str] | None,
    stdout: IO[str],
    stderr: IO[str] | None = None,
) -> Process:
    """Start the command, by a fork where no variable is for the interpreter."""
    argv, variables = [str(SIFTLOG), *map(str, words)], environment(env)
    fresh = any(
        value != os.environ.get(name)
        for name, value in variables.items()
        if name.startswith(("PYTHON", "LC_", "LANG")) and name != "PYTHONPATH"
    )
    if fresh:
        return subprocess.Popen(
            argv, cwd=cwd, env=variables, stdout=stdout, stderr=stderr, text=True
        )
    with Path(os.devnull).open() as nothing:
        return _server().start(
            Request(argv, str(cwd), variables),
            stdin=nothing.fileno(),
            stdout=stdout.fileno(),
            stderr=2 if stderr is None else stderr.fileno(),
        )


def path_with_command(folder: Path) -> str:
    """Return a `PATH` on which shell scripts find the command, by a fork.

    Args:
        folder: empty; the command is written there.
    """
    _server().write_command(folder / SIFTLOG.name, str(SIFTLOG))
    return os.pathsep.join((str(folder), str(SIFTLOG.parent), os.environ["PATH"]))


def siftlog(
    *words: object, cwd: Path, check: bool = True, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        process = _start(words, cwd=cwd, env=env, stdout=out, stderr=err)
        try:
            code = process.wait(timeout=600)
        finally:
            process.kill()
        for file in (out, err):
            file.seek(0)
        done = subprocess.CompletedProcess(words, code, out.read(), err.read())
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def start(*words: object, cwd: Path, env: dict[str, str] | None = None) -> Process:
    """Start a command and leave it running; its output goes to files in *cwd*."""
    with (cwd / "out.txt").open("a") as out, (cwd / "err.txt").open("a") as err:
        process = _start(words, cwd=cwd, env=env, stdout=out, stderr=err)
    _STARTED.append(process)
    return process


_STARTED: list[Process] = []


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
    read, write = os.pipe()
    with os.fdopen(read) as lines:
        with os.fdopen(write, "w") as out:
            server = _start(("simulate", *words), cwd=cwd, env=env, stdout=out)
        try:
            line = lines.readline().strip()
            yield line[line.index("http") :].split()[0]
        finally:
            server.terminate()
            server.wait(timeout=20)


def status(cwd: Path, run: str) -> dict[str, Any]:
    """What `siftlog status --json` prints, without a process for every look."""
    folder = RunFolder(cwd / "runs" / run)
    folder.catch_up()  # as the command does: a killed process leaves projections behind
    return _status(folder)


def _status(folder: RunFolder) -> dict[str, Any]:
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
            # not caught up: that takes the lock, which a resuming process needs
            stands = _status(RunFolder(cwd / "runs" / run))
        except (OSError, StoreError):
            stands = None  # its log is being made
        if stands is not None and holds(stands):
            return stands
        time.sleep(0.05)
    pytest.fail(f"the run does not get there: {stands}")


def until_said(process: Process, file: Path, text: str, times: int = 1) -> None:
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
