"""Turns exceptions of a job's code into values: class, line and one traceback.

A parser that raises must not end a run or a scoring: its reply counts as unparsed. An
exception of another method becomes the error of one task, or of the command.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar

from runner.errors import JobFault, RunnerError
from runner.job import Dataset, Job, Stage, Task
from runner.messages import ParseFailure
from store.errors import StoreError

PARSER_ERROR: Final = "parser_error"
"""Reason of a parse failure whose parser raised."""

LONGEST: Final = 160
"""Maximum characters of an exception's message in a sentence."""


def fault_of(error: Exception, home: str = "") -> str:
    """Return the exception's class and line, such as `KeyError at myjob/parsing.py:12`.

    The line is the deepest one inside the package of the module *home*, which the job's
    author can fix; without such a line, the deepest of all. The path is built from the
    module's name, so it contains no folder of this machine.
    """
    package = home.partition(".")[0]
    deepest = inside = ""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        file = PurePath(trace.tb_frame.f_code.co_filename).name
        folders = module.split(".")[: None if file == "__init__.py" else -1]
        deepest = f"{'/'.join([*folders, file])}:{trace.tb_lineno}"
        if module.partition(".")[0] == package:
            inside = deepest
        trace = trace.tb_next
    name = type(error).__name__
    location = inside or deepest
    return f"{name} at {location}" if location else name


def sentence_of(error: Exception, home: str = "") -> str:
    """Return the same, with the start of the exception's message."""
    message = " ".join(str(error).split())[:LONGEST]
    return f"{fault_of(error, home)}: {message}" if message else fault_of(error, home)


@dataclass(slots=True)
class JobFaults:
    """Records exceptions of one job's code; prints the first one in full."""

    notify: Callable[[str], None]
    has_printed: bool = field(default=False, init=False)

    def take(self, error: Exception, method: str, home: str) -> str:
        """Record an exception; return its class and line.

        Args:
            error: the caught exception.
            method: the callable that raised, such as "follow_up".
            home: name of the callable's module.
        """
        fault = fault_of(error, home)
        if not self.has_printed:
            self.has_printed = True
            whole = "".join(traceback.format_exception(error)).rstrip()
            for line in whole.split("\n"):
                self.notify(line)
            self.notify(
                f"The job's {method} raised {fault}. The run continues; "
                "this is the first such exception, later ones are only "
                "counted."
            )
        return fault


P = ParamSpec("P")
T = TypeVar("T")

_RAISES: Final[ContextVar[bool]] = ContextVar("raises", default=False)
"""Whether guarded parsers re-raise exceptions to `read_reply`, which can show them."""


_SEEN: Final[ContextVar[dict[str, None] | None]] = ContextVar("seen", default=None)
"""Collects class and line of exceptions in guarded parsers, if set."""


@contextmanager
def parser_faults() -> Iterator[dict[str, None]]:
    """Collect class and line of exceptions in guarded parsers during the block."""
    seen: dict[str, None] = {}
    token = _SEEN.set(seen)
    try:
        yield seen
    finally:
        _SEEN.reset(token)


def guarded(parse: Callable[P, T]) -> Callable[P, T | ParseFailure]:
    """Decorate a parser of replies to return a `ParseFailure` if it raises.

    A job's `score`, `explain` and figures parse replies again, with other rules. A
    parser that raises there must not end the scoring: its reply counts as unparsed, as
    in a run. Inside `read_reply` the exception is re-raised, so that the first one of a
    process is shown in full.
    """

    @wraps(parse)
    def read(*args: P.args, **kwargs: P.kwargs) -> T | ParseFailure:
        try:
            return parse(*args, **kwargs)
        except Exception as error:
            if _RAISES.get():
                raise
            failure = _failure(error, _home(parse, args[0] if args else None))
            seen = _SEEN.get()
            if seen is not None:
                seen[failure.detail or ""] = None
            return failure

    return read


def _home(parse: Callable[..., Any], owner: object) -> str:
    """Return the module whose author can fix a parser; of a method, its job's."""
    return type(owner).__module__ if isinstance(owner, Job) else parse.__module__


def _failure(error: Exception, home: str) -> ParseFailure:
    return ParseFailure(reason=PARSER_ERROR, detail=fault_of(error, home))


def read_reply(
    stage: Stage,
    dataset: Dataset,
    task: Task,
    reply: Any,  # noqa: ANN401 - of the stage's kind
    faults: JobFaults | None = None,
) -> object | ParseFailure:
    """Parse a reply with the stage's parser; `ParseFailure` if it raises."""
    token = _RAISES.set(True)
    try:
        return stage.parse(dataset, task, reply)
    except Exception as error:  # noqa: BLE001 - the parser is not ours
        home = _home(stage.parse, getattr(stage.parse, "__self__", None))
        failure = _failure(error, home)
        if faults is not None:
            faults.take(error, f"parser of stage {stage.name}", home)
        return failure
    finally:
        _RAISES.reset(token)


def job_fault(
    error: Exception, job: Job, method: str, faults: JobFaults | None = None
) -> JobFault:
    """Turn an exception of the job's *method* into the error of one task."""
    home = type(job).__module__
    if faults is None:
        return JobFault(fault_of(error, home))
    return JobFault(faults.take(error, method, home))


@contextmanager
def calling(job: Job, method: str) -> Iterator[None]:
    """Turn exceptions of the job's *method* into the error of a command.

    Raises:
        RunnerError: the method raised anything but an error of siftlog.
    """
    try:
        yield
    except (RunnerError, StoreError):
        raise
    except Exception as error:
        sentence = sentence_of(error, type(job).__module__)
        raise RunnerError(
            f"The {method} of job {job.name} raised {sentence}; fix the job."
        ) from error
