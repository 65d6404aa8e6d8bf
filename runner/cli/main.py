"""The entry point of `siftlog`: runs a command and maps errors to exit codes."""

from __future__ import annotations

import errno
import gc
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import click

from runner.cli.command_table import cli
from runner.cli.console import DONE, ERROR, INTERRUPTED, THRESHOLDS, USAGE, print_note
from runner.cli.help import terminal_colour
from runner.cli.mistakes import error_sentence
from runner.errors import RunnerError, UsageError
from store.errors import AmbiguousRun, NoSuchMoment, NoSuchRun, QueryError, StoreError
from store.shadowing import hidden_package


def main() -> None:
    """Entry point of the command `siftlog`."""
    # loading a command creates objects that stay; the collector would only walk them
    gc.set_threshold(*THRESHOLDS)
    if sentence := hidden_package(Path(__file__).resolve().parents[2]):
        sys.exit(_failed(sentence, ERROR))
    if instruction := os.environ.get("_SIFTLOG_COMPLETE"):
        from runner.cli.completion import respond

        sys.exit(respond(instruction))
    code = exit_code(sys.argv[1:])
    if code == INTERRUPTED:
        # a second Ctrl-C during interpreter shutdown would print a traceback
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def exit_code(arguments: list[str]) -> int:
    """Run a command; errors become one sentence and an exit code."""
    try:
        result: Any = cli.main(
            arguments, "siftlog", standalone_mode=False, color=terminal_colour()
        )
    except BaseException as error:  # noqa: BLE001 - last handler: it must print the error
        if _is_interrupt(error):
            return _failed("Interrupted.", INTERRUPTED)
        return _code_of(error)
    return result if isinstance(result, int) else DONE


def _code_of(error: BaseException) -> int:  # noqa: PLR0911 - one an outcome
    """Print the error and return its exit code."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.Abort():
            return INTERRUPTED
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return error.exit_code
        case click.ClickException():
            return _failed(error_sentence(error), error.exit_code)
        case (
            UsageError() | QueryError() | NoSuchMoment() | NoSuchRun() | AmbiguousRun()
        ):
            return _failed(str(error), USAGE)
        case RunnerError() | StoreError():
            return _failed(str(error), ERROR)
        case BrokenPipeError():
            # the reader closed the pipe: no error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        case OSError():
            return _failed(_of_system(error), ERROR)
        case Exception():
            return _unexpected(error)
        case _:
            raise error


def _of_system(error: OSError) -> str:
    """Describe a system error, with the next step."""
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return (
            f"Too many files are open: the limit is {limit} (ulimit "
            "-n). Raise the limit with: ulimit -n 4096; resume a run "
            "that had started with: siftlog resume RUN."
        )
    message = error.strerror or str(error)
    if error.filename:
        message = f"{error.filename}: {message}; check the path and its permissions"
    return f"{message}."


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused *error*; some libraries wrap it."""
    seen: set[int] = set()  # an error may be its own cause
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _failed(sentence: str, code: int) -> int:
    print_note(f"siftlog: {sentence}")
    return code


def _unexpected(error: Exception) -> int:
    """Print the traceback, escaped: an error's text may come from a model."""
    import traceback

    print_note("".join(traceback.format_exception(error)).rstrip())
    return _failed(
        f"{type(error).__name__} is a bug in siftlog or in the job, "
        "unless siftlog verify RUN finds the run damaged: please "
        "report it with the lines above.",
        ERROR,
    )
