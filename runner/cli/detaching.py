"""A run that goes on without its terminal (`--detach`).

The typed process forks before it does anything else. The child is in the foreground
until the run has begun, so that whatever is wrong is said at once and nothing half made
is left; then it moves to a session of its own, away from the terminal. The process that
was typed stays only to see that. Nothing is passed on a command line, least of all a
key.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import click

from runner.cli.speech import DONE, ERROR, record, tell
from runner.errors import RunnerError
from store.clock import SystemClock
from store.database import open_reader
from store.read.status import status
from store.runs import RunFolder, is_held

LOOK_S = 0.05
PATIENCE_S = 60.0
"""From the run's first event to its first sign of life; a disk may be slow."""

Leave: TypeAlias = Callable[[RunFolder], None]
"""Called by the child once its run has begun."""


def leave_terminal(given: Mapping[str, Any]) -> Leave | None:
    """With `--detach`: how to leave the terminal; the typed process ends in here."""
    return detach(as_json=given["as_json"]) if given["detach"] else None


def detach(*, as_json: bool) -> Leave:
    """Fork; return in the child only.

    Raises:
        click.exceptions.Exit: in the process that was typed, when its part is done.
    """
    listening, saying = os.pipe()
    child = os.fork()
    if child:
        os.close(saying)
        raise click.exceptions.Exit(_stand_by(child, listening, as_json=as_json))
    os.close(listening)

    def leave(folder: RunFolder) -> None:
        os.setsid()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        output = os.open(folder.diagnostics, flags, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for new, old in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(new, old)
        os.close(output)
        os.close(nothing)
        os.write(saying, os.fsencode(f"{folder.part}\n{folder.path}"))
        os.close(saying)

    return leave


def _stand_by(child: int, listening: int, *, as_json: bool) -> int:
    """Wait until the run lives or has ended; the exit code of the typed process."""
    with os.fdopen(listening, "rb") as pipe:
        said = pipe.read()
    if not said:
        # it said itself what is wrong, or did all there was to do
        return _code(os.waitpid(child, 0)[1])
    part, _, path = os.fsdecode(said).partition("\n")
    folder = RunFolder(Path(path), part)
    code = _until_alive(child, folder)
    run = folder.run_id
    if as_json:
        shown = {"event": "detached", "run": run, "pid": child}
        record({**shown, "log": str(folder.diagnostics), "exit": code})
    if code is not None:
        tell(f"Run {run} has ended already; its output is in {folder.diagnostics}")
        return code
    tell(
        f"Run {run} goes on without this terminal (process {child}); its output is in "
        f"{folder.diagnostics}. Look at it with: siftlog watch {run}; end it with: "
        f"siftlog drain {run}"
    )
    return DONE


def _until_alive(child: int, folder: RunFolder) -> int | None:
    """Wait for the child's heartbeat; its exit code, if it has ended before."""
    clock = SystemClock()
    until = clock.monotonic() + PATIENCE_S
    while clock.monotonic() < until:
        ended, how = os.waitpid(child, os.WNOHANG)
        if ended:
            return _code(how)
        with open_reader(folder.log) as reader:
            beat = status(reader).heartbeat
        # who places shards writes no log of its own
        if (beat is not None and beat.pid == child) or is_held(folder.driver_lock):
            return None
        time.sleep(LOOK_S)
    raise RunnerError(
        f"Run {folder.run_id} has begun and shows no sign of life (process {child}); "
        f"see {folder.diagnostics} and siftlog status {folder.run_id}."
    )


def _code(how: int) -> int:
    """The exit code behind what `waitpid` tells; a signal is an error."""
    code = os.waitstatus_to_exitcode(how)
    return code if code >= 0 else ERROR
