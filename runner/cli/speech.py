"""What verbs say: data to stdout, sentences to stderr, errors as exit codes."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, ParamSpec, TypeVar

import click

from runner.errors import RunnerError, UsageError
from store.errors import AmbiguousRun, NoSuchRun, QueryError, StoreError
from store.printable import printable

P = ParamSpec("P")
R = TypeVar("R")

DONE, ERROR, USAGE, FAILED_TASKS, BUDGET, INTERRUPTED, CHECK_FAILED = range(7)
"""Exit codes of every verb (architecture, "Command line")."""


def tell(sentence: str) -> None:
    """A sentence for people, on stderr."""
    click.echo(printable(sentence), err=True)


def record(values: Mapping[str, Any]) -> None:
    """One JSON object on one line of stdout, at once."""
    click.echo(json.dumps(values, ensure_ascii=False, allow_nan=False))
    sys.stdout.flush()


def text(block: str) -> None:
    """Text for people, on stdout, safe for a terminal."""
    for line in block.splitlines():
        click.echo(printable(line))


def fail(sentence: str, code: int) -> NoReturn:
    """End the command with a sentence and an exit code."""
    tell(f"siftlog: {sentence}")
    raise click.exceptions.Exit(code)


def speaks(command: Callable[P, R]) -> Callable[P, R]:
    """Turn what a verb cannot do into one sentence and the right exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (UsageError, QueryError, NoSuchRun, AmbiguousRun) as error:
            fail(str(error), USAGE)
        except (RunnerError, StoreError) as error:
            fail(str(error), ERROR)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            fail(f"{where}{error.strerror or error}.", ERROR)

    return wrapped
