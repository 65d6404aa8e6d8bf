"""A recorded scoring made again: its settings, its inputs, the log up to its event.

The answers are replayed by the code of today. Nothing is appended, and no model is
called.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from runner.fingerprint import input_hashes
from runner.job import Job
from runner.records.scoring import Scoring, replayed
from runner.registry import load_job
from runner.settings import validated
from store.events import RunStarted, ScoringRecorded
from store.runs import RunFolder
from store.views import open_reader, run_started


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeater:
    """Scores one run as often as wanted, while it is open; nothing is recorded."""

    job: Job
    started: RunStarted
    reader: sqlite3.Connection

    def repeated(self, recorded: ScoringRecorded) -> Scoring:
        """A recorded scoring, made again; its details may be read while this is open.

        Whether it has the recorded digest is for the caller to see.

        Raises:
            DatasetError: an input file is missing or wrong.
        """
        settings = validated(self.job, json.loads(recorded.settings))
        inputs = input_hashes(self.job.inputs(settings))
        return replayed(self.job, self.reader, settings, inputs, upto=recorded.seq)


@contextmanager
def repeater(folder: RunFolder) -> Iterator[Repeater]:
    """Open a run for scoring it again."""
    with open_reader(folder.log) as reader:
        started = run_started(reader)
        yield Repeater(job=load_job(started.job), started=started, reader=reader)
