"""siftlog from Python: start runs, read their answers, write jobs.

A run, from a notebook or a script::

    import siftlog

    run = siftlog.run("screening", limit=20)
    run.table()

`run` takes the name of a job, a Python file with a job (`my_job.py`), a recipe
(`recipe.toml`) or a job's class, and every option and setting of `siftlog run` by name.
`open` finds a run that was made before.

A job in one file derives from `QuestionJob`, or from `Job`: see
`docs/write-your-own-job.md`.

The names in `__all__` are the only public ones. A name is imported when it is first
used, so `import siftlog` loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import BaseModel, Field

    from jobs.kit import frames, metrics
    from jobs.kit.inputs import cells
    from jobs.kit.inputs.rows import RowModel
    from jobs.kit.questions import QuestionJob, QuestionSettings
    from jobs.runs import Run, arun, run
    from jobs.runs import open_run as open  # noqa: A004 - it is read as siftlog.open
    from runner.errors import DatasetError, RunnerError, UsageError
    from runner.job import Answer, Answers, InputFile, Job, Stage, Task, TaskSpec
    from runner.job_faults import guarded
    from runner.messages import (
        ChatRequest,
        Message,
        ParseFailure,
        Reply,
        Schema,
        TextPart,
    )
    from runner.scorecard import Finding, Metric, Scorecard, Table, Verdict
    from runner.structured import read_object, schema_of
    from store.errors import StoreError

__all__ = [
    "Answer",
    "Answers",
    "BaseModel",
    "ChatRequest",
    "DatasetError",
    "Field",
    "Finding",
    "InputFile",
    "Job",
    "Message",
    "Metric",
    "ParseFailure",
    "QuestionJob",
    "QuestionSettings",
    "Reply",
    "RowModel",
    "Run",
    "RunnerError",
    "Schema",
    "Scorecard",
    "Stage",
    "StoreError",
    "Table",
    "Task",
    "TaskSpec",
    "TextPart",
    "UsageError",
    "Verdict",
    "arun",
    "cells",
    "frames",
    "guarded",
    "metrics",
    "open",
    "read_object",
    "run",
    "schema_of",
]

_HOMES: Final = {
    "jobs.kit.inputs.rows": ("RowModel",),
    "jobs.kit.questions": ("QuestionJob", "QuestionSettings"),
    "jobs.runs": ("Run", "arun", "open", "run"),
    "pydantic": ("BaseModel", "Field"),
    "runner.errors": ("DatasetError", "RunnerError", "UsageError"),
    "runner.job": (
        *("Answer", "Answers", "InputFile", "Job", "Stage", "Task", "TaskSpec"),
    ),
    "runner.job_faults": ("guarded",),
    "runner.messages": (
        *("ChatRequest", "Message", "ParseFailure", "Reply", "Schema", "TextPart"),
    ),
    "runner.scorecard": ("Finding", "Metric", "Scorecard", "Table", "Verdict"),
    "runner.structured": ("read_object", "schema_of"),
    "store.errors": ("StoreError",),
}
"""The module of each name."""

_MODULES: Final = {
    "cells": "jobs.kit.inputs.cells",
    "frames": "jobs.kit.frames",
    "metrics": "jobs.kit.metrics",
}
"""The names that are modules."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of any name
    """Import a public name when it is first used."""
    if name in _MODULES:
        return globals().setdefault(name, import_module(_MODULES[name]))
    for home, names in _HOMES.items():
        if name in names:
            attribute = {"open": "open_run"}.get(name, name)
            value = getattr(import_module(home), attribute)
            return globals().setdefault(name, value)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


def _check_packages() -> None:
    """Refuse to start where a folder of the user's hides one of ours.

    Raises:
        ImportError: names the folder or file.
    """
    home = Path(__file__).resolve().parent
    try:
        from store.shadowing import hidden_package  # noqa: PLC0415 - it may be missing
    except ImportError as error:
        spec = find_spec("store")
        places = () if spec is None else (spec.submodule_search_locations or ())
        place = next(iter(places), "store.py")
        raise ImportError(
            f"{place} hides the package 'store' of siftlog: rename it, or start in "
            "another folder."
        ) from error
    if sentence := hidden_package(home):
        raise ImportError(sentence)


_check_packages()
