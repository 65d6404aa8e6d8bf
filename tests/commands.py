"""The shipped command, run inside the test's own process: one import for all runs."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from runner.cli.main import exit_code


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
