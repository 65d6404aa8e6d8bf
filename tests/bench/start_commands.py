"""What short commands cost before they do anything: processor seconds of a process.

The least of several rounds, for a start can only be slowed down. Bytecode of the
libraries is cached, as installers leave it: compiling them anew takes as long again.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.processes import SIFTLOG, environment, simulated

CALLS = 64


def measure(quick: bool) -> list[Row]:
    """Help, status, and a run of few calls: offline and over loopback HTTP."""
    rounds = 3 if quick else 9
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        cached = {
            **environment({"PYTHONPYCACHEPREFIX": str(cwd / "bytecode")}),
            # cached, but not in the folders of the project
            "PYTHONDONTWRITEBYTECODE": "",
        }
        offline = ("generate", "screening", f"--limit={CALLS}", "--no-cache")
        _seconds((*offline, "--run-id=known"), cwd, cached)
        with simulated("--latency-ms", 0, cwd=cwd) as url:
            online = (*offline, "--model=x", f"--base-url={url}")
            words = {"--help": ("--help",), "status": ("status", "known")}
            words |= {f"generate, {CALLS} calls": offline, "the same, HTTP": online}
            least = dict.fromkeys(words, float("inf"))
            for _ in range(rounds + 1):
                for what, command in words.items():
                    least[what] = min(least[what], _seconds(command, cwd, cached))
    goals = {"--help": 0.10, "status": 0.20, f"generate, {CALLS} calls": 0.7}
    return [
        most("start", f"{what}: CPU s", seconds, goals[what])
        if what in goals
        else shown(f"{what}: CPU s", seconds, "start")
        for what, seconds in least.items()
    ]


def _seconds(words: tuple[str, ...], cwd: Path, variables: Mapping[str, str]) -> float:
    """Processor seconds of one command, in user code and in the system."""
    number = len(list((cwd / "runs").glob("*"))) if (cwd / "runs").exists() else 0
    is_run = words[0] == "generate" and not words[-1].startswith("--run-id")
    process = subprocess.Popen(
        [SIFTLOG, *words, *((f"--run-id=r{number}",) if is_run else ())],
        cwd=cwd,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    assert process.returncode == 0, words
    return usage.ru_utime + usage.ru_stime
