"""A recorded scoring made once more from the log, for what was not kept of it.

The answers are replayed up to the event that the scoring had read, under the settings
that it recorded, and must give the same numbers. Nothing is appended.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import BaseModel

from runner.errors import RunnerError
from runner.fingerprint import input_hashes
from runner.job import Job
from runner.records.scoring import Scoring, replayed
from runner.registry import load_job
from runner.settings import validated
from store.events import Input, RunStarted, ScoringRecorded
from store.runs import RunFolder
from store.views import open_reader, run_started


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A scoring of the same numbers as one that was recorded."""

    reader: sqlite3.Connection  #: of the run's log
    job: Job
    first: RunStarted
    settings: BaseModel
    inputs: Sequence[Input]
    scoring: Scoring  #: its scorecard's details are not read yet


@contextmanager
def repeated(folder: RunFolder, recorded: ScoringRecorded) -> Iterator[Repeated]:
    """A recorded scoring, made again; its details can be read inside.

    Args:
        folder: of the run.
        recorded: the scoring.

    Raises:
        DatasetError: an input file is missing or wrong.
        RunnerError: the replay gives other numbers than the scoring had.
    """
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        job = load_job(first.job)
        settings = validated(job, json.loads(recorded.settings))
        inputs = input_hashes(job.inputs(settings))
        made = replayed(job, reader, settings, inputs, upto=recorded.seq)
        if made.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {folder.run_id} cannot be made again: "
                "the code or the inputs have changed since, and a replay gives other "
                f"numbers; siftlog score {folder.run_id} makes a new scoring."
            )
        yield Repeated(
            reader=reader,
            job=job,
            first=first,
            settings=settings,
            inputs=inputs,
            scoring=made,
        )
