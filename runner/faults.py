"""Turns exceptions of a job's code into values: class and line, and one traceback.

A parser, `request` or `follow_up` that raises is a bug in a job, often met only once a
model replies in an unexpected way. It must not end the run, which has paid for the
answers so far. The callers record the short form (`KeyError at myjob/parsing.py:12`);
`JobFaults` prints the first exception of a process whole.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final

from runner.errors import JobFault, RunnerError
from runner.job import Dataset, Job, Stage
from runner.reply import ParseFailure
from runner.task import Task
from store.errors import StoreError

PARSER_ERROR: Final = "parser_error"
"""Reason of a parse failure whose parser raised."""

LONGEST: Final = 160
"""Characters of an exception's message that are printed in a sentence."""


def fault_of(error: Exception, home: str = "") -> str:
    """The exception's class and line, such as `KeyError at myjob/parsing.py:12`.

    The line is the deepest one inside the package of the module *home*, because the
    job's author can mend that one; without such a line, the deepest of all. The path
    is built from the module's name, so it holds no folder of this machine.
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
    where = inside or deepest
    return f"{name} at {where}" if where else name


def sentence_of(error: Exception, home: str = "") -> str:
    """The same with the beginning of the exception's message."""
    said = " ".join(str(error).split())[:LONGEST]
    return f"{fault_of(error, home)}: {said}" if said else fault_of(error, home)


@dataclass(slots=True)
class JobFaults:
    """Records exceptions of one job's code; prints the first of them whole."""

    tell: Callable[[str], None]
    is_shown: bool = field(default=False, init=False)

    def take(self, error: Exception, what: str, home: str) -> str:
        """The exception's class and line.

        Args:
            error: as it was caught.
            what: the callable that raised, such as "follow_up".
            home: name of the module that it is from.
        """
        fault = fault_of(error, home)
        if not self.is_shown:
            self.is_shown = True
            whole = "".join(traceback.format_exception(error)).rstrip()
            for line in whole.split("\n"):
                self.tell(line)
            self.tell(
                f"The job's {what} raised {fault}. The run goes on; this is the first "
                "such exception, later ones are only counted."
            )
        return fault


def read_reply(
    stage: Stage,
    dataset: Dataset,
    task: Task,
    reply: Any,  # noqa: ANN401 - of the stage's kind
    faults: JobFaults | None = None,
) -> object | ParseFailure:
    """What the stage's parser makes of a reply; a `ParseFailure` where it raises."""
    try:
        return stage.parse(dataset, task, reply)
    except Exception as error:  # noqa: BLE001 - the parser is not ours
        home = getattr(stage.parse, "__module__", "") or ""
        fault = (
            fault_of(error, home)
            if faults is None
            else faults.take(error, f"parser of stage {stage.name}", home)
        )
        return ParseFailure(reason=PARSER_ERROR, detail=fault)


def job_fault(
    error: Exception, job: Job, what: str, faults: JobFaults | None = None
) -> JobFault:
    """The exception of the job's method *what*, as the error of one task."""
    home = type(job).__module__
    if faults is None:
        return JobFault(fault_of(error, home))
    return JobFault(faults.take(error, what, home))


def broken(error: Exception, job: Job, what: str) -> RunnerError | StoreError:
    """The error that a command ends with where the job's method *what* raised."""
    if isinstance(error, (RunnerError, StoreError)):
        return error
    said = sentence_of(error, type(job).__module__)
    return RunnerError(f"The {what} of job {job.name} raised {said}; mend the job.")
