"""Reads recorded runs where one is the input of another: its data and its answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from runner.errors import UsageError
from runner.fingerprint import Input
from runner.job import Answers, Job
from runner.registry import job_of
from runner.score.scoring import answers, effective_settings
from store.database import open_reader
from store.errors import StoreError
from store.read.status import run_started
from store.runs import RunFolder, resolve
from store.tables import visible_seq

RUNS_DIR = "SIFTLOG_RUNS_DIR"
"""Names the folder of runs, where it is not `runs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRun:
    """A run whose log is open for reading."""

    run_id: str
    job: Job
    settings: BaseModel  #: those that it last went on with
    inputs: tuple[Input, ...]  #: as they were when it was started
    answers: Answers  #: all that it has so far


def find_run(path: Path) -> RunFolder:
    """The run that is named by its folder, its id, or the beginning of its id.

    Raises:
        UsageError: there is no such run, or several.
    """
    folder = RunFolder(path)
    if folder.log.is_file():
        return folder
    try:
        # settings are paths, and a run's id was taken for one
        return resolve(Path(os.environ.get(RUNS_DIR, "runs")), path.name)
    except StoreError as error:
        raise UsageError(str(error)) from error


@contextmanager
def open_run(folder: RunFolder) -> Iterator[InputRun]:
    """A run with its answers, which can be read while the body runs.

    Raises:
        StoreError: its log cannot be read.
        UsageError: its job is not installed.
    """
    with open_reader(folder.log) as reader:
        started = run_started(reader)
        job = job_of(started)
        yield InputRun(
            run_id=folder.run_id,
            job=job,
            settings=effective_settings(job, folder, {}),
            inputs=tuple(started.inputs),
            answers=answers(reader, started, visible_seq(reader)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringOrigin:
    """The run and scoring that a file belongs to."""

    run_id: str
    number: int


def scoring_of(file: Path) -> ScoringOrigin | None:
    """The scoring in whose folder *file* is; None: it is in none."""
    for folder in file.parents:
        run = RunFolder(folder.parent.parent)
        if folder.parent == run.scores and folder.name.isdigit() and run.log.is_file():
            return ScoringOrigin(run_id=run.run_id, number=int(folder.name))
    return None
