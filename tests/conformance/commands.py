"""Runs the command as a process that these tests may kill; its output goes to files.

A price that is not known ends a run here as it does for users.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Final

from tests import processes
from tests.processes import Process

LONGEST_S: Final = 120.0


def start(*words: object, cwd: Path, env: Mapping[str, str]) -> Process:
    """Start a command in *cwd*; its output goes to `out.txt` and `err.txt` there."""
    plain = {"SIFTLOG_ALLOW_UNKNOWN_PRICE": "0", **env}
    return processes.start(*words, cwd=cwd, env=plain)


def runs_on(process: Process, seconds: float) -> bool:
    """Wait so long for the end of a command; whether it still runs."""
    with suppress(TimeoutExpired):
        process.wait(seconds)
    return process.poll() is None


def finish(process: Process) -> int:
    """The exit code of a command; it is killed where it takes far too long."""
    if runs_on(process, LONGEST_S):
        process.kill()
    return process.wait()


def run(*words: object, cwd: Path, env: Mapping[str, str]) -> int:
    """Run a command to its end; its exit code."""
    return finish(start(*words, cwd=cwd, env=env))
