"""The shipped command, run inside the test's own process: one import for all runs."""

from __future__ import annotations

import io
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from runner.cli import console
from runner.cli.main import exit_code
from tests.processes import environment

# conftest.py sets the collector of this process; each command would look through all
# that its tests hold
console.relax_collector = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def command(*words: object) -> Done:
    """Run one command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code([str(word) for word in words])
    return Done(code=code, out=out.getvalue(), err=err.getvalue())


def summary_of(run: str, *words: object) -> str:
    """Return what `siftlog score` prints of a run, without a new scoring."""
    done = command("score", run, "--no-record", *words)
    assert done.code == 0, done.err
    return done.out


def siftlog(
    *words: object, cwd: Path, check: bool = True, env: dict[str, str] | None = None
) -> CompletedProcess[str]:
    """Run one command as `tests.processes.siftlog` does, without a process."""
    assert "PYTHONPATH" not in (env or {}), "what it installs is not seen here"
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(environment(env))
        with chdir(cwd):
            done = command(*words)
    finally:
        # litellm sets it when it is imported, which happens once in this process
        tokens = {k: v for k, v in os.environ.items() if k == "TIKTOKEN_CACHE_DIR"}
        os.environ.clear()
        os.environ.update(before | tokens)
    assert not check or done.code == 0, done.out + done.err
    return CompletedProcess(words, done.code, done.out, done.err)
