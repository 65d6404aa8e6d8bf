"""Runs the shipped command in forked processes, which start in milliseconds.

A fork server imports the command once; each call is a process of its own that can be
killed like any other. A thousand runs with kills would otherwise be spent on imports.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

LONGEST_S: Final = 120.0

_PRELOADED: Final = (
    "tests.conformance.commands",
    "runner.cli.main",
    "runner.cli.run_steps",
    "encodings.utf_8_sig",
    "tests.conformance.preloaded",
)


def _context() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context


def _run(words: Sequence[str], cwd: str, extra: Mapping[str, str]) -> None:
    """The body of the forked process: the command's own `main`."""
    from runner.cli.main import main  # noqa: PLC0415 - the parent needs it not

    os.chdir(cwd)
    for name, stream in (("out.txt", 1), ("err.txt", 2)):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, stream)
        os.close(file)
    for name in [name for name in os.environ if name.startswith("SIFTLOG_")]:
        del os.environ[name]
    os.environ.update(extra)
    sys.argv = ["siftlog", *words]
    main()


def start(
    *words: object, cwd: Path, env: Mapping[str, str] | None = None
) -> BaseProcess:
    """Start a command in *cwd*; its output goes to `out.txt` and `err.txt` there."""
    process = _context().Process(
        target=_run, args=([str(word) for word in words], str(cwd), dict(env or {}))
    )
    process.start()
    return process


def finish(process: BaseProcess) -> int:
    """The exit code of a command; it is killed where it takes far too long."""
    process.join(LONGEST_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    code = process.exitcode
    assert code is not None
    return code


def run(*words: object, cwd: Path, env: Mapping[str, str] | None = None) -> int:
    """Run a command to its end; its exit code."""
    return finish(start(*words, cwd=cwd, env=env))
