"""Real processes of the project's own command, started and ended by these tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIFTLOG = Path(sys.executable).with_name("siftlog")


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
        return subprocess.Popen(
            [SIFTLOG, *map(str, words)],
            cwd=cwd,
            env=environment(env),
            stdout=out,
            stderr=err,
            text=True,
        )


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


def status(
    cwd: Path, run: str, *, env: dict[str, str] | None = None
) -> dict[str, object]:
    """`siftlog status --json`."""
    return json.loads(siftlog("status", run, "--json", cwd=cwd, env=env).stdout)


_ELSEWHERE = {"OPENAI_API_KEY", "CI", "NO_COLOR", "SSH_CONNECTION", "TEXTUAL_THEME"}
"""Says where the tests run, and is no business of the commands they start."""


def environment(extra: dict[str, str] | None) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SIFTLOG_") and name not in _ELSEWHERE
    }
    # what simulated models cost nobody asks, but the tests of prices; nor does anybody
    # look at reports but their tests, and drawing one takes longer than many a run
    unasked = {"SIFTLOG_ALLOW_UNKNOWN_PRICE": "1", "SIFTLOG_NO_REPORT": "1"}
    return {**kept, **unasked, **(extra or {})}
